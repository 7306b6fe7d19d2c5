"""The web application, put together from its settings."""

import asyncio
import contextlib
import gc
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
from server.telemetry.measured_database import MeasuredDatabase
from server.telemetry.metrics import Metrics
from server.telemetry.metrics_page import Scraping
from server.telemetry.observer import Observer
from server.telemetry.traces import tracing
from server.telemetry.traffic import Traffic
from server.transport.connections import SEND_TIMEOUT
from server.transport.endpoint import Endpoint
from storage import errors
from storage.store import Store

READY_SECONDS = 5
logger = logging.getLogger("sapwood.server")


class Served:
    """The endpoint, once the store is open."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.endpoint: Endpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.endpoint is not None
        await self.endpoint(scope, receive, send)


async def _collect_leftovers(store: Store) -> None:
    try:
        await store.collect_leftovers()
    except errors.Unavailable as error:
        logger.warning("commits of deleted sessions may be left over until the next start: %s", error)


def _gauge(metrics: Metrics, store: Store, endpoint: Endpoint) -> None:
    live = store.live
    metrics.gauge("operations_running", "Queries and mutations under way", lambda: endpoint.operations.running)
    metrics.gauge("subscriptions", "Subscriptions that wait for wake-ups", lambda: live.hub.count)
    metrics.gauge("feed_lag_seconds", "How long the slowest subscription is behind", lambda: live.hub.lag, largest=True)
    metrics.gauge("feed_buffer_bytes", "Memory that cached recent commits take", lambda: live.recent.memory)
    metrics.gauge("tasks", "Tasks of the event loop", lambda: len(asyncio.all_tasks()))


def create_app(settings: Settings) -> Starlette:
    """The application: GraphQL at /graphql, beside it /healthz, /readyz, /metrics, and the page at / if it was built.

    Opens the store in its lifespan. Raises StartupError for trusted documents or settings of access that are wrong.
    """
    schema, trusted = trusted_documents.build(settings)
    guards = origins.middleware(origins.allowed_by(settings.allowed_origins))
    metrics = Metrics()
    observer = Observer(metrics, tracing())
    served = Served()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        store = Store(MeasuredDatabase(await open_database(settings), metrics))
        access = Access(store.database, settings)
        served.store, served.endpoint = store, Endpoint(schema, store, access, settings, trusted, observer)
        _gauge(metrics, store, served.endpoint)
        # What is there now stays for good. Big lists make many objects at once, none of them in cycles: looking
        # through all of them again and again costs half of the time of a page of 5,000 digests.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 10, 10)
        collecting = asyncio.create_task(_collect_leftovers(store))
        try:
            async with access.running(), metrics.sampled():
                yield {SEND_TIMEOUT: settings.send_timeout}
        finally:
            collecting.cancel()
            await store.close()
            if observer.tracing is not None:
                await asyncio.to_thread(observer.tracing.close)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        assert served.store is not None and served.endpoint is not None
        problem: str | None = None
        try:
            async with asyncio.timeout(READY_SECONDS):
                await served.store.database.ping()
        except errors.Unavailable as error:
            problem = error.message
        except TimeoutError:
            problem = f"the database has not answered for {READY_SECONDS} seconds"
        if problem is None and not served.store.live.alive:
            problem = "changes of other processes are not being followed"
        body: dict[str, Any] = {"status": "ready"} if problem is None else {"status": "unavailable", "reason": problem}
        body["subscriptions"] = served.store.live.hub.count
        body["operations"] = served.endpoint.operations.running
        return JSONResponse(body, status_code=200 if problem is None else 503)

    with_graphiql = settings.graphiql and not settings.documents_only
    routes: list[BaseRoute] = [
        Route("/graphql", graphiql.GraphiQL(served) if with_graphiql else served),
        WebSocketRoute("/graphql", served),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", Scraping(metrics, settings.metrics).answer),
        *frontend.routes(settings.frontend_dir),
    ]
    if with_graphiql:
        routes.append(graphiql.files())
    return Starlette(routes=routes, middleware=[Middleware(Traffic, observer=observer), *guards], lifespan=lifespan)
