"""`sapwood serve`: the server, in one process or several on the same port."""

import asyncio
import contextlib
import errno
import importlib.metadata
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from server.commands.options import (
    DEFAULTS,
    AllowedOrigins,
    DatabaseUrl,
    DataDir,
    Deadline,
    Documents,
    DocumentsOnly,
    FrontendDir,
    Grace,
    Graphiql,
    Host,
    Insecure,
    Introspection,
    JwtAudience,
    JwtIssuer,
    JwtJwksUrl,
    JwtRoleClaim,
    JwtSecret,
    JwtSpaceClaim,
    LogFormat,
    LogLevel,
    MaxCost,
    Metrics,
    Port,
    Rate,
    RateBurst,
    SendTimeout,
    SocketsPerKey,
    Workers,
    settings_of,
)
from server.commands.terminal import opened
from server.settings import Settings
from storage import errors

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

WAITING = 2048
"""Connections that the system keeps waiting until a process accepts them."""


def serve(
    host: Host = DEFAULTS.host,
    port: Port = DEFAULTS.port,
    database_url: DatabaseUrl = DEFAULTS.database_url,
    data_dir: DataDir = DEFAULTS.data_dir,
    workers: Workers = DEFAULTS.workers,
    insecure: Insecure = DEFAULTS.insecure,
    allowed_origins: AllowedOrigins = DEFAULTS.allowed_origins,
    jwt_secret: JwtSecret = DEFAULTS.jwt_secret,
    jwt_jwks_url: JwtJwksUrl = DEFAULTS.jwt_jwks_url,
    jwt_issuer: JwtIssuer = DEFAULTS.jwt_issuer,
    jwt_audience: JwtAudience = DEFAULTS.jwt_audience,
    jwt_space_claim: JwtSpaceClaim = DEFAULTS.jwt_space_claim,
    jwt_role_claim: JwtRoleClaim = DEFAULTS.jwt_role_claim,
    deadline: Deadline = DEFAULTS.deadline,
    send_timeout: SendTimeout = DEFAULTS.send_timeout,
    grace: Grace = DEFAULTS.grace,
    max_cost: MaxCost = DEFAULTS.max_cost,
    introspection: Introspection = DEFAULTS.introspection,
    documents: Documents = DEFAULTS.documents,
    documents_only: DocumentsOnly = DEFAULTS.documents_only,
    rate: Rate = DEFAULTS.rate,
    rate_burst: RateBurst = DEFAULTS.rate_burst,
    sockets_per_key: SocketsPerKey = DEFAULTS.sockets_per_key,
    graphiql: Graphiql = DEFAULTS.graphiql,
    metrics: Metrics = DEFAULTS.metrics,
    log_level: LogLevel = DEFAULTS.log_level,
    log_format: LogFormat = DEFAULTS.log_format,
    frontend_dir: FrontendDir = DEFAULTS.frontend_dir,
) -> None:
    """Starts the server and says where its data are and where it listens."""
    settings = settings_of(**locals())  # each argument is a setting
    from server.auth.exposure import check_exposure

    name, guarded = asyncio.run(_look(settings))
    if settings.workers > 1:
        _check_documents(settings)
    listener = listen(settings.host, settings.port)
    check_exposure(settings, guarded)
    if settings.workers == 1:
        run(settings, listener, lambda: announce(name, listener, settings.host))
    else:
        _run_workers(settings, listener, lambda: announce(name, listener, settings.host))


def _check_documents(settings: Settings) -> None:
    """Raises StartupError for trusted documents that are wrong, once and not in each process."""
    if settings.documents is not None or settings.documents_only:
        from server.trusted_documents import build

        build(settings)


async def _look(settings: Settings) -> tuple[str, bool]:
    """What the store is called, and whether callers need a credential.

    Raises StartupError before anything else is begun.
    """
    from server.auth.exposure import is_guarded

    async with opened(settings) as store:
        return store.database.name, await is_guarded(store.database, settings)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on. Raises StartupError with what to do about it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise errors.StartupError(f"{host} is no address to listen on ({error}): give another --host") from error
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(WAITING)
    except OSError as error:
        listener.close()
        remedy = {
            errno.EADDRINUSE: "end what listens there, or choose another --port (0 takes a free one)",
            errno.EACCES: "choose a --port above 1023",
        }.get(error.errno or 0, "give an address of this machine as --host")
        raise errors.StartupError(f"can't listen on {host} port {port} ({error.strerror}): {remedy}") from error
    listener.set_inheritable(True)
    return listener


def address(listener: socket.socket, host: str) -> str:
    """Where the server answers, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def announce(name: str, listener: socket.socket, host: str) -> None:
    """Says on one line where the data are and where the server listens."""
    version = importlib.metadata.version("sapwood")
    line = f"Sapwood {version} keeps its data in {name} and listens on {address(listener, host)}/graphql"
    print(line, flush=True)


def _config(app: "Starlette | str", settings: Settings, **given: Any) -> "uvicorn.Config":
    import uvicorn

    from server.transport.connections import HttpConnection, SocketConnection
    from server.transport.http import MAX_BODY

    return uvicorn.Config(
        app,
        http=HttpConnection,
        ws=SocketConnection,
        ws_max_size=MAX_BODY,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=settings.grace,
        **given,
    )


def run(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[], None],
    beside: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serves in this process until a signal ends it, and does something else `beside` if that is given.

    `ready` is called once signals are heard.
    """
    import uvicorn

    from server.app import create_app
    from server.telemetry import logs

    logs.configure(settings.log_level, settings.log_format)
    config = _config(create_app(settings), settings)
    server = uvicorn.Server(config)

    def end(*_: object) -> None:
        server.should_exit = True

    # Uvicorn ends in good order and then raises the signal again, which would count as a failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    ready()
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_serve(server, listener, beside))
    except SystemExit:
        sys.exit(1)


async def _serve(
    server: "uvicorn.Server", listener: socket.socket, beside: Callable[[], Awaitable[None]] | None
) -> None:
    other = None if beside is None else asyncio.ensure_future(beside())
    try:
        await server.serve([listener])
    finally:
        if other is not None:
            other.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await other


def _run_workers(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from server.telemetry import logs
    from server.telemetry.metrics import FOLDER

    for name, value in settings.model_dump(mode="json").items():
        variable = f"SAPWOOD_{name.upper()}"
        if value is None:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = str(value)
    config = _config("server.commands.serve:app_of_worker", settings, factory=True, workers=settings.workers)
    logs.configure(settings.log_level, settings.log_format)
    with tempfile.TemporaryDirectory(prefix="sapwood-metrics-") as folder:
        os.environ[FOLDER] = folder
        supervisor = Multiprocess(config, sockets=[listener])
        ready()
        supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        sys.exit(1)


def app_of_worker() -> "Starlette":
    """The application of one of several processes, whose settings come by the environment."""
    from server.app import create_app
    from server.telemetry import logs

    settings = Settings()
    logs.configure(settings.log_level, settings.log_format)
    return create_app(settings)
