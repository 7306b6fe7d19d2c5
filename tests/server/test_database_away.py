"""A database that becomes unavailable under a running server, and returns."""

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from storage.sqlite.database import FILE
from tests.conftest import MongoServer
from tests.server.client import Client, Refused, Socket, Stream, begin
from tests.server.operations import FOLLOW, append, create, log, slot_writes_until_sent, texts
from tests.server.process import Server

BACK_SECONDS = 300.0
ALIVE_SECONDS = 5.0
SHARED_LOCKS = (8, 120)
"""Size and offset in bytes of the locks in SQLite's shared memory file (sqlite.org/walformat.html)."""
WRITE = "mutation { createSession(input: {}) { session { id } } }"
SPACE = "subscription($positions: [SessionPosition!]) { spaceEvents(positions: $positions) { sessionId seq } }"
SLOTS = "subscription($root: ID) { slotChanges(rootId: $root) { name slot { version } } }"
FOREST = """subscription($root: ID) { forestChanges(rootId: $root) {
  ... on ForestSnapshot { forest { nodeCount } } ... on ForestDelta { upserted { id head } } } }"""


@dataclass
class Outage:
    """Takes the database from under a server and brings it back; `reads` says whether it can still be read."""

    server: Server
    begin: Callable[[], None]
    end: Callable[[], None]
    reads: bool


@pytest.fixture(params=["sqlite locked", "sqlite without disk space", "mongodb killed"])
def outage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outage]:
    """A server on each store, with a way to take its database away.

    The SQLite file can't be used while another process holds all of its locks, nor written where no byte more fits on
    the disk, which a limit on the process's files is like.
    """
    with contextlib.ExitStack() as stack:
        if request.param == "mongodb killed":
            database = MongoServer(tmp_path / "mongodb")
            database.start()
            stack.callback(database.stop)
            server = Server(f"{database.url}away", tmp_path / "log")
            outage = Outage(server, database.kill, database.start, reads=False)
        else:
            server = Server(tmp_path / "data", tmp_path / "log")
            if request.param == "sqlite locked":
                held = _Locks(tmp_path / "data" / f"{FILE}-shm")
                stack.callback(held.close)
                outage = Outage(server, held.take, held.close, reads=False)
            else:
                outage = Outage(server, lambda: _limit_files(server, 0), lambda: _limit_files(server, None), reads=True)
        server.start()
        stack.callback(server.end)
        yield outage


class _Locks:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        self._file = self._path.open("r+b")
        fcntl.lockf(self._file, fcntl.LOCK_EX, *SHARED_LOCKS)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _limit_files(server: Server, bytes: int | None) -> None:
    _, hard = server.process.rlimit(psutil.RLIMIT_FSIZE)
    server.process.rlimit(psutil.RLIMIT_FSIZE, (hard if bytes is None else bytes, hard))


@contextlib.asynccontextmanager
async def away(outage: Outage) -> AsyncIterator[None]:
    """A context during which the database is away."""
    await asyncio.to_thread(outage.begin)
    try:
        yield
    finally:
        await asyncio.to_thread(outage.end)


async def until_done(operation: Callable[[], Awaitable[Any]]) -> Any:
    """The result of an operation that is retried while the database is unavailable."""
    async with asyncio.timeout(BACK_SECONDS):
        while True:
            try:
                return await operation()
            except Refused as refused:
                if refused.code != "UNAVAILABLE":
                    raise
            await asyncio.sleep(0.05)


async def subscribe_to_all(client: Client, socket: Socket, root: str) -> dict[str, Stream]:
    """A subscription of each kind, all registered and with nothing left to send."""
    slots = await socket.subscribe(SLOTS, root=root)
    await slot_writes_until_sent(client, slots, root)
    events = await socket.subscribe(FOLLOW, id=root, **{"from": 0})
    space = await socket.subscribe(SPACE, positions=[{"sessionId": root, "fromSeq": 0}])
    forest = await socket.subscribe(FOREST, root=root)
    assert len(await events.take(3)) == len(await space.take(3)) == 3
    assert (await forest.next())["forestChanges"] == {"forest": {"nodeCount": 1}}
    return {"events": events, "space": space, "forest": forest, "slots": slots}


async def test_requests_are_unavailable_and_subscriptions_wait_during_an_outage(outage: Outage) -> None:
    """No request gets a wrong answer, and no subscriber gets an error or misses an event."""
    server = outage.server
    query = "query($id: ID!) { session(id: $id) { head } }"
    put = 'mutation($id: ID!) { putInsight(input: {sessionId: $id, content: "x"}) { sessionId } }'
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        await create(client, "root")
        await append(client, "root", *texts(3))
        streams = await subscribe_to_all(client, socket, "root")
        async with away(outage):

            async def refused(operation: Awaitable[Any]) -> None:
                with pytest.raises(Refused) as refusal:
                    await operation
                assert refusal.value.code == "UNAVAILABLE", refusal.value

            async def follow() -> None:
                await (await socket.subscribe(FOLLOW, id="root", **{"from": 0})).next()

            writes = [append(client, "root", *texts(2, 3), idempotencyKey="k"), client.run(put, id="root")]
            reads = [client.run(query, id="root"), follow()]
            if outage.reads:
                await asyncio.gather(*map(refused, writes), *reads)
            else:
                await asyncio.gather(*map(refused, [*writes, *reads]))
            for name, stream in streams.items():
                assert stream.messages.empty(), f"{name} got {stream.messages.get_nowait()}"
        done = await until_done(lambda: append(client, "root", *texts(2, 3), idempotencyKey="k"))
        assert (done["firstSeq"], done["head"]) == (3, 5)
        await until_done(lambda: client.run(put, id="root"))
        stored = await log(client, "root")
        assert [event["content"] for event in stored] == [f"message {seq}" for seq in range(5)]
        assert [result["sessionEvents"] for result in await streams["events"].take(2)] == stored[3:]
        sent = [result["spaceEvents"] for result in await streams["space"].take(2)]
        assert sent == [{"sessionId": "root", "seq": seq} for seq in (3, 4)]
        assert (await streams["slots"].next())["slotChanges"]["name"] == "INSIGHT"
        while (await streams["forest"].next())["forestChanges"]["upserted"] != [{"id": "root", "head": 5}]:
            pass
        await append(client, "root", *texts(1, 5))
        assert (await streams["events"].next())["sessionEvents"]["seq"] == 5
        assert (await streams["space"].next())["spaceEvents"]["seq"] == 5


async def test_readiness_follows_an_outage(outage: Outage) -> None:
    """While nothing can be written, the server is not ready and reports the reason."""
    server = outage.server
    async with Client(lambda: server.graphql) as client:
        await create(client, "root")
        assert (await asyncio.to_thread(server.ready))[0] == 200
        async with away(outage):
            refusal, (status, answer) = await asyncio.gather(client.refusal(WRITE), asyncio.to_thread(server.ready))
            assert refusal.code == "UNAVAILABLE"
            assert (status, answer["status"]) == (503, "unavailable")
            assert answer["reason"]
        async with asyncio.timeout(BACK_SECONDS):
            while (await asyncio.to_thread(server.ready))[0] != 200:  # noqa: ASYNC110  # another process's state
                await asyncio.sleep(0.05)
        await until_done(lambda: create(client, "again"))


async def test_the_server_answers_what_needs_no_database(outage: Outage) -> None:
    """Requests that wait for the database do not hold up others."""
    server = outage.server
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        await create(client, "root")
        await append(client, "root", *texts(1))
        stream = await socket.subscribe(FOLLOW, id="root", **{"from": 0})
        await stream.next()
        async with away(outage):
            waiting = asyncio.create_task(client.refusal(WRITE))
            async with httpx.AsyncClient(verify=False, timeout=ALIVE_SECONDS) as http:
                while not waiting.done():
                    assert (await http.get(f"{server.url}/healthz")).status_code == 200
                    await asyncio.wait([waiting], timeout=0.1)
            assert (await waiting).code == "UNAVAILABLE"


async def test_a_new_socket_is_closed_with_try_again_later(outage: Outage) -> None:
    """The caller can't be looked up, so the close code must not be that of a forbidden one."""
    server = outage.server
    await (await begin(server.socket)).close()
    async with away(outage), asyncio.timeout(BACK_SECONDS):
        try:
            for _ in range(1 if outage.reads else 1_000):  # what was looked up just before still stands for a moment
                await (await begin(server.socket)).close()
                await asyncio.sleep(0.05)
        except ConnectionClosed as closed:
            assert not outage.reads
            assert closed.rcvd is not None and closed.rcvd.code == 1013
        else:
            assert outage.reads
    async with asyncio.timeout(BACK_SECONDS):
        while True:
            with contextlib.suppress(ConnectionClosed):
                await (await begin(server.socket)).close()
                break
