"""Connections as uvicorn keeps them, which also tell the application what ASGI has no word for.

They find out when a peer takes nothing any more, can be dropped then, and say when the server is told to end.
"""

import asyncio
from asyncio.transports import BaseTransport
from collections.abc import Callable, MutableMapping
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

SEND_TIMEOUT = "send_timeout"
"""The key in the lifespan's state: seconds that a peer may take nothing of what waits for it."""
CONNECTION = "connection"
"""The key in a scope's state: the connection."""
FLUSH_SECONDS = 30
"""How long a peer that was dropped may still read what was under way to it, its close message included."""


class Patience:
    """Calls `stalled` when a peer has taken nothing for so many seconds, while something waits to be sent."""

    def __init__(self, transport: asyncio.Transport, seconds: float, stalled: Callable[[], None]) -> None:
        self._transport = transport
        self._seconds = seconds
        self._stalled = stalled
        self._left = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Something waits."""
        self.end()
        self._left = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def end(self) -> None:
        """Nothing waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._left:
            self.begin()
        else:
            self._timer = None
            self._stalled()


class HttpConnection(HttpToolsProtocol):
    """A connection for requests and event streams. One that stalls is cut off: HTTP has no other way."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self.ending = asyncio.Event()
        """Set when the server is told to end."""
        self._patience = Patience(self.transport, self.app_state[SEND_TIMEOUT], self.transport.abort)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"][CONNECTION] = self

    def pause_writing(self) -> None:
        super().pause_writing()
        self._patience.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._patience.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.end()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self.ending.set()
        super().shutdown()


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket's connection. `reason` gives the code and reason with which one that stalls is closed."""

    reason: Callable[[], tuple[int, str]] = staticmethod(lambda: (1013, "stalled"))

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._patience = Patience(self.transport, self.app_state[SEND_TIMEOUT], self._drop)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if (scope := getattr(self, "scope", None)) is not None:
            scope["state"][CONNECTION] = self

    def pause_writing(self) -> None:
        super().pause_writing()
        self._patience.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._patience.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.end()
        super().connection_lost(exc)

    def _drop(self) -> None:
        """Closes it behind what waits, which a peer that wakes up soon can still read."""
        if not self.close_sent:
            code, reason = self.reason()
            self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()
        self.loop.call_later(FLUSH_SECONDS, self.transport.abort)


def connection_of(scope: MutableMapping[str, Any]) -> Any:
    """The connection that a request or socket came by."""
    return scope["state"][CONNECTION]
