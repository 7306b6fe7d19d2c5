"""The web application, put together from its settings."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from server import frontend, graphiql, trusted_documents
from server.auth import origins
from server.auth.access import Access
from server.settings import Settings
from server.stores import open_database
from server.telemetry import traces
from server.telemetry.measured_database import MeasuredDatabase
from server.telemetry.metrics import Metrics
from server.telemetry.metrics_page import MetricsPage
from server.telemetry.middleware import TelemetryMiddleware
from server.telemetry.observer import Observer
from server.transport import refusal
from server.transport.connections import REQUEST_TIMEOUT, SEND_TIMEOUT
from server.transport.endpoint import Endpoint
from storage import errors
from storage.store import Store

READY_SECONDS = 5
"""How long the database may take to answer before the server counts as not ready."""
logger = logging.getLogger("sapwood.server")


def create_app(settings: Settings) -> Starlette:
    """The application: GraphQL at /graphql, beside it /healthz, /readyz, /metrics, and the page at / if it is built.

    Opens the store in its lifespan. Raises StartupError for trusted documents or settings of access that are wrong.
    """
    schema, documents = trusted_documents.build(settings)
    guards = origins.middleware(origins.allowed_by(settings.allowed_origins))
    metrics = Metrics()
    observer = Observer(metrics, traces.from_environment())
    endpoint = Endpoint(schema, documents, observer, settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        store = Store(MeasuredDatabase(await open_database(settings), metrics))
        access = Access(store.database, settings)
        endpoint.open(store, access)
        _add_gauges(metrics, endpoint)
        collecting = asyncio.create_task(_collect_leftovers(store))
        try:
            async with access.running(), metrics.sampled():
                yield {SEND_TIMEOUT: settings.send_timeout, REQUEST_TIMEOUT: settings.request_timeout}
        finally:
            collecting.cancel()
            await store.close()
            if observer.tracing is not None:
                await asyncio.to_thread(observer.tracing.close)

    async def readyz(_: Request) -> Response:
        return await _readiness(endpoint)

    with_graphiql = settings.graphiql and not settings.documents_only
    routes: list[BaseRoute] = [
        Route("/graphql", graphiql.GraphiQL(endpoint) if with_graphiql else endpoint),
        WebSocketRoute("/graphql", endpoint),
        Route("/healthz", _healthz),
        Route("/readyz", readyz),
        Route("/metrics", MetricsPage(metrics, settings.metrics).answer),
        *frontend.routes(settings.frontend_dir),
    ]
    if with_graphiql:
        routes.append(graphiql.files())
    telemetry = Middleware(TelemetryMiddleware, observer=observer)
    app = Starlette(routes=routes, middleware=[telemetry, *guards], lifespan=lifespan)
    app.router.default = _not_found
    return app


def _add_gauges(metrics: Metrics, endpoint: Endpoint) -> None:
    live, operations = endpoint.store.live, endpoint.operations
    metrics.gauge("operations_running", "Queries and mutations under way", lambda: operations.running)
    metrics.gauge("subscriptions", "Subscriptions that wait for wake-ups", lambda: live.hub.count)
    metrics.gauge("feed_lag_seconds", "How long the slowest subscription is behind", lambda: live.hub.lag, largest=True)
    metrics.gauge("feed_buffer_bytes", "Memory that cached recent commits take", lambda: live.recent.memory)
    metrics.gauge("tasks", "Tasks of the event loop", lambda: len(asyncio.all_tasks()))


async def _collect_leftovers(store: Store) -> None:
    try:
        await store.collect_leftovers()
    except errors.Unavailable as error:
        logger.warning("commits of deleted sessions may remain until the next start: %s", error)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuses requests and WebSockets of other paths."""
    error = errors.NotFound(f"{scope['path'][:200]}: nothing is served here; the API is at /graphql")
    await refusal.response(error, 404)(scope, receive, send)


async def _healthz(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _readiness(endpoint: Endpoint) -> Response:
    """200 if the database takes writes and changes of other processes are followed, else 503 and the reason."""
    problem: str | None = None
    try:
        async with asyncio.timeout(READY_SECONDS):
            await endpoint.store.database.ping()
    except errors.Unavailable as error:
        problem = error.message
    except TimeoutError:
        problem = f"the database has not answered for {READY_SECONDS} seconds"
    if problem is None and not endpoint.store.live.alive:
        problem = "changes of other processes are not being followed"
    body: dict[str, Any] = {"status": "ready"} if problem is None else {"status": "unavailable", "reason": problem}
    body["subscriptions"] = endpoint.store.live.hub.count
    body["operations"] = endpoint.operations.running
    return JSONResponse(body, status_code=200 if problem is None else 503)
