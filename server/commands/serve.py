"""`sapwood serve`: the server, in one process or several on one port."""

import asyncio
import contextlib
import errno
import gc
import importlib.metadata
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from server.commands.options import takes_settings
from server.commands.terminal import opened
from server.settings import Settings, variable
from storage import errors

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

WAITING = 2048
"""Connections that the system queues until a process accepts them."""


@takes_settings(*Settings.model_fields)
def serve(settings: Settings) -> None:
    """Start the server and print where its data is stored and where it listens."""
    from server.auth.exposure import check_exposure

    name, guarded = asyncio.run(_inspect(settings))
    if settings.workers > 1:
        _check_documents(settings)
    listener = listen(settings.host, settings.port)
    check_exposure(settings, guarded)
    if settings.workers == 1:
        run(settings, listener, lambda: announce(name, listener, settings.host))
    else:
        _run_workers(settings, listener, lambda: announce(name, listener, settings.host))


def _check_documents(settings: Settings) -> None:
    """Raises StartupError for wrong trusted documents, once here instead of in each worker."""
    if settings.documents is not None or settings.documents_only:
        from server.trusted_documents import build

        build(settings)


async def _inspect(settings: Settings) -> tuple[str, bool]:
    """The store's name, and whether callers need a credential. Raises StartupError before anything else starts."""
    from server.auth.exposure import requires_credentials

    async with opened(settings) as store:
        return store.database.name, await requires_credentials(store.database, settings)


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket. Raises StartupError, which says what to do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise errors.StartupError(f"can't listen on {host} ({error}): use another --host") from error
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(WAITING)
    except OSError as error:
        listener.close()
        remedy = {
            errno.EADDRINUSE: "stop the program that uses the port, or use another --port (0 picks a free one)",
            errno.EACCES: "use a --port above 1023",
        }.get(error.errno or 0, "use an address of this machine as --host")
        raise errors.StartupError(f"can't listen on {host} port {port} ({error.strerror}): {remedy}") from error
    listener.set_inheritable(True)
    return listener


def address(listener: socket.socket, host: str) -> str:
    """The server's URL, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def announce(name: str, listener: socket.socket, host: str) -> None:
    """Prints one line that says where the data are and where the server listens."""
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
    """Serves in this process until SIGINT or SIGTERM, and runs `beside` along with it.

    `ready` is called once these signals are handled.
    """
    import uvicorn

    config = _config(_start(settings), settings)
    server = uvicorn.Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    # After a clean shutdown uvicorn raises the signal again, which by default would end the process as failed.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    ready()
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_serve(server, listener, beside))
    except SystemExit:
        sys.exit(1)


async def _serve(
    server: "uvicorn.Server", listener: socket.socket, beside: Callable[[], Awaitable[None]] | None
) -> None:
    task = None if beside is None else asyncio.ensure_future(beside())
    try:
        await server.serve([listener])
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _run_workers(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from server.telemetry import logs
    from server.telemetry.metrics import FOLDER

    for name, value in settings.model_dump(mode="json").items():
        if value is None:
            os.environ.pop(variable(name), None)
        else:
            os.environ[variable(name)] = str(value)
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
    """Sets up one of several processes, which gets its settings from the environment, and returns its application."""
    return _start(Settings())


def _start(settings: Settings) -> "Starlette":
    """Sets up what belongs to the whole process, and returns its application.

    Creating the application, or importing a module, changes nothing outside of itself; a process that serves does that
    here, once.
    """
    from prometheus_client import disable_created_metrics

    from server.app import create_app
    from server.telemetry import logs

    # The root logger: other packages' lines, uvicorn's too, are written as ours are.
    logs.configure(settings.log_level, settings.log_format)
    # A switch of prometheus-client for all registries: without it each counter has a second metric, its creation time.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the package types only parts
    app = create_app(settings)
    # Freeze startup objects out of GC: they live as long as the process, and each full collection would scan them.
    gc.collect()
    gc.freeze()
    # Collect less often: a big list makes many objects at once, none of them in cycles. At the default threshold
    # collections take half of the time of a page of 5,000 digests.
    gc.set_threshold(50_000, 10, 10)
    return app
