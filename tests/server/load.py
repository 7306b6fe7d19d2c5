"""Clients that survive crashes: writers that retry with the same key, followers that resume at last + 1."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from websockets.exceptions import WebSocketException

from tests.server.client import Client, Ended, Refused, Socket, Stream
from tests.server.operations import APPEND, FOLLOW, FORK, user
from tests.server.process import Server

PAUSE_SECONDS = 0.02
SPACE = """
subscription($root: ID!, $positions: [SessionPosition!]) {
  spaceEvents(rootId: $root, positions: $positions) { id seq type sessionId ... on UserMessage { content } }
}
"""


@dataclass
class Load:
    """Writes to some sessions, and which were acknowledged. Each content names its key, part and size."""

    server: Server
    sessions: Sequence[str]
    chance: random.Random
    appended: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Acknowledged appends by key: session, first seq, size."""
    forked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Acknowledged forks by key: id, head."""
    retries: int = 0
    stopped: bool = False
    _progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def acknowledged(self, more: int) -> None:
        """Returns once so many more appends are acknowledged."""
        wanted = len(self.appended) + more
        while len(self.appended) < wanted:
            self._progress.clear()
            await self._progress.wait()

    async def write(self, client: Client, writer: int) -> None:
        """Appends until stopped, and retries each append until it is acknowledged."""
        number = 0
        while not self.stopped:
            key, size = f"w{writer}-{number}", self.chance.choice((1, 1, 2, 3, 5))
            id = self.chance.choice(self.sessions)
            events = [user(f"{key}/{part}/{size}") for part in range(size)]
            wanted = {"sessionId": id, "events": events, "idempotencyKey": key}
            done = (await self._insist(client, APPEND, wanted))["appendEvents"]
            assert done["head"] - done["firstSeq"] == size
            self.appended[key] = (id, done["firstSeq"], size)
            self._progress.set()
            number += 1

    async def fork(self, client: Client, parent_id: str) -> None:
        """Forks sessions until stopped, and retries each fork until it is acknowledged."""
        number = 0
        while not self.stopped:
            key = f"f-{parent_id}-{number}"
            source = self.chance.choice(self.sessions)
            wanted = {"sourceId": source, "parentId": parent_id, "prompt": key, "idempotencyKey": key}
            made = (await self._insist(client, FORK, wanted))["forkSession"]["session"]
            self.forked[key] = (made["id"], made["head"])
            number += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _insist(self, client: Client, query: str, input: Mapping[str, Any]) -> Any:
        while True:
            try:
                return await client.run(query, input=input)
            except httpx.TransportError:
                pass
            except Refused as refused:
                if refused.code != "UNAVAILABLE":
                    raise
            self.retries += 1
            await asyncio.sleep(PAUSE_SECONDS)


class Follower:
    """What one subscriber has seen, by session, over all its connections."""

    def __init__(self, server: Server, sessions: Sequence[str]) -> None:
        self.seen: dict[str, list[Any]] = {id: [] for id in sessions}
        self.connections = 0
        self._server = server
        self._progress = asyncio.Event()

    async def of_session(self) -> None:
        """Follows the one session from its start, forever."""
        (id,) = self.seen
        await self._follow(
            lambda socket: socket.subscribe(FOLLOW, id=id, **{"from": len(self.seen[id])}), "sessionEvents"
        )

    async def of_space(self, root_id: str) -> None:
        """Follows all sessions under a root from their start, forever."""

        def subscribe(socket: Socket) -> Any:
            positions = [{"sessionId": id, "fromSeq": len(events)} for id, events in self.seen.items()]
            return socket.subscribe(SPACE, root=root_id, positions=positions)

        await self._follow(subscribe, "spaceEvents")

    async def _follow(self, subscribe: Callable[[Socket], Any], name: str) -> None:
        while True:
            try:
                async with Socket.open(self._server.socket) as socket:
                    self.connections += 1
                    await self._read(await subscribe(socket), name)
            except (OSError, EOFError, WebSocketException, Ended, TimeoutError):
                pass
            except Refused as refused:
                if refused.code != "UNAVAILABLE":
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self, stream: Stream, name: str) -> None:
        while True:
            event = (await stream.next())[name]
            events = self.seen[event["sessionId"]]
            assert event["seq"] == len(events), f"event {event} came after {events[-1:]}"
            events.append(event)
            self._progress.set()

    async def caught_up(self, logs: Mapping[str, Sequence[Any]]) -> None:
        """Returns once it has seen as many events as these logs have."""
        while any(len(self.seen[id]) < len(logs[id]) for id in self.seen):
            self._progress.clear()
            await self._progress.wait()


@asynccontextmanager
async def running(*tasks: asyncio.Task[None]) -> AsyncIterator[None]:
    """Runs tasks along with the block, which fails as soon as one of them does."""
    block = asyncio.current_task()
    assert block is not None
    failed: list[BaseException] = []

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            failed.append(error)
            block.cancel()

    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    except asyncio.CancelledError:
        if failed:
            raise failed[0] from None
        raise
    finally:
        for task in tasks:
            task.remove_done_callback(ended)
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def check_whole(logs: Mapping[str, Sequence[Any]], load: Load) -> None:
    """No acknowledged event is lost or stored twice, and no append is stored in part."""
    found: dict[str, tuple[str, int, int]] = {}
    for id, events in logs.items():
        assert [event["seq"] for event in events] == list(range(len(events)))
        seq = 0
        while seq < len(events):
            key, part, size = events[seq]["content"].split("/")
            assert part == "0", f"{id} at {seq}: the first part of {key} is missing"
            contents = [event["content"] for event in events[seq : seq + int(size)]]
            assert contents == [f"{key}/{index}/{size}" for index in range(int(size))], f"{id} at {seq}: torn"
            assert key not in found, f"{key} is there twice: {found[key]} and {(id, seq)}"
            found[key] = (id, seq, int(size))
            seq += int(size)
    assert found == load.appended
