"""The two stores that tests run on: an SQLite file of the test's own, and a database on a shared MongoDB server."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest
from hypothesis import HealthCheck, settings
from pymongo.errors import PyMongoError

from storage.mongo.client import open_url
from storage.sqlite.database import open_file
from storage.store import Store
from tests.effort import PROFILE

OUTSIDE_URL = os.environ.get("SAPWOOD_TEST_MONGODB_URL")
START_SECONDS = 300.0
STOP_SECONDS = 60.0
PATIENCE = "serverSelectionTimeoutMS=120000&connectTimeoutMS=120000&socketTimeoutMS=300000"
"""Longer than the store's own timeouts, which a busy machine can exceed."""

# A slow machine fails no test. In CI the examples are the same each time, so that luck decides about no change.
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI")))
settings.register_profile("everyday", COMMON, max_examples=25)
settings.register_profile("long", COMMON, max_examples=150)
settings.load_profile(PROFILE)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells make background jobs ignore interrupts, and the processes that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

OpenStore = Callable[[], Coroutine[Any, Any, Store]]


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Makes a failure's report fit to be sent from a test process: lone surrogates in it would end the whole run."""
    return without_surrogates((yield))


def without_surrogates(value: Any) -> Any:
    """The value with lone surrogates in its texts escaped."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
        case list() | tuple():
            return type(value)(map(without_surrogates, value))
    return value


class MongoServer:
    """A SecantusDB process with its own data folder and port, which survive restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's URL, without a database."""
        return f"mongodb://127.0.0.1:{self._port}/"

    def start(self) -> None:
        """Starts the process and returns once it answers a ping."""
        self._folder.mkdir(parents=True, exist_ok=True)
        command = Path(sys.executable).with_name("secantusd-py")
        arguments = ["--host", "127.0.0.1", "--port", str(self._port), "--storage-path", str(self._folder / "data")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [command, *arguments, "--sync-on-commit"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"SecantusDB did not start: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        client: pymongo.MongoClient[dict[str, Any]]
        with pymongo.MongoClient(self.url, serverSelectionTimeoutMS=1_000) as client:
            try:
                client.admin.command("ping")
            except PyMongoError:
                return False
            return True

    def kill(self) -> None:
        """Ends the process at once, as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks the process to shut down, and waits until it has."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Suspends the process: it answers nothing until it is resumed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resumes the process if it is paused."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, signal_number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(signal_number)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def mongodb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a MongoDB server: SAPWOOD_TEST_MONGODB_URL if that is set, else a SecantusDB process."""
    yield from new_mongodb(tmp_path_factory)


def new_mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same, but a process that no other test uses."""
    if OUTSIDE_URL is not None:
        yield OUTSIDE_URL
        return
    server = MongoServer(tmp_path_factory.mktemp("mongodb"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def mongodb_database(mongodb_url: str) -> Iterator[str]:
    """The URL of a database of the test's own."""
    yield from new_database(mongodb_url)


def new_database(mongodb_url: str) -> Iterator[str]:
    """The URL of a new database, dropped afterwards unless the server is SecantusDB, which a drop can hang."""
    name = f"test-{uuid.uuid4().hex}"
    parts = urlsplit(mongodb_url)
    query = f"{parts.query}&{PATIENCE}" if parts.query else PATIENCE
    yield parts._replace(path=f"/{name}", query=query).geturl()
    if OUTSIDE_URL is not None:
        client: pymongo.MongoClient[dict[str, Any]]
        with pymongo.MongoClient(mongodb_url) as client:
            client.drop_database(name)


@pytest.fixture(params=["sqlite", "mongodb"])
def location(request: pytest.FixtureRequest) -> Path | str:
    """Where a store keeps its data: a folder or the URL of a database, empty at first."""
    if request.param == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return folder / "data"
    url: str = request.getfixturevalue("mongodb_database")
    return url


@pytest.fixture
def opening(location: Path | str) -> OpenStore:
    """Opens stores on the test's data. Whoever opens one closes it."""

    async def open_one() -> Store:
        return Store(await (open_file(location) if isinstance(location, Path) else open_url(location)))

    return open_one


@pytest.fixture
async def open_store(opening: OpenStore) -> AsyncIterator[OpenStore]:
    """Opens stores on the same data, as separate processes would, and closes them after the test."""
    async with contextlib.AsyncExitStack() as opened:

        async def open_one() -> Store:
            store = await opening()
            opened.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    """An open store on an empty database."""
    return await open_store()
