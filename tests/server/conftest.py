"""Sapwood servers: one for each store that all tests share, and ones of a test's own."""

import functools
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.conftest import new_database
from tests.programs import npm_packages, required
from tests.server.client import Client, Socket
from tests.server.process import Server


@pytest.fixture(scope="session")
def node() -> Path:
    """The folder of the scripts for Node, with their npm packages installed."""
    required("Node 20 or later", "node")
    return npm_packages(Path(__file__).with_name("node"))


def new_location(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    """A folder or the URL of a database, whichever the request's parameter names, for data that outlives one test."""
    if request.param == "sqlite":
        yield tmp_path_factory.mktemp("shared") / "data"
    else:
        yield from new_database(request.getfixturevalue("mongodb_url"))


class SharedServers:
    """Two servers on the same data, each started when a test first asks for it."""

    def __init__(self, location: Path | str, logs: Path) -> None:
        self._location = location
        self._logs = logs
        self._started: list[Server] = []

    @functools.cached_property
    def first(self) -> Server:
        """The server that most tests talk to."""
        return self._start()

    @functools.cached_property
    def second(self) -> Server:
        """A second server, for tests of what one server sees of another."""
        return self._start()

    def _start(self) -> Server:
        server = Server(self._location, self._logs / f"log-{len(self._started)}")
        server.start()
        self._started.append(server)
        return server

    def end(self) -> None:
        """Ends the servers that were started."""
        for server in self._started:
            server.end()
            print(server.output)


@pytest.fixture(scope="session")
def sqlite_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    """The shared servers on SQLite."""
    folder = tmp_path_factory.mktemp("shared")
    servers = SharedServers(folder / "data", folder)
    yield servers
    servers.end()


@pytest.fixture(scope="session")
def mongodb_servers(mongodb_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    """The shared servers on MongoDB."""
    for location in new_database(mongodb_url):
        servers = SharedServers(location, tmp_path_factory.mktemp("shared"))
        yield servers
        servers.end()


@pytest.fixture(scope="session", params=["sqlite", "mongodb"])
def shared_servers(request: pytest.FixtureRequest) -> SharedServers:
    """The shared servers of each store in turn. They outlive the turns, which change with every test file."""
    servers: SharedServers = request.getfixturevalue(f"{request.param}_servers")
    return servers


@pytest.fixture(scope="session")
def shared(shared_servers: SharedServers) -> Server:
    """A server that many tests talk to, each about sessions of its own, and that none of them ends."""
    return shared_servers.first


@pytest.fixture(scope="session")
def neighbour(shared: Server, shared_servers: SharedServers) -> Server:
    """A second server on the data of the shared one."""
    return shared_servers.second


@pytest.fixture
async def client(shared: Server) -> AsyncIterator[Client]:
    """An HTTP client of the shared server."""
    async with Client(lambda: shared.graphql) as client:
        yield client


@pytest.fixture
async def socket(shared: Server) -> AsyncIterator[Socket]:
    """A WebSocket to the shared server."""
    async with Socket.open(shared.socket) as socket:
        yield socket


@pytest.fixture
def name() -> str:
    """An id that no other test uses."""
    return f"s{uuid.uuid4().hex[:12]}"


class Serve(Protocol):
    """Starts a server with the given options."""

    def __call__(self, *options: str) -> Server: ...


@pytest.fixture
def serve(location: Path | str, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with further options on the test's own data, and ends those that still run after the test."""
    servers: list[Server] = []

    def start(*options: str) -> Server:
        server = Server(location, tmp_path / f"log-{len(servers)}", *options)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.end(signal.SIGTERM)
        print(server.output)
