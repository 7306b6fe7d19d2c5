"""Servers: one that tests share, and ones of a test's own.

Tests with clients from npm need Node. Without it they are deselected and counted, except in CI, where they fail.
"""

import os
import shutil
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pymongo
import pytest

from tests.conftest import OUTSIDE_URL
from tests.server.client import Client, Socket
from tests.server.process import Server

NODE = shutil.which("node")
NODE_FOLDER = Path(__file__).with_name("node")
left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if NODE is not None or os.environ.get("CI"):
        return
    needing = [item for item in items if "node" in getattr(item, "fixturenames", ())]
    if needing:
        items[:] = [item for item in items if item not in needing]
        config.hook.pytest_deselected(items=needing)
        config.stash[left_out] = len(needing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (count := config.stash.get(left_out, 0)) > 0:
        terminalreporter.write_line(f"Node is missing: {count} tests with clients from npm were left out.")


@pytest.fixture(scope="session")
def node() -> Path:
    """The folder of the scripts for Node, with their packages installed."""
    assert NODE is not None, "Node is missing: install version 20 or later"
    assert (NODE_FOLDER / "node_modules").exists(), f"run npm ci in {NODE_FOLDER}, as make test does"
    return NODE_FOLDER


@pytest.fixture(scope="session", params=["sqlite", "mongodb"])
def shared_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    """The location of the shared servers' data."""
    yield from new_place(request, tmp_path_factory)


def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    """A location for data that outlive one test, of the kind that is the request's parameter."""
    if request.param == "sqlite":
        yield tmp_path_factory.mktemp("shared") / "data"
        return
    url: str = request.getfixturevalue("mongodb_url")
    name = f"test-{uuid.uuid4().hex}"
    yield urlsplit(url)._replace(path=f"/{name}").geturl()
    if OUTSIDE_URL is not None:  # our own server is deleted whole; dropping databases on it has been seen to hang
        client: pymongo.MongoClient[dict[str, Any]]
        with pymongo.MongoClient(url) as client:
            client.drop_database(name)


@pytest.fixture(scope="session")
def shared(shared_place: Path | str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that many tests share. Each uses sessions of its own, and none ends it."""
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


class Serve(Protocol):
    """Starts a server, with the options given."""

    def __call__(self, *options: str) -> Server: ...


@pytest.fixture
def serve(place: Path | str, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with further options on the test's own data, and ends those that still run after the test."""
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
