"""A whole store has no problems; damage is found, and repaired where nothing needs to be made up for it."""

import asyncio
import random

import pytest

from storage.check.store import check_store, count_sessions
from storage.database import Transaction
from storage.events import UserMessage
from storage.lifecycle import Fork, NewSession
from storage.log.state import OpenTurn, Totals
from storage.session import SlotName
from storage.slots import SlotWrite
from storage.store import Store
from tests.contract.shorthand import append_in_parts, conversation
from tests.storage.check.damage import Damage, change_node, change_session, found, lose, node, plant
from tests.storage.spaces import SPACE, assert_whole, log_of, nodes_of, problems


async def cycle(tx: Transaction) -> None:
    await tx.change_node(await node(tx, "a"), {"parent_id": "d", "ancestors": ("d", "b", "a")})


REPAIRABLE: list[tuple[str, Damage, list[tuple[str, str]]]] = [
    ("no node", lose("d", "session", "slots"), [("d", "has no node in the forest"), ("b", "counts 1 children")]),
    ("no slots", lose("d", "session", "node"), [("d", "has no slots")]),
    ("slots alone", lose("d", "slots"), [("d", "has slots, and neither"), ("b", "counts 1 children and has 0")]),
    (
        "no parent",
        change_node("d", parent_id="gone", ancestors=("gone",)),
        [("b", "counts 1 children and has 0"), ("d", "has the parent gone, which is missing")],
    ),
    ("ancestors", change_node("d", ancestors=("a", "b")), [("d", "has other ancestors than its parent")]),
    ("children", change_node("a", child_count=5), [("a", "counts 5 children and has 2")]),
    ("next index", change_node("a", next_index=1), [("a", "would give the index 1 again")]),
    ("index", change_node("c", index=0), [("c", "has the index 0 of a sibling")]),
    ("reference", change_node("d", refs=("c", "gone")), [("d", "refers to gone, which is missing")]),
    ("cycle", cycle, [("a", "is an ancestor of itself"), ("d", "counts 0 children and has 1")]),
    ("totals", change_session("a", totals=Totals()), [("a", "has other values than its log for totals")]),
    ("open", change_session("a", open=(OpenTurn(turn="t"),)), [("a", "has other values than its log for open")]),
    ("head", change_session("a", head=16), [("a", "has other values than its log for head")]),
    ("inherited", change_session("f", inherited=Totals()), [("f", "has other values than its log for inherited")]),
    ("behind", change_session("a", behind=False), [("a", "has other values than its log for behind")]),
]


@pytest.mark.parametrize(("damage", "expected"), [row[1:] for row in REPAIRABLE], ids=[row[0] for row in REPAIRABLE])
async def test_damage_is_found_and_repaired(store: Store, damage: Damage, expected: list[tuple[str, str]]) -> None:
    await plant(store)
    before = {item.id: await log_of(store, item.session) for item in await nodes_of(store)}
    await store.database.transact(damage)
    first = await found(store)
    for id, what in expected:
        assert any(found_id == id and found_what.startswith(what) for found_id, found_what in first), first
    assert await found(store) == first, "a check without repair changes nothing"
    repaired = await problems(store, repair=True)
    assert all(problem.repaired for problem in repaired)
    await assert_whole(store)
    for item in await nodes_of(store):
        assert await log_of(store, item.session) == before[item.id]


async def test_an_orphan_becomes_a_root_with_its_descendants_below_it(store: Store) -> None:
    await plant(store)
    await store.database.transact(change_node("b", parent_id="gone", ancestors=("gone",)))
    await store.database.transact(change_node("d", ancestors=("b", "gone")))
    await problems(store, repair=True)
    nodes = {item.id: item for item in await nodes_of(store)}
    assert (nodes["b"].parent_id, nodes["b"].document.index) == (None, 1)
    assert nodes["d"].document.ancestors == ("b",)
    assert nodes["a"].document.child_count == 1
    await store.tree.create(SPACE, NewSession(id="new"))
    await assert_whole(store)


async def test_a_cycle_is_broken_at_the_smallest_id(store: Store) -> None:
    await plant(store)
    await store.database.transact(cycle)
    await problems(store, repair=True)
    nodes = {item.id: item.document for item in await nodes_of(store)}
    assert {id: document.ancestors for id, document in nodes.items()} == {
        "a": (),
        "b": ("a",),
        "c": ("a",),
        "d": ("b", "a"),
        "f": ("c", "a"),
    }


async def test_a_node_without_its_session_keeps_its_events(store: Store) -> None:
    await plant(store)
    await store.database.transact(lose("f", "node", "slots"))
    assert await found(store) == await found(store, repair=True)
    assert {what.partition(",")[0] for _, what in await found(store)} >= {"has a node"}
    logs = await store.database.read(lambda queries: queries.all_logs())
    assert len(logs) == 2, "events of a session that may be restored are not dropped"
    await store.tree.delete(SPACE, "f")
    await problems(store, repair=True)
    await assert_whole(store)


async def test_leftovers_of_a_deletion_are_dropped_beyond_the_largest_cut(store: Store) -> None:
    await plant(store)
    expected = await log_of(store, next(item.session for item in await nodes_of(store) if item.id == "f"))
    await store.tree.move(SPACE, "c", None)
    await store.tree.delete(SPACE, "b", cascade=True)
    await store.database.transact(lose("a"))
    [problem] = await problems(store)
    assert problem.what.startswith("has commits left of a log that no session reads any more")
    assert "from seq 16 on" in problem.what
    await problems(store, repair=True)
    await assert_whole(store)
    fork = next(item.session for item in await nodes_of(store) if item.id == "f")
    assert await log_of(store, fork) == expected
    await store.tree.delete(SPACE, "f")
    assert await store.database.read(lambda queries: queries.all_logs()) == []


async def test_forks_of_forks_and_deleted_sources_are_whole(store: Store) -> None:
    chance = random.Random(7)
    await store.tree.create(SPACE, NewSession(id="0"))
    await append_in_parts(store, "0", conversation(6), chance)
    for number in range(1, 12):
        source = chance.choice(await nodes_of(store))
        fork = Fork(source.id, at_seq=chance.randint(0, source.session.head), id=str(number), as_root=True)
        await store.tree.fork(SPACE, fork)
        events = [UserMessage(content=f"{number}.{seq}") for seq in range(chance.randint(0, 9))]
        await append_in_parts(store, str(number), events, chance)
        if number % 4 == 0:
            await store.tree.delete(SPACE, str(number // 2))
    await assert_whole(store)


async def test_a_check_beside_writers_finds_nothing(store: Store) -> None:
    await plant(store)
    stop = False

    async def write(number: int) -> None:
        count = 0
        while not stop:
            id = f"w{number}-{count}"
            await store.tree.create(SPACE, NewSession(id=id, parent_id="b"))
            await store.sessions.append(SPACE, id, [UserMessage(content="x")])
            await store.sessions.append(SPACE, "a", [UserMessage(content="x")])
            await store.tree.fork(SPACE, Fork("a", id=f"{id}-f", parent_id=id))
            await store.sessions.put_slot(SPACE, SlotWrite(id, SlotName.MEMORY, "m"))
            await store.tree.delete(SPACE, id, cascade=True)
            count += 1

    writers = [asyncio.create_task(write(number)) for number in range(3)]
    try:
        for _ in range(5):
            found_problems = await problems(store)
            assert [problem for problem in found_problems if not problem.what.startswith("has commits left")] == []
    finally:
        stop = True
        await asyncio.gather(*writers)
    await assert_whole(store)


async def test_every_space_is_checked_and_counted(store: Store) -> None:
    await plant(store)
    await store.tree.create("other", NewSession(id="x"))
    counts: list[int] = []
    async for problem in check_store(store.database, progress=counts.append):
        raise AssertionError(problem)
    assert sum(counts) == await count_sessions(store.database) == 6
