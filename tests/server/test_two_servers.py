"""Two server processes on one store."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.effort import LONG
from tests.server.client import Client, Refused, Socket
from tests.server.conftest import Serve
from tests.server.operations import APPEND, FOLLOW, append, create, log, texts, user
from tests.server.process import Server

APPENDERS = 50
APPENDS = 2_000 if LONG else 400
SESSIONS = 5
SPACE = """
subscription($root: ID!, $positions: [SessionPosition!]) {
  spaceEvents(rootId: $root, positions: $positions) { id seq type sessionId ... on UserMessage { content } }
}
"""


@pytest.fixture
def servers(shared: Server, neighbour: Server) -> list[Server]:
    """Two servers on the same data."""
    return [shared, neighbour]


@pytest.fixture
async def clients(servers: list[Server]) -> AsyncIterator[list[Client]]:
    """A client of each."""
    first, second = servers
    async with Client(lambda: first.graphql) as one, Client(lambda: second.graphql) as other:
        yield [one, other]


async def test_fifty_appenders_on_two_servers(servers: list[Server], clients: list[Client], name: str) -> None:
    """Each log is contiguous, each answer is right, and subscribers on both servers see each event once, in order."""
    root = await create(clients[0], name)
    ids = [await create(clients[index % 2], f"{name}-{index}", root) for index in range(SESSIONS)]
    left = iter(range(APPENDS))
    chance = random.Random(5)
    answered: dict[str, dict[int, list[str]]] = {id: {} for id in ids}

    async def write(writer: int) -> None:
        for number in left:
            id = ids[number % SESSIONS]
            contents = [f"{writer}/{number}/{part}" for part in range(chance.choice((1, 1, 1, 2, 3)))]
            done = await append(clients[writer % 2], id, *map(user, contents))
            assert done["head"] - done["firstSeq"] == len(contents) and not done["duplicate"]
            assert done["firstSeq"] not in answered[id]
            answered[id][done["firstSeq"]] = contents

    async with contextlib.AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(Socket.open(server.socket)) for server in servers]
        positions = [{"sessionId": id, "fromSeq": 0} for id in ids]
        spaces = [await socket.subscribe(SPACE, root=root, positions=positions) for socket in sockets]
        follows = {id: [await socket.subscribe(FOLLOW, id=id, **{"from": 0}) for socket in sockets] for id in ids}
        await asyncio.gather(*(write(writer) for writer in range(APPENDERS)))
        logs = {id: await log(clients[0], id) for id in ids}
        for id, events in logs.items():
            assert [event["seq"] for event in events] == list(range(len(events)))
            assert await log(clients[1], id) == events
            told = [content for first in sorted(answered[id]) for content in answered[id][first]]
            assert [event["content"] for event in events] == told
            assert all(events[first]["content"] == contents[0] for first, contents in answered[id].items())
            for stream in follows[id]:
                assert [result["sessionEvents"] for result in await stream.take(len(events))] == events
        total = sum(map(len, logs.values()))
        for stream in spaces:
            seen: dict[str, list[Any]] = {id: [] for id in ids}
            for result in await stream.take(total):
                seen[result["spaceEvents"]["sessionId"]].append(result["spaceEvents"])
            assert seen == logs
        for id in ids:
            await append(clients[0], id, user("last"))
            for stream in follows[id]:
                assert (await stream.next())["sessionEvents"]["content"] == "last"
        for stream in spaces:
            last = [result["spaceEvents"] for result in await stream.take(SESSIONS)]
            assert {event["sessionId"]: event["seq"] for event in last} == {id: len(logs[id]) for id in ids}


async def test_many_first_appends_at_once_on_an_empty_store(serve: Serve, name: str) -> None:
    """Both servers create and write sessions at the same time, from the start."""
    one, two = serve(), serve()
    async with Client(lambda: one.graphql) as first, Client(lambda: two.graphql) as second:

        async def begin(index: int) -> None:
            maker, other = (first, second) if index % 2 else (second, first)
            id = await create(maker, f"{name}-{index}")
            await asyncio.gather(append(other, id, *texts(1)), append(maker, id, *texts(1)))

        await asyncio.gather(*(begin(index) for index in range(20)))
        for index in range(20):
            assert [event["seq"] for event in await log(first, f"{name}-{index}")] == [0, 1]
        roots = (await second.run("{ roots { index } }"))["roots"]
        assert [root["index"] for root in roots] == list(range(20))


async def test_a_stale_head_conflicts_on_the_other_server_too(clients: list[Client], name: str) -> None:
    await create(clients[0], name)
    await append(clients[0], name, *texts(1), expectedHead=0)
    assert (await append(clients[1], name, *texts(1, 1), expectedHead=1))["head"] == 2
    for client in clients:
        refusal = await client.refusal(APPEND, input={"sessionId": name, "events": texts(1), "expectedHead": 1})
        assert refusal.errors[0]["extensions"] == {"code": "CONFLICT", "head": 2}
    assert (await append(clients[0], name, *texts(1, 2), expectedHead=2))["head"] == 3
    assert len(await log(clients[1], name)) == 3


async def test_one_of_fifty_that_expect_the_same_head_wins(clients: list[Client], name: str) -> None:
    await create(clients[0], name)
    await append(clients[0], name, *texts(3))

    async def attempt(writer: int) -> int | str:
        try:
            done = await append(clients[writer % 2], name, user(f"{writer}"), expectedHead=3)
        except Refused as refused:
            assert refused.errors[0]["extensions"]["head"] == 4
            return refused.code
        first: int = done["firstSeq"]
        return first

    results = await asyncio.gather(*(attempt(writer) for writer in range(50)))
    assert sorted(map(str, results)) == ["3", *["CONFLICT"] * 49]
    events = await log(clients[1], name)
    assert events[3]["content"] == str(results.index(3)) and len(events) == 4


async def test_an_idempotency_key_is_written_once_whichever_server_gets_it(clients: list[Client], name: str) -> None:
    """Also when both get it at the same time; a key of a creation makes one session."""
    await create(clients[0], name)
    for number in range(10):
        tries = [
            append(clients[index % 2], name, *texts(2, 2 * number), idempotencyKey=f"k{number}") for index in range(6)
        ]
        answers = await asyncio.gather(*tries)
        assert {answer["firstSeq"] for answer in answers} == {2 * number}
        assert [answer["duplicate"] for answer in answers].count(False) == 1
    events = await log(clients[0], name)
    assert [event["content"] for event in events] == [f"message {seq}" for seq in range(20)]
    query = "mutation($key: String!) { createSession(input: {idempotencyKey: $key}) { session { id } } }"
    made = await asyncio.gather(*(clients[index % 2].run(query, key=name) for index in range(6)))
    assert len({one["createSession"]["session"]["id"] for one in made}) == 1


async def test_renames_slots_refs_and_moves_make_no_append_stale(clients: list[Client], name: str) -> None:
    """The writer's heads stay right while the session changes through the other server."""
    for part in ("", "-a", "-b"):
        await create(clients[0], f"{name}{part}")
    changes = [
        'renameSession(id: "{0}", label: "{1}") {{ session {{ id }} }}',
        'putMemory(input: {{sessionId: "{0}", content: "{1}"}}) {{ sessionId }}',
        'putSystemPrompt(sessionId: "{0}", content: "{1}") {{ sessionId }}',
        'putInsight(input: {{sessionId: "{0}", content: "{1}"}}) {{ sessionId }}',
        'clearInsight(sessionId: "{0}") {{ sessionId }}',
        'addRef(fromId: "{0}", toId: "{0}-b") {{ ref {{ toId }} }}',
        'removeRef(fromId: "{0}", toId: "{0}-b") {{ ref {{ toId }} }}',
        'moveNode(id: "{0}", parentId: "{0}-a") {{ session {{ id }} }}',
        'moveNode(id: "{0}", toRoot: true) {{ session {{ id }} }}',
        'putConfig(sessionId: "{0}", config: {{}}) {{ session {{ id }} }}',
    ]
    done = asyncio.Event()
    changed = 0

    async def change() -> None:
        nonlocal changed
        while not done.is_set():
            mutation = changes[changed % len(changes)].format(name, changed)
            await clients[1].run(f"mutation {{ {mutation} }}")
            changed += 1

    changing = asyncio.create_task(change())
    head = 0
    while head < 60 or changed < 2 * len(changes):
        assert (await append(clients[0], name, *texts(2, head), expectedHead=head))["firstSeq"] == head
        head += 2
    done.set()
    await changing
    assert [event["seq"] for event in await log(clients[1], name)] == list(range(head))
