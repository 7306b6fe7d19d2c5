"""Servers to talk to: one that tests share, and ones of a test's own."""

import signal
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pymongo
import pytest

from tests.server.client import Client, Socket
from tests.server.process import Server

Serve = Callable[..., Server]


@pytest.fixture(scope="session", params=["sqlite", "mongodb"])
def shared_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    """Where the data of the shared servers are."""
    yield from new_place(request, tmp_path_factory)


def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    """A place for data that outlives one test, of the kind that is the request's parameter."""
    if request.param == "sqlite":
        yield tmp_path_factory.mktemp("shared") / "data"
        return
    url: str = request.getfixturevalue("mongodb_url")
    name = f"test-{uuid.uuid4().hex}"
    yield urlsplit(url)._replace(path=f"/{name}").geturl()
    with pymongo.MongoClient(url) as client:
        client.drop_database(name)


@pytest.fixture(scope="session")
def shared(shared_place: Path | str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that many tests talk to, each about sessions of its own, and that none of them ends."""
    server = Server(shared_place, tmp_path_factory.mktemp("shared") / "log")
    server.start()
    yield server
    server.end()
    print(server.output)


@pytest.fixture(scope="session")
def neighbour(shared: Server, shared_place: Path | str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A second server on the data of the shared one."""
    server = Server(shared_place, tmp_path_factory.mktemp("neighbour") / "log")
    server.start()
    yield server
    server.end()
    print(server.output)


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


@pytest.fixture
def serve(place: Path | str, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers, with further options, on the test's own data, and ends those that still run after the test."""
    servers: list[Server] = []

    def start(*options: str) -> Server:
        server = Server(place, tmp_path / f"log-{len(servers)}", *options)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.end(signal.SIGTERM)
        print(server.output)
