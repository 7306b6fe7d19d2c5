"""Connections as uvicorn keeps them, which also tell the application what ASGI has no word for.

They find out when a peer takes nothing any more, can be dropped then, and say when the server is told to end.
"""

import asyncio
from asyncio.transports import BaseTransport
from collections.abc import Callable, MutableMapping
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from server.transport.refusal import refusal
from storage import errors

SEND_TIMEOUT = "send_timeout"
"""The key in the lifespan's state: seconds that a peer may take nothing of what waits for it."""
CONNECTION = "connection"
"""The key in a scope's state: the connection."""
MAX_HEAD = 512 * 1024
"""Bytes of a request's line and headers, the longest document in the address included."""
FLUSH_SECONDS = 30
"""How long a peer that was dropped may still read what was under way to it, its close message included."""


class StallTimer:
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
    """A connection for requests and event streams. One that stalls is cut off: HTTP has no other way.

    Upgrades that are not offered are ignored, as RFC 9110, section 7.8 has it: Java's client asks for HTTP/2 so.
    """

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self.ending = asyncio.Event()
        """Set when the server is told to end."""
        self._patience = StallTimer(self.transport, self.app_state[SEND_TIMEOUT], self.transport.abort)
        self._in_head = False
        self._head_size = 0
        self._ignores_upgrade = False

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("this is no HTTP request")
        except httptools.HttpParserUpgrade as upgrade:
            if self._ignores_upgrade:
                self._read_plainly(data[upgrade.args[0] :])
            elif self._should_upgrade():
                self.handle_websocket_upgrade()
        if self._in_head and not self.transport.is_closing():
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(b"431 Request Header Fields Too Large", f"the headers have more than {MAX_HEAD} bytes")

    def _should_upgrade(self) -> bool:
        # A handshake with a body would wait for ever for what httptools has dropped.
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        return self.scope["method"] == "GET" and not has_body and super()._should_upgrade()

    def _read_plainly(self, rest: bytes) -> None:
        """Reads the request once more, without its wish for an upgrade, which makes httptools leave out its body."""
        version = self.parser.get_http_version()
        lines = [f"{self.scope['method']} ".encode() + self.url + f" HTTP/{version}".encode()]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP."""
        self._refuse(b"400 Bad Request", msg)

    def _refuse(self, status: bytes, message: str) -> None:
        content = bytes(refusal(errors.BadInput(message)).body)
        self.transport.write(
            b"HTTP/1.1 %s\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s" % (status, len(content), content)
        )
        self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"][CONNECTION] = self
        self._in_head, self._head_size = True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        method = self.parser.get_method()
        self.scope["method"] = method.decode()
        # All CONNECT requests are upgrades to httptools; they are refused as any other method is.
        wants_upgrade = self.parser.should_upgrade() and method != b"CONNECT"
        self._ignores_upgrade = wants_upgrade and not self._should_upgrade()
        if not self._ignores_upgrade:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._ignores_upgrade:
            super().on_message_complete()

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
        self._patience = StallTimer(self.transport, self.app_state[SEND_TIMEOUT], self._drop)

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
