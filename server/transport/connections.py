"""uvicorn's connections, which also tell the application what ASGI has no message for.

A connection knows when its peer stops reading, can be dropped then, and knows when the server shuts down. uvicorn has
no hooks for these, so its protocol classes are extended here, in part by what it does not document.
tests/server/transport/test_private_parts.py fails when uvicorn changes that.
"""

import asyncio
from asyncio.transports import BaseTransport
from collections.abc import Callable, MutableMapping
from typing import Any, cast

import httptools
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.http11 import Response
from websockets.server import ServerProtocol

from server.transport import body
from server.transport.refusal import payload
from server.transport.timers import MIN_PROGRESS, RequestTimer, StallTimer
from storage import errors

SEND_TIMEOUT = "send_timeout"
"""Key in the lifespan's state: seconds after which a peer that reads nothing is dropped."""
REQUEST_TIMEOUT = "request_timeout"
"""Key in the lifespan's state: seconds that a request's headers, or `MIN_PROGRESS` bytes of its body, may take."""
CONNECTION = "connection"
"""Key in a scope's state: the connection."""
MAX_HEAD = 512 * 1024
"""Limit in bytes of a request's line and headers, including a document in the address."""
FLUSH_SECONDS = 30
"""How long a dropped peer can still read what was sent before, its close message included."""


class HttpConnection(HttpToolsProtocol):
    """A connection for requests and event streams. One that stalls is cut off; HTTP has no other way.

    Requests to upgrade to anything but a WebSocket are served as if they did not ask (RFC 9110, section 7.8): Java's
    client asks for HTTP/2 that way.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self.shutting_down = asyncio.Event()
        """Set when the server shuts down."""
        self._in_message = False
        self._in_head = False
        self._head_size = 0
        self._ignores_upgrade = False

    @override
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._stall_timer = StallTimer(self.transport, self.app_state[SEND_TIMEOUT], self.transport.abort)
        self._request_timer = RequestTimer(self.app_state[REQUEST_TIMEOUT], self._end_late_request)
        self._request_timer.wait_for_head()

    @override
    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("this is not an HTTP request")
        except httptools.HttpParserUpgrade as upgrade:
            if self._ignores_upgrade:
                self._parse_without_upgrade(data[upgrade.args[0] :])
            elif self._should_upgrade():
                self._in_message = False
                self.handle_websocket_upgrade()
        if self._in_head and not self.transport.is_closing():
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(b"431 Request Header Fields Too Large", f"the headers have more than {MAX_HEAD} bytes")
        self._follow_arrival(len(data))

    def _follow_arrival(self, size: int) -> None:
        """Measures what is missing of a request, now that `size` more bytes have arrived."""
        if not self._in_message:
            self._request_timer.stop()
        elif self._in_head:
            self._request_timer.wait_for_head()
        else:
            self._request_timer.wait_for_body(size)

    @override
    def _should_upgrade(self) -> bool:
        # httptools drops the body of a request for an upgrade; a handshake with one would wait for it forever.
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        return self.scope["method"] == "GET" and not has_body and super()._should_upgrade()

    def _parse_without_upgrade(self, rest: bytes) -> None:
        """Parses the request again without its Upgrade header, which makes httptools drop the body."""
        version = self.parser.get_http_version()
        lines = [f"{self.scope['method']} ".encode() + self.url + f" HTTP/{version}".encode()]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    @override
    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", msg)

    def _end_late_request(self) -> None:
        if self.flow.read_paused:
            self._request_timer.wait_for_body(0)  # the application is what does not read on
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and (self._in_head or cycle.response_started):
            self.transport.close()  # in the middle of a response
            return
        seconds = self.app_state[REQUEST_TIMEOUT]
        late = "its headers" if self._in_head or cycle is None else f"{MIN_PROGRESS} bytes of its body"
        self._refuse(b"408 Request Timeout", f"the request is too slow: {late} took more than {seconds:g} s")

    def _refuse(self, status: bytes, message: str) -> None:
        content = body.encode(payload(errors.BadInput(message)))
        self.transport.write(
            b"HTTP/1.1 %s\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s" % (status, len(content), content)
        )
        self.transport.close()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_message, self._in_head, self._head_size = True, True, 0

    @override
    def on_headers_complete(self) -> None:
        self._in_head = False
        method = self.parser.get_method()
        self.scope["method"] = method.decode()
        # httptools treats every CONNECT as an upgrade; the application refuses it, like other methods.
        wants_upgrade = self.parser.should_upgrade() and method != b"CONNECT"
        self._ignores_upgrade = wants_upgrade and not self._should_upgrade()
        if not self._ignores_upgrade:
            super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._in_message = False
        self._request_timer.stop()  # the next request may have begun in the same data
        if not self._ignores_upgrade:
            super().on_message_complete()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer.start()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall_timer.stop()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stall_timer.stop()
        self._request_timer.stop()
        super().connection_lost(exc)

    @override
    def shutdown(self) -> None:
        self.shutting_down.set()
        super().shutdown()


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket's connection. `stall_reason` returns the code and reason to close one that stalls with."""

    stall_reason: Callable[[], tuple[int, str]] = staticmethod(lambda: (1013, "stalled"))

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self.conn.reject = self._reject  # type: ignore[method-assign]  # it has no hook for the body of a refusal

    def _reject(self, status: int, text: str) -> Response:
        """The response to a handshake that can't be accepted, in the form of other refusals."""
        response = ServerProtocol.reject(self.conn, status, text)
        response.body = body.encode(payload(errors.BadInput(text.strip())))
        for name, value in (
            ("Content-Type", "application/json; charset=utf-8"),
            ("Content-Length", len(response.body)),
        ):
            del response.headers[name]
            response.headers[name] = str(value)
        return response

    @override
    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._stall_timer = StallTimer(self.transport, self.app_state[SEND_TIMEOUT], self._drop)

    @override
    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not self.close_sent:
            data = b"".join(self.frames)
            try:
                data.decode()
            except UnicodeDecodeError:
                self.frames = []
                self._close(1007, "a text message must be UTF-8")
                self.transport.close()
                return
            self.frames = [data]
        super().send_receive_event_to_app()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer.start()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall_timer.stop()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stall_timer.stop()
        super().connection_lost(exc)

    def _drop(self) -> None:
        """Closes the socket behind the data that wait, so that a peer that reads on soon still gets them."""
        if not self.close_sent:
            self._close(*self.stall_reason())
        self.transport.close()
        self.loop.call_later(FLUSH_SECONDS, self.transport.abort)

    def _close(self, code: int, reason: str) -> None:
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True


def connection_of(scope: MutableMapping[str, Any]) -> Any:
    """The connection of a request (HttpConnection) or a socket (SocketConnection)."""
    return scope["state"][CONNECTION]
