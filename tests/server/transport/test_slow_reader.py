"""A client that stops reading."""

import asyncio
import contextlib
import json
import socket as sockets
from collections.abc import Coroutine, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.conftest import new_mongodb
from tests.server.client import IN_TIME, Client, Socket, begin, subscribe_message
from tests.server.conftest import Serve
from tests.server.operations import append, create, user
from tests.server.process import Server

EVENTS = 10_000
AT_ONCE = 50
STALLED = 40
TEXT = "x" * 4_000
"""All events make 40 MB: several times the socket buffers of both sides."""
RECEIVE_BUFFER = 64 * 1024
MOST_GROWTH = 20 * 1024 * 1024
MOST_GROWTH_EACH = 2 * 1024 * 1024
FOLLOW = """
subscription($id: ID!, $from: Int) { sessionEvents(sessionId: $id, fromSeq: $from) {
  seq ... on UserMessage { content }
} }
"""


@pytest.fixture(scope="module")
def mongodb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own: one with the data of all other tests is too slow for readers of this much."""
    yield from new_mongodb(tmp_path_factory)


async def write_all(client: Client, socket: Socket, id: str, count: int) -> None:
    """Appends so many events, while a subscriber that reads gets each one in time."""
    stream = await socket.subscribe(FOLLOW, id=id, **{"from": 0})
    for first in range(0, count, AT_ONCE):
        await append(client, id, *(user(TEXT) for _ in range(AT_ONCE)))
        found = await stream.take(AT_ONCE)
        assert [result["sessionEvents"]["seq"] for result in found] == list(range(first, first + AT_ONCE))
    await stream.stop()


async def stall(server: Server, id: str, from_seq: int) -> ClientConnection:
    """A subscriber with a small receive buffer whose messages nobody reads."""
    raw = sockets.socket()
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, RECEIVE_BUFFER)
    raw.connect((urlsplit(server.url).hostname, urlsplit(server.url).port))
    connection = await begin(server.socket, sock=raw, max_queue=1)
    await connection.send(json.dumps(subscribe_message("1", FOLLOW, {"id": id, "from": from_seq})))
    return connection


async def test_a_client_that_stops_reading_costs_no_memory_delays_nobody_and_loses_nothing(
    serve: Serve, name: str
) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        other = await create(client, f"{name}-other")
        await write_all(client, socket, other, EVENTS)
        assert len(await read_on(server, other, await stall(server, other, 0), EVENTS)) == EVENTS
        id = await create(client, name)
        before = server.process.memory_info().rss
        connection = await stall(server, id, 0)
        most = await most_memory(server, write_all(client, socket, id, EVENTS))
        assert most - before < MOST_GROWTH, f"{(most - before) / 2**20:.1f} MiB"
        assert await read_on(server, id, connection, EVENTS) == list(range(EVENTS))


async def test_many_clients_that_stop_reading_cost_no_memory_either(serve: Serve, name: str) -> None:
    """A subscription holds its next seq, not the events that it will send."""
    server = serve()
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        id = await create(client, name)
        await write_all(client, socket, id, EVENTS // 2)
        before = server.process.memory_info().rss
        other = await create(client, f"{name}-other")
        async with contextlib.AsyncExitStack() as stalled:
            for _ in range(STALLED):
                stalled.push_async_callback(_drop, await stall(server, id, 0))
            most = await most_memory(server, write_all(client, socket, other, EVENTS // 10))
        assert most - before < STALLED * MOST_GROWTH_EACH, f"{(most - before) / 2**20:.1f} MiB"


async def _drop(connection: ClientConnection) -> None:
    connection.transport.abort()
    await connection.wait_closed()


async def most_memory(server: Server, work: Coroutine[Any, Any, None]) -> int:
    """The server's peak memory while this work runs."""
    working = asyncio.create_task(work)
    most = 0
    while not working.done():
        most = max(most, server.process.memory_info().rss)
        await asyncio.wait([working], timeout=0.05)
    await working
    return max(most, server.process.memory_info().rss)


async def read_on(server: Server, id: str, connection: ClientConnection, count: int) -> list[int]:
    """The seqs of all events, read from the stalled socket, or by resuming if it is closed."""
    seen: list[int] = []
    while len(seen) < count:
        with contextlib.suppress(ConnectionClosed):
            while len(seen) < count:
                async with asyncio.timeout(IN_TIME):
                    message = json.loads(await connection.recv())
                event = message["payload"]["data"]["sessionEvents"]
                assert event["content"] == TEXT
                seen.append(event["seq"])
        if len(seen) < count:
            connection = await begin(server.socket)
            await connection.send(json.dumps(subscribe_message("1", FOLLOW, {"id": id, "from": len(seen)})))
    await connection.close()
    return seen
