"""A transaction of several operations commits wholly or not at all."""

import asyncio
import contextlib
from collections.abc import Awaitable

import pytest

from storage import errors
from storage.lifecycle import Fork, NewSession
from storage.session import SessionConfig, SessionFilter, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store, UnitOfWork
from tests.conftest import OpenStore
from tests.contract.shorthand import (
    SPACE,
    append,
    contents,
    create,
    forest,
    fork,
    ids,
    node,
    put_insight,
    session,
    slots,
    take,
    texts,
    user,
    whole_log,
)

_, INSIGHT, MEMORY = SlotName


class Halt(Exception):
    """Raised by a test inside a transaction."""


async def much(unit: UnitOfWork) -> str:
    """A bit of everything, on sessions and tree."""
    await unit.tree.create(SPACE, NewSession(id="b", parent_id="a"))
    await unit.sessions.append(SPACE, "b", texts(3), key="key")
    await unit.tree.fork(SPACE, Fork("b", at_seq=2, id="c", parent_id="a", prompt="go"))
    await unit.tree.add_ref(SPACE, "b", "c")
    await unit.sessions.put_slot(SPACE, SlotWrite("c", MEMORY, "memory"))
    await unit.sessions.put_slots(SPACE, [SlotWrite("a", INSIGHT, "one"), SlotWrite("b", INSIGHT, "two")])
    await unit.sessions.consume_insight(SPACE, "a", None, None, None)
    await unit.sessions.update(SPACE, "b", {"label": "renamed"})
    await unit.tree.put_config(SPACE, "b", SessionConfig(skills=["x"]))
    await unit.tree.create(SPACE, NewSession(id="d"))
    await unit.tree.move(SPACE, "d", "c")
    await unit.sessions.set_status(SPACE, "d", SessionStatus.ARCHIVED)
    await unit.tree.delete(SPACE, "old", cascade=True)
    return "done"


async def prepare(store: Store) -> None:
    await create(store, "a")
    await create(store, "old")
    await append(store, "old", *texts(2))
    await create(store, "older", "old")


async def test_all_operations_are_done_together(store: Store) -> None:
    await prepare(store)
    assert await store.transaction(much) == "done"
    assert await ids(store) == {"a", "b", "c", "d"}
    assert contents(await whole_log(store, "c")) == ["message 0", "message 1", "go"]
    assert [node.document.ancestors for node in (await forest(store)).nodes] == [(), ("a",), ("a",), ("c", "a")]
    b = await node(store, "b")
    assert (b.session.label, b.session.head, b.document.refs) == ("renamed", 3, ("c",))
    assert b.document.config == SessionConfig(skills=["x"])
    assert ((await session(store, "a")).head, (await session(store, "d")).status) == (1, SessionStatus.ARCHIVED)
    found = await store.sessions.slots(SPACE, ["a", "b", "c"])
    assert (found["c"].memory is not None, found["b"].insight is not None) == (True, True)
    assert found["a"].insight is not None
    assert found["a"].insight.cleared


async def test_a_transaction_that_raises_writes_nothing(store: Store) -> None:
    await prepare(store)
    before = await forest(store)
    slots_before = await store.sessions.slots(SPACE, ["a", "old"])

    async def work(unit: UnitOfWork) -> None:
        await much(unit)
        raise Halt

    with pytest.raises(Halt):
        await store.transaction(work)
    assert await forest(store) == before
    assert await store.sessions.slots(SPACE, ["a", "b", "c", "d", "old"]) == slots_before
    assert contents(await whole_log(store, "old")) == ["message 0", "message 1"]
    logs = await store.database.read(lambda queries: queries.all_logs())
    assert logs == [(await session(store, "old")).log]
    assert await store.transaction(much) == "done"


async def test_a_refused_operation_rolls_back_the_earlier_ones(store: Store) -> None:
    await create(store, "a")
    before = await node(store, "a")

    async def work(unit: UnitOfWork) -> None:
        await unit.tree.create(SPACE, NewSession(id="b", parent_id="a"))
        await unit.sessions.append(SPACE, "a", texts(2))
        await unit.sessions.append(SPACE, "a", [user("x")], expected_head=7)

    with pytest.raises(errors.Conflict) as refused:
        await store.transaction(work)
    assert refused.value.details == {"head": 2}
    assert await node(store, "a") == before
    assert await ids(store) == {"a"}


@pytest.mark.parametrize("kind", ["fork", "slots", "append"])
async def test_a_refused_operation_rolls_back_even_if_its_error_is_caught(store: Store, kind: str) -> None:
    for id in ("a", "b"):
        await create(store, id)
    await append(store, "a", *texts(2))

    async def work(unit: UnitOfWork) -> None:
        with contextlib.suppress(errors.PayloadTooLarge, errors.NotFound, errors.BadInput):
            if kind == "fork":
                await unit.tree.fork(SPACE, Fork("a", id="c", prompt="x" * (9 * 1024 * 1024)))
            elif kind == "slots":
                await unit.sessions.put_slots(SPACE, [SlotWrite("a", MEMORY, "x"), SlotWrite("nobody", MEMORY, "x")])
            else:
                await unit.sessions.append(SPACE, "a", [user("x"), user("x", turn_id="never")])
        await unit.sessions.append(SPACE, "b", [user("x")])

    with contextlib.suppress(errors.SapwoodError):
        await store.transaction(work)
    assert (await node(store, "a")).document.child_count == 0
    assert (await slots(store, "a")).memory is None
    assert (await session(store, "a")).head == 2
    assert await ids(store) == {"a", "b"}


async def test_a_transaction_sees_its_own_writes(store: Store) -> None:
    await create(store, "a")

    async def work(unit: UnitOfWork) -> None:
        await unit.tree.create(SPACE, NewSession(id="b", parent_id="a"))
        first = await unit.sessions.append(SPACE, "b", texts(2), key="key")
        again = await unit.sessions.append(SPACE, "b", texts(2), key="key")
        assert (again.duplicate, again.events) == (True, first.events)
        meta = await unit.sessions.get(SPACE, "b")
        assert meta is not None
        assert (await unit.sessions.events(meta)).events == first.events
        found = await unit.tree.forest(SPACE)
        assert found is not None
        assert [node.id for node in found.nodes] == ["a", "b"]
        assert found.nodes[0].document.child_count == 1
        assert await unit.sessions.count(SPACE, SessionFilter(under="a")) == 2
        digests = await unit.sessions.digests(SPACE, SessionFilter(ids=("b",)), 10, None)
        assert digests is not None
        assert digests.digests[0].session.head == 2

    await store.transaction(work)
    assert (await session(store, "b")).head == 2


async def test_nobody_sees_part_of_a_transaction(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    names = {"a", "b", "c"}

    async def work(unit: UnitOfWork) -> None:
        for id in sorted(names):
            await unit.tree.create(SPACE, NewSession(id=id))

    done = asyncio.Event()

    async def watch(store: Store) -> list[set[str]]:
        seen = []
        while not done.is_set():
            seen.append(await ids(store))
        return seen

    async def write() -> None:
        for _ in range(5):
            await stores[0].transaction(work)
            await stores[0].transaction(remove)
        done.set()

    async def remove(unit: UnitOfWork) -> None:
        for id in names:
            await unit.tree.delete(SPACE, id)

    first, second, _ = await asyncio.gather(watch(stores[0]), watch(stores[1]), write())
    assert all(seen in (set(), names) for seen in (*first, *second))


async def test_transactions_over_the_same_documents_all_count(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    for id in ("a", "b"):
        await create(stores[0], id)

    async def transfer(unit: UnitOfWork, source: str, target: str) -> None:
        meta = await unit.sessions.get(SPACE, source)
        assert meta is not None
        await unit.sessions.append(SPACE, target, [user(f"{source} is at {meta.head}")])
        await unit.sessions.append(SPACE, source, [user("sent")])

    def work(n: int) -> Awaitable[None]:
        source, target = ("a", "b") if n % 3 else ("b", "a")
        return stores[n % 2].transaction(lambda unit: transfer(unit, source, target))

    await asyncio.gather(*(work(n) for n in range(12)))
    assert ((await session(stores[0], "a")).head, (await session(stores[0], "b")).head) == (12, 12)


async def test_logs_freed_by_a_transaction_are_collected_after_it(store: Store) -> None:
    for id in ("a", "b"):
        await create(store, id)
        await append(store, id, *texts(3))
    await fork(store, "b", id="c", at_seq=2, as_root=True)

    async def work(unit: UnitOfWork) -> None:
        for id in ("a", "b"):
            await unit.tree.delete(SPACE, id)

    kept = (await session(store, "b")).log
    await store.transaction(work)
    assert await store.database.read(lambda queries: queries.all_logs()) == [kept]
    assert contents(await whole_log(store, "c")) == ["message 0", "message 1"]


async def test_a_feed_reports_a_transaction_after_it_commits(store: Store) -> None:
    await create(store, "a")
    stream = await store.live.session_events(SPACE, "a", 0)

    async def broken(unit: UnitOfWork) -> None:
        await unit.sessions.append(SPACE, "a", [user("never")])
        raise Halt

    async def whole(unit: UnitOfWork) -> None:
        await unit.sessions.append(SPACE, "a", [user("one")])
        await unit.sessions.append(SPACE, "a", [user("two")])

    with pytest.raises(Halt):
        await store.transaction(broken)
    await store.transaction(whole)
    assert contents(await take(stream, 2)) == ["one", "two"]
    await stream.aclose()


async def test_a_rolled_back_transaction_does_not_lose_the_insight(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "insight")

    async def work(unit: UnitOfWork) -> None:
        assert (await unit.sessions.consume_insight(SPACE, "a", None, None, "key")).insight is not None
        raise Halt

    with pytest.raises(Halt):
        await store.transaction(work)
    taken = await store.sessions.consume_insight(SPACE, "a", None, None, "key")
    assert taken.insight is not None
    assert taken.insight.content == "insight"
