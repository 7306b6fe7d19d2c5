"""Subscriptions over WebSocket, in graphql-transport-ws by hand and once by a third-party client."""

import asyncio
import contextlib
import json
import random
import socket as sockets
import struct
from collections.abc import Iterable
from typing import Any

import pytest
from gql import Client as GqlClient
from gql import gql
from gql.transport.websockets import WebsocketsTransport

from tests.server.client import IN_TIME, Client, Socket, begin, subscribe_message
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, fork, log, slot_writes_until_sent, texts, user
from tests.server.process import Server
from tests.server.telemetry.scrape import metrics_once, scrape

SPACE = """
subscription($root: ID, $positions: [SessionPosition!], $types: [EventType!]) {
  spaceEvents(rootId: $root, positions: $positions, types: $types) { sessionId seq type id }
}
"""
SLOTS = """
subscription($id: ID, $root: ID, $names: [SlotName!]) {
  slotChanges(sessionId: $id, rootId: $root, names: $names) { sessionId name slot { content version } }
}
"""
FOREST = """
subscription($root: ID, $depth: Int, $status: SessionStatus) {
  forestChanges(rootId: $root, maxDepth: $depth, status: $status) {
    ... on ForestSnapshot { forest { roots nodes { id } } }
    ... on ForestDelta { upserted { id label parentId depth head status refs childCount } removedIds }
  }
}
"""


def contents(results: Iterable[Any]) -> list[str]:
    return [result["sessionEvents"]["content"] for result in results]


def places(results: Iterable[Any]) -> list[tuple[str, int]]:
    return [(result["spaceEvents"]["sessionId"], result["spaceEvents"]["seq"]) for result in results]


async def subscriptions(server: Server) -> Any:
    """The number of subscriptions that the server reports."""
    return (await asyncio.to_thread(server.ready))[1]["subscriptions"]


async def has_subscriptions(server: Server, count: int) -> None:
    """Returns once the server has so many subscriptions."""
    async with asyncio.timeout(IN_TIME):
        while await subscriptions(server) != count:  # noqa: ASYNC110  # another process's state
            await asyncio.sleep(0.05)


async def mutate(client: Client, mutation: str) -> None:
    await client.run(f"mutation {{ {mutation} }}")


async def test_stored_events_are_followed_by_live_ones_without_a_gap(client: Client, socket: Socket, name: str) -> None:
    """Appends continue while subscribers catch up: each gets each event once, in order, from any start."""
    await create(client, name)
    await append(client, name, *texts(300))
    total = 600

    async def write() -> None:
        for seq in range(300, total, 3):
            await append(client, name, *texts(3, seq))

    async def follow(begin_at: int) -> None:
        stream = await socket.subscribe(FOLLOW, id=name, **{"from": begin_at})
        found = [result["sessionEvents"] for result in await stream.take(total - begin_at)]
        assert [event["seq"] for event in found] == list(range(begin_at, total))
        assert [event["content"] for event in found] == [f"message {seq}" for seq in range(begin_at, total)]
        await stream.stop()

    chance = random.Random(2)
    starts = [0, 1, 299, 300, *(chance.randrange(300) for _ in range(6))]
    await asyncio.gather(write(), *(follow(start) for start in starts))


async def test_without_from_seq_only_later_events_are_sent(client: Client, socket: Socket, name: str) -> None:
    """Events stored before the subscription are never sent; from the first one sent, none is missing."""
    await create(client, name)
    await append(client, name, *texts(5))
    stream = await socket.subscribe("subscription($id: ID!) { sessionEvents(sessionId: $id) { seq } }", id=name)
    written = 5
    found = None
    while found is None:  # nothing shows when it is registered, so append until an event arrives
        await append(client, name, *texts(1, written))
        written += 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                found = await stream.next()
    first = found["sessionEvents"]["seq"]
    assert first >= 5
    await append(client, name, *texts(3, written))
    rest = await stream.take(written + 3 - first - 1)
    assert [result["sessionEvents"]["seq"] for result in rest] == list(range(first + 1, written + 3))


async def test_a_client_that_loses_its_connection_resumes_many_times_and_gets_exactly_the_rest(
    client: Client, shared: Server, name: str
) -> None:
    await create(client, name)
    total = 200
    chance = random.Random(3)
    seen: list[int] = []

    async def write() -> None:
        for seq in range(0, total, 2):
            await append(client, name, *texts(2, seq))

    writing = asyncio.create_task(write())
    drops = 0
    while len(seen) < total:
        connection = await begin(shared.socket)
        message = subscribe_message("1", FOLLOW, {"id": name, "from": len(seen)})
        await connection.send(json.dumps(message))
        for _ in range(chance.randint(1, 10)):
            async with asyncio.timeout(IN_TIME):
                answer = json.loads(await connection.recv())
            seen.append(answer["payload"]["data"]["sessionEvents"]["seq"])
            if len(seen) == total:
                break
        drops += 1
        connection.transport.abort()
        await connection.wait_closed()
    await writing
    assert seen == list(range(total))
    assert drops >= 20


async def test_types_filter_events_and_keep_their_order(client: Client, socket: Socket, name: str) -> None:
    await create(client, name)
    for seq in range(6):
        await append(client, name, user(f"{seq}"), {"custom": {"name": "n", "data": seq}})
    query = """subscription($id: ID!) { sessionEvents(sessionId: $id, fromSeq: 0, types: [CUSTOM]) {
      seq ... on CustomEvent { data } } }"""
    stream = await socket.subscribe(query, id=name)
    found = [result["sessionEvents"] for result in await stream.take(6)]
    assert found == [{"seq": 2 * index + 1, "data": index} for index in range(6)]


async def test_a_forks_subscriber_sees_what_is_inherited_and_then_only_the_forks_own(
    client: Client, socket: Socket, name: str
) -> None:
    await create(client, name)
    await append(client, name, *texts(4))
    await fork(client, name, f"{name}-f", atSeq=3)
    stream = await socket.subscribe(FOLLOW, id=f"{name}-f", **{"from": 0})
    await append(client, name, user("not for the fork"))
    await append(client, f"{name}-f", user("mine"))
    found = [result["sessionEvents"] for result in await stream.take(4)]
    assert found == await log(client, f"{name}-f")
    assert [event["sessionId"] for event in found] == [name, name, name, f"{name}-f"]


@pytest.mark.parametrize(
    ("from_seq", "code"), [(-1, "BAD_INPUT"), (4, "BAD_INPUT"), (2**31 - 1, "BAD_INPUT"), (0.5, "BAD_INPUT")]
)
async def test_a_bad_from_seq_is_an_error_at_once(
    client: Client, socket: Socket, name: str, from_seq: float, code: str
) -> None:
    """The socket's other subscriptions keep running."""
    await create(client, name)
    await append(client, name, *texts(3))
    healthy = await socket.subscribe(FOLLOW, id=name, **{"from": 3})
    refusal = await (await socket.subscribe(FOLLOW, id=name, **{"from": from_seq})).refusal()
    assert refusal.code == code
    await append(client, name, *texts(1, 3))
    assert contents(await healthy.take(1)) == ["message 3"]


@pytest.mark.parametrize(
    ("query", "variables", "code"),
    [
        (FOLLOW, {"id": "{}-no"}, "NOT_FOUND"),
        (FOLLOW, {"id": "{}-no", "from": 0}, "NOT_FOUND"),
        (SPACE, {"root": "{}-no"}, "NOT_FOUND"),
        (SPACE, {"positions": [{"sessionId": "{}-no", "fromSeq": 0}]}, "NOT_FOUND"),
        (SPACE, {"positions": [{"sessionId": "{}", "fromSeq": 1}]}, "BAD_INPUT"),
        (SPACE, {"positions": [{"sessionId": "{}", "fromSeq": -1}]}, "BAD_INPUT"),
        (SPACE, {"root": "{}-other", "positions": [{"sessionId": "{}", "fromSeq": 0}]}, "NOT_FOUND"),
        (FOREST, {"root": "{}-no"}, "NOT_FOUND"),
        (FOREST, {"depth": -1}, "BAD_INPUT"),
        (SLOTS, {"id": "{}-no"}, "NOT_FOUND"),
        (SLOTS, {"root": "{}-no"}, "NOT_FOUND"),
        (SLOTS, {"root": "{}", "id": "{}"}, "BAD_INPUT"),
        ("subscription { sessionEvents { seq } }", {}, "BAD_INPUT"),
        ("subscription { nonsense }", {}, "BAD_INPUT"),
    ],
)
async def test_a_subscription_to_something_unknown_is_an_error_at_once(
    client: Client, socket: Socket, name: str, query: str, variables: dict[str, Any], code: str
) -> None:
    await create(client, name)
    await create(client, f"{name}-other")
    named = json.loads(json.dumps(variables).replace('"{}', f'"{name}'))
    stream = await socket.subscribe(query, **named)
    assert (await stream.refusal()).code == code
    live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
    await append(client, name, user("still there"))
    assert contents(await live.take(1)) == ["still there"]


async def test_a_syntax_error_costs_only_its_own_operation(client: Client, socket: Socket, name: str) -> None:
    """Closing the socket would end all other subscriptions on it."""
    await create(client, name)
    live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
    assert (await (await socket.subscribe("subscription {")).refusal()).code == "BAD_INPUT"
    await append(client, name, user("still there"))
    assert contents(await live.take(1)) == ["still there"]


async def test_subscriptions_complete_when_their_session_is_deleted(client: Client, socket: Socket, name: str) -> None:
    """They send all stored events first, and do not follow a new session with the same id."""
    await create(client, name)
    await create(client, f"{name}-c", name)
    await append(client, f"{name}-c", *texts(2))
    id = f"{name}-c"
    events = await socket.subscribe(FOLLOW, id=id, **{"from": 0})
    space = await socket.subscribe(SPACE, root=id, positions=[{"sessionId": id, "fromSeq": 0}])
    forest = await socket.subscribe(FOREST, root=id)
    assert contents(await events.take(2)) == ["message 0", "message 1"]
    assert places(await space.take(2)) == [(id, 0), (id, 1)]
    assert "forest" in (await forest.next())["forestChanges"]
    await mutate(client, f'deleteSession(id: "{id}") {{ deletedIds }}')
    assert await events.rest() == []
    assert await space.rest() == []
    assert await forest.rest() == [{"forestChanges": {"upserted": [], "removedIds": [id]}}]
    await create(client, id)
    late = await socket.subscribe(FOLLOW, id=id, **{"from": 0})
    await append(client, id, user("anew"))
    assert contents(await late.take(1)) == ["anew"]


async def test_an_archived_session_can_be_followed(client: Client, socket: Socket, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(1))
    await mutate(client, f'archiveSession(id: "{name}") {{ session {{ id }} }}')
    stream = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
    assert contents(await stream.take(1)) == ["message 0"]
    await mutate(client, f'restoreSession(id: "{name}") {{ session {{ id }} }}')
    await append(client, name, *texts(1, 1))
    assert contents(await stream.take(1)) == ["message 1"]


async def test_space_events_follow_sessions_into_and_out_of_the_subtree(
    client: Client, socket: Socket, name: str
) -> None:
    """A new session counts from its first event, one moved in from its head then; one moved out stops."""
    await create(client, name)
    for part in ("a", "out"):
        await create(client, f"{name}-{part}", name if part == "a" else None)
        await append(client, f"{name}-{part}", *texts(2))
    a, out, new = f"{name}-a", f"{name}-out", f"{name}-new"
    stream = await socket.subscribe(SPACE, root=name, positions=[{"sessionId": a, "fromSeq": 1}])
    assert places(await stream.take(1)) == [(a, 1)]
    await create(client, new, a)
    await append(client, new, *texts(2))
    assert places(await stream.take(2)) == [(new, 0), (new, 1)]
    await append(client, out, *texts(1, 2))
    await mutate(client, f'moveNode(id: "{out}", parentId: "{name}") {{ session {{ id }} }}')
    await append(client, out, *texts(1, 3))
    assert places(await stream.take(1)) == [(out, 3)]
    await mutate(client, f'moveNode(id: "{out}", toRoot: true) {{ session {{ id }} }}')
    await append(client, out, *texts(1, 4))
    await fork(client, a, f"{name}-f", prompt="p")
    assert places(await stream.take(1)) == [(f"{name}-f", 2)]
    await append(client, a, *texts(1, 2))
    assert places(await stream.take(1)) == [(a, 2)]


async def test_forest_changes_start_with_a_snapshot_and_then_send_the_newest_state(
    client: Client, socket: Socket, name: str
) -> None:
    await create(client, name)
    await create(client, f"{name}-a", name)
    stream = await socket.subscribe(FOREST, root=name)
    first = (await stream.next())["forestChanges"]["forest"]
    assert first == {"roots": [name], "nodes": [{"id": name}, {"id": f"{name}-a"}]}
    shown: dict[str, Any] = {}

    async def until(node_id: str, **wanted: Any) -> None:
        while node_id not in shown or any(shown[node_id][field] != value for field, value in wanted.items()):
            delta = (await stream.next())["forestChanges"]
            for node in delta["upserted"]:
                shown[node["id"]] = node
            for gone in delta["removedIds"]:
                shown[gone] = {"id": None}

    await create(client, f"{name}-b", name)
    await until(f"{name}-b", depth=1, parentId=name)
    await append(client, f"{name}-b", *texts(3))
    await until(f"{name}-b", head=3)
    await mutate(client, f'renameSession(id: "{name}-b", label: "New") {{ session {{ id }} }}')
    await until(f"{name}-b", label="New")
    await create(client, f"{name}-b-1", f"{name}-b")
    await until(f"{name}-b-1", depth=2)
    await mutate(client, f'moveNode(id: "{name}-b", parentId: "{name}-a") {{ session {{ id }} }}')
    await until(f"{name}-b", parentId=f"{name}-a", depth=2)
    await until(f"{name}-b-1", depth=3)
    await mutate(client, f'archiveSession(id: "{name}-b-1") {{ session {{ id }} }}')
    await until(f"{name}-b-1", status="ARCHIVED")
    await mutate(client, f'deleteSession(id: "{name}-b-1") {{ deletedIds }}')
    await until(f"{name}-b-1", id=None)
    await mutate(client, f'moveNode(id: "{name}-b", toRoot: true) {{ session {{ id }} }}')
    await until(f"{name}-b", id=None)


async def test_nodes_that_leave_the_filter_of_forest_changes_are_removed(
    client: Client, socket: Socket, name: str
) -> None:
    await create(client, name)
    await create(client, f"{name}-a", name)
    stream = await socket.subscribe(FOREST, root=name, status="ARCHIVED")
    assert (await stream.next())["forestChanges"]["forest"]["nodes"] == []
    await mutate(client, f'archiveSession(id: "{name}-a") {{ session {{ id }} }}')
    delta = (await stream.next())["forestChanges"]
    assert [node["id"] for node in delta["upserted"]] == [name, f"{name}-a"]
    await mutate(client, f'restoreSession(id: "{name}-a") {{ session {{ id }} }}')
    delta = (await stream.next())["forestChanges"]
    assert set(delta["removedIds"]) == {name, f"{name}-a"} and delta["upserted"] == []


async def test_slot_changes_send_the_newest_version_and_none_twice(client: Client, socket: Socket, name: str) -> None:
    await create(client, name)
    await create(client, f"{name}-a", name)
    quoted = f'sessionId: "{name}-a"'
    await mutate(client, f'putMemory(input: {{{quoted}, content: "before"}}) {{ sessionId }}')
    stream = await socket.subscribe(SLOTS, root=name)
    await slot_writes_until_sent(client, stream, name)

    async def sent(slot: str, content: str | None, version: int) -> None:
        change = (await stream.next())["slotChanges"]
        assert (change["sessionId"], change["name"]) == (f"{name}-a", slot)
        assert change["slot"] == (None if content is None else {"content": content, "version": version})

    await mutate(client, f'putMemory(input: {{{quoted}, content: "m"}}) {{ sessionId }}')
    await sent("MEMORY", "m", 2)
    await append(client, f"{name}-a", *texts(1))
    await mutate(client, f'renameSession(id: "{name}-a", label: "New") {{ session {{ id }} }}')
    await mutate(client, f'putInsight(input: {{{quoted}, content: "i"}}) {{ sessionId }}')
    await sent("INSIGHT", "i", 1)
    await mutate(client, f"consumeInsight({quoted}) {{ insight {{ version }} }}")
    await sent("INSIGHT", None, 0)
    await mutate(client, f'putInsight(input: {{{quoted}, content: "j"}}) {{ sessionId }}')
    await sent("INSIGHT", "j", 2)


async def test_nested_fields_of_later_events_are_read_anew(client: Client, socket: Socket, name: str) -> None:
    """A subscription has one context for all its events, where a cached look-up would be stale."""
    await create(client, name)
    await create(client, f"{name}-a", name)
    query = """subscription($root: ID) { forestChanges(rootId: $root) {
      ... on ForestDelta { upserted { id head parent { label } session {
        label head memory { content } node { parent { label } } config { skills } } } } } }"""
    stream = await socket.subscribe(query, root=f"{name}-a")
    await stream.next()

    async def until(**wanted: Any) -> None:
        while True:
            delta = (await stream.next())["forestChanges"]
            for node in delta["upserted"]:
                session = node["session"]
                found = {
                    "parent": node["parent"]["label"],
                    "parent of the session's node": session["node"]["parent"]["label"],
                    "memory": session["memory"] and session["memory"]["content"],
                    "skills": session["config"] and session["config"]["skills"],
                }
                assert (session["label"], session["head"]) == (f"v{node['head']}", node["head"])
                if found == wanted:
                    return

    async def change(step: int) -> None:
        await mutate(client, f'renameSession(id: "{name}", label: "p{step}") {{ session {{ id }} }}')
        await mutate(client, f'putMemory(input: {{sessionId: "{name}-a", content: "m{step}"}}) {{ sessionId }}')
        await mutate(client, f'putConfig(sessionId: "{name}-a", config: {{skills: ["{step}"]}}) {{ session {{ id }} }}')

    await mutate(client, f'renameSession(id: "{name}-a", label: "v0") {{ session {{ id }} }}')
    for step in range(3):
        await change(step)
        parent = f"p{step}"
        wanted = {"memory": f"m{step}", "skills": [f"{step}"]}
        await until(**{"parent": parent, "parent of the session's node": parent}, **wanted)


async def test_queries_and_mutations_run_over_sockets_too(client: Client, socket: Socket, name: str) -> None:
    await create(client, name)
    query = "query($id: ID!) { session(id: $id) { head label } }"
    assert await (await socket.subscribe(query, id=name)).rest() == [{"session": {"head": 0, "label": "Root"}}]
    mutation = """mutation($id: ID!) {
      appendEvents(input: {sessionId: $id, events: [{userMessage: {content: "x"}}]}) { head } }"""
    assert await (await socket.subscribe(mutation, id=name)).rest() == [{"appendEvents": {"head": 1}}]
    assert await (await socket.subscribe(query, id=name)).rest() == [{"session": {"head": 1, "label": "Root"}}]


async def test_a_stopped_subscription_sends_no_more_and_ends(
    client: Client, shared: Server, socket: Socket, name: str
) -> None:
    await create(client, name)
    await append(client, name, *texts(1))
    before = await subscriptions(shared)
    stopped = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
    live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
    await stopped.take(1), await live.take(1)
    await has_subscriptions(shared, before + 2)
    await stopped.stop()
    await has_subscriptions(shared, before + 1)
    await append(client, name, *texts(1, 1))
    await live.take(1)
    assert stopped.messages.empty()


async def test_subscriptions_of_reset_connections_end(serve: Serve, name: str) -> None:
    """500 subscribers with dead TCP connections leave no task and no count, and others are served meanwhile."""
    server = serve()
    count = 500
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        async with Socket.open(server.socket) as socket:  # the first one begins what follows other processes' changes
            await socket.subscribe(FOLLOW, id=name, **{"from": 0})
            await has_subscriptions(server, 1)
        before = await metrics_once(server, lambda found: not any(found.gauges.values()))
        connections = await asyncio.gather(*(begin(server.socket) for _ in range(count)))
        message = json.dumps(subscribe_message("1", FOLLOW, {"id": name, "from": 0}))
        await asyncio.gather(*(connection.send(message) for connection in connections))
        await append(client, name, *texts(1))
        async with asyncio.timeout(IN_TIME):
            await asyncio.gather(*(connection.recv() for connection in connections))
        found = await scrape(server)
        assert (found.value("subscriptions"), found.value("sockets_open")) == (count, count)
        for connection in connections:
            raw = connection.transport.get_extra_info("socket")
            raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
            connection.transport.abort()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))
        await metrics_once(
            server, lambda found: not any(found.gauges.values()) and found.value("tasks") <= before.value("tasks")
        )
        assert (await append(client, name, *texts(1, 1)))["head"] == 2


async def test_a_third_party_client_follows_a_session(client: Client, shared: Server, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(2))
    transport = WebsocketsTransport(url=shared.socket, connect_args={"proxy": None})
    async with GqlClient(transport=transport, fetch_schema_from_transport=True) as session:
        document = gql(FOLLOW)
        document.variable_values = {"id": name, "from": 0}
        found: list[str] = []
        async with asyncio.timeout(IN_TIME):
            async for result in session.subscribe(document):
                found.append(result["sessionEvents"]["content"])
                if len(found) == 2:
                    await append(client, name, *texts(2, 2))
                if len(found) == 4:
                    break
    assert found == [f"message {seq}" for seq in range(4)]


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.003])
async def test_sockets_that_close_right_after_they_subscribe_leave_nothing(serve: Serve, pause: float) -> None:
    """However early a client disconnects, its subscriptions end."""
    server = serve()
    for _ in range(20):
        connection = await begin(server.socket)
        for id in ("1", "2", "3"):
            await connection.send(json.dumps(subscribe_message(id, "subscription { spaceEvents { seq } }", {})))
        await asyncio.sleep(pause)
        await connection.close()
    await has_subscriptions(server, 0)


async def test_a_position_that_is_given_twice_is_refused(client: Client, socket: Socket, name: str) -> None:
    await create(client, name)
    positions = [{"sessionId": name, "fromSeq": 0}, {"sessionId": name, "fromSeq": 1}]
    stream = await socket.subscribe(SPACE, positions=positions)
    assert (await stream.refusal()).code == "BAD_INPUT"
