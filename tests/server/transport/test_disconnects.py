"""Queries of disconnected clients and queries that take too long, and clients that stop reading."""

import asyncio
import contextlib
import json
import re
import socket as sockets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.conftest import MongoServer
from tests.server.client import IN_TIME, Client, Socket, begin, subscribe_message
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, texts, user
from tests.server.process import Server
from tests.server.transport.test_sockets import has_subscriptions
from tests.server.transport.test_streams import opened

WIDTH = 10
LONG = """query($id: ID!) { topologyNode(id: $id) {
  children { parent { children { parent { children { parent { children { parent { children { id } } } } } } } } } } }"""
"""Looks up WIDTH ** 5 nodes, which takes long on any machine."""
DEAR = ("--max-cost", "1000000000000")
"""Settings that let such a query start at all."""


async def wide(client: Client, id: str) -> None:
    """A session with so many children."""
    await create(client, id)
    await asyncio.gather(*(create(client, f"{id}-{index}", id) for index in range(WIDTH)))


async def under_way(server: Server, count: int) -> None:
    """Returns once the server runs so many queries and mutations."""
    async with asyncio.timeout(IN_TIME):
        while (await asyncio.to_thread(server.ready))[1]["operations"] != count:  # noqa: ASYNC110  # another process's
            await asyncio.sleep(0.02)


async def test_a_query_that_takes_too_long_is_stopped_on_every_transport(serve: Serve, name: str) -> None:
    """The refusal names the limit; others are answered, and a feed has no deadline."""
    server = serve("--deadline", "0.2", *DEAR)
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        await wide(client, name)
        live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        refusal = await client.refusal(LONG, id=name)
        assert (refusal.code, "0.2 s" in refusal.message) == ("UNAVAILABLE", True)
        refusal = await (await socket.subscribe(LONG, id=name)).refusal()
        assert refusal.code == "UNAVAILABLE"
        async with opened(server, LONG, id=name) as (_, events):
            event, answer = await events.next()
            assert (event, answer["errors"][0]["extensions"]["code"]) == ("next", "UNAVAILABLE")
            assert await events.next() == ("complete", None)
        async with httpx.AsyncClient(timeout=IN_TIME, verify=False) as http:
            answer = await http.post(server.graphql, json={"query": LONG, "variables": {"id": name}})
        assert (answer.status_code, list(answer.json())) == (503, ["errors"])
        await under_way(server, 0)
        await append(client, name, *texts(1))
        assert (await live.next())["sessionEvents"]["seq"] == 0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[MongoServer]:
    """A database that can be paused."""
    database = MongoServer(tmp_path / "mongodb")
    database.start()
    yield database
    database.resume()
    database.stop()


async def test_queries_of_disconnected_clients_are_stopped(
    request: pytest.FixtureRequest, database: MongoServer, tmp_path: Path, name: str
) -> None:
    """On every transport, while the database does not answer. A query whose client stays is answered when it does."""
    server = Server(f"{database.url}leaving", tmp_path / "log", *DEAR)
    server.start()
    request.addfinalizer(server.end)
    query = "query($id: ID!) { session(id: $id) { id } }"
    body = json.dumps({"query": query, "variables": {"id": name}}).encode()
    subscribe = json.dumps(subscribe_message("1", query, {"id": name}))
    where = urlsplit(server.url)
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        completing, dropped = await begin(server.socket), await begin(server.socket)
        database.pause()
        staying = asyncio.create_task(client.run(query, id=name))
        requests = []
        for accept in ("*/*", "text/event-stream"):
            _, writer = await asyncio.open_connection(where.hostname, where.port)
            head = (
                f"POST /graphql HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\ncontent-type: application/json\r\n"
            )
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            requests.append(writer)
        await completing.send(subscribe)
        await dropped.send(subscribe)
        await under_way(server, 5)
        for writer in requests:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await completing.send('{"type": "complete", "id": "1"}')
        dropped.transport.abort()
        await dropped.wait_closed()
        await under_way(server, 1)
        assert not staying.done()
        database.resume()
        assert await staying == {"session": {"id": name}}
        await completing.close()
    assert server.end() == 0


async def stalled(server: Server, raw: sockets.socket) -> None:
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 64 * 1024)
    raw.setblocking(False)
    where = urlsplit(server.url)
    await asyncio.get_running_loop().sock_connect(raw, (where.hostname, where.port))


async def fill(client: Client, id: str) -> None:
    """Appends more than the buffers of both sides hold."""
    for _ in range(3):
        await append(client, id, *(user("x" * 100_000) for _ in range(40)))


async def test_a_stalled_socket_is_closed_with_the_position_to_resume_from(serve: Serve, name: str) -> None:
    """A client that reads on in time gets what was sent, then the reason, with a seq that it has not seen past."""
    server = serve("--send-timeout", "1")
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        await create(client, name)
        healthy = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        with sockets.socket() as raw:
            await stalled(server, raw)
            connection = await begin(server.socket, sock=raw, max_queue=1)
            connection.transport.pause_reading()
            await connection.send(json.dumps(subscribe_message("feed", FOLLOW, {"id": name, "from": 0})))
            await has_subscriptions(server, 2)
            await fill(client, name)
            await has_subscriptions(server, 1)
            connection.transport.resume_reading()
            seen = -1
            with contextlib.suppress(ConnectionClosed):
                async for frame in connection:
                    seen = json.loads(frame)["payload"]["data"]["sessionEvents"]["seq"]
            found = re.search(r"feed=(\d+)", connection.close_reason or "")
            assert connection.close_code == 1013 and found is not None, connection.close_reason
            assert int(found.group(1)) in (seen, seen + 1)
        assert len(await healthy.take(120)) == 120


async def test_a_stalled_event_stream_is_cut_off(serve: Serve, name: str) -> None:
    server = serve("--send-timeout", "1")
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        with sockets.socket() as raw:
            await stalled(server, raw)
            body = json.dumps({"query": FOLLOW, "variables": {"id": name, "from": 0}})
            head = "POST /graphql HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n"
            head += "content-type: application/json\r\n"
            request = f"{head}content-length: {len(body)}\r\n\r\n{body}"
            await asyncio.get_running_loop().sock_sendall(raw, request.encode())
            await has_subscriptions(server, 1)
            await fill(client, name)
            await has_subscriptions(server, 0)


async def test_a_slow_reader_is_not_dropped(serve: Serve, name: str) -> None:
    """It needs several times the send timeout to read what is sent, and gets all of it."""
    server = serve("--send-timeout", "1")
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        await fill(client, name)
        with sockets.socket() as raw:
            await stalled(server, raw)
            connection = await begin(server.socket, sock=raw, max_queue=1)
            await connection.send(json.dumps(subscribe_message("1", FOLLOW, {"id": name, "from": 0})))
            seen: list[Any] = []
            for seq in range(120):
                async with asyncio.timeout(IN_TIME):
                    seen.append(json.loads(await connection.recv())["payload"]["data"]["sessionEvents"]["seq"])
                if seq % 12 == 0:
                    await asyncio.sleep(0.4)  # the slowness itself
            assert seen == list(range(120))
            await connection.close()
