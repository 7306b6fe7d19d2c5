"""Middleware that counts requests and sockets, times answers and continues traces."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schema.engine.phases import LISTENING, Phases
from server.telemetry.observer import Observer

GRAPHQL = "/graphql"
METRICS = "/metrics"
PATHS = frozenset((GRAPHQL, METRICS, "/healthz", "/readyz"))
METHODS = frozenset(("GET", "HEAD", "POST", "OPTIONS"))
OTHER = "(other)"


class TelemetryMiddleware:
    """The outermost middleware. `requests` and `sockets` count those open now.

    Answers from /graphql get a Server-Timing header.
    """

    def __init__(self, app: ASGIApp, observer: Observer) -> None:
        self._app = app
        self._observer = observer
        self.requests = 0
        self.sockets = 0
        gauge = observer.metrics.gauge
        gauge("requests_open", "HTTP requests and event streams open, scrapes left out", lambda: self.requests)
        gauge("sockets_open", "WebSockets open", lambda: self.sockets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request, a socket or the lifespan on to the application."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if (tracing := self._observer.tracing) is not None:
            tracing.join(scope["headers"])
        if scope["type"] == "http":
            await self._request(scope, receive, send)
            return
        self.sockets += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.sockets -= 1

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["path"] in PATHS else OTHER
        method = scope["method"] if scope["method"] in METHODS else OTHER
        phases = Phases()
        LISTENING.set(phases)
        began = time.perf_counter()

        async def start(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = time.perf_counter() - began
                self._observer.metrics.request(path, method, message["status"], seconds)
                if path == GRAPHQL:
                    message["headers"] = [*message["headers"], (b"server-timing", _timing(phases, seconds))]
            await send(message)

        counted = path != METRICS
        self.requests += counted
        try:
            await self._app(scope, receive, start)
        finally:
            self.requests -= counted


def _timing(phases: Phases, total: float) -> bytes:
    """A Server-Timing header (https://www.w3.org/TR/server-timing/): each phase in ms."""
    steps = (phases.parse * 1000, phases.validate * 1000, phases.execute * 1000, total * 1000)
    return b"parse;dur=%.3f, validate;dur=%.3f, execute;dur=%.3f, total;dur=%.3f" % steps
