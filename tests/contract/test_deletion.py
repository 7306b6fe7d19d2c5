"""Deletion: a tree is deleted with everything it owns, and forks keep every event that they share."""

import asyncio

import pytest

from storage import deletion, errors, topology
from storage.events import StepStart, TurnStart
from storage.lifecycle import NewSession
from storage.log.append import Appended
from storage.scope import collect
from storage.session import SessionMeta
from storage.store import Store, UnitOfWork
from tests.conftest import OpenStore
from tests.contract.conftest import Stored
from tests.contract.shorthand import (
    SPACE,
    append,
    contents,
    create,
    fork,
    ids,
    node,
    put,
    put_insight,
    seqs,
    session,
    texts,
    user,
    whole_log,
)
from tests.contract.test_slots import MEMORY
from tests.effort import thorough


async def commits_of(store: Store, log: str) -> list[tuple[int, int]]:
    """First and last seq of each remaining commit of a log."""
    found = await store.database.read(
        lambda queries: queries.commits(log, 0, 2**31, max_events=100_000, max_bytes=2**40)
    )
    return [(commit.first, commit.last) for commit in found]


async def test_deleting_a_leaf_deletes_nothing_else(store: Store) -> None:
    await create(store, "root")
    for id in ("a", "b"):
        await create(store, id, "root")
    assert await store.tree.delete(SPACE, "a") == ["a"]
    assert await store.sessions.get(SPACE, "a") is None
    assert await store.tree.node(SPACE, "a") is None
    assert await store.sessions.slots(SPACE, ["a"]) == {}
    assert await ids(store) == {"root", "b"}
    assert (await node(store, "root")).document.child_count == 1


async def test_a_node_with_children_is_deleted_only_by_cascade(store: Store) -> None:
    await create(store, "root")
    await create(store, "a", "root")
    await create(store, "b", "a")
    await create(store, "c", "b")
    await create(store, "other", "root")
    with pytest.raises(errors.HasChildren):
        await store.tree.delete(SPACE, "a")
    assert await ids(store) == {"root", "a", "b", "c", "other"}
    assert sorted(await store.tree.delete(SPACE, "a", cascade=True)) == ["a", "b", "c"]
    assert await ids(store) == {"root", "other"}
    assert (await node(store, "root")).document.child_count == 1
    assert sorted(await store.tree.delete(SPACE, "root", cascade=True)) == ["other", "root"]
    assert await ids(store) == set()


async def test_an_unknown_session_is_not_found(store: Store) -> None:
    with pytest.raises(errors.NotFound, match="nobody"):
        await store.tree.delete(SPACE, "nobody", cascade=True)


async def test_nothing_of_a_deleted_session_remains_stored(store: Store, stored: Stored) -> None:
    await create(store, "friend")
    made = await create(store, "Gone-1", label="Gone-2", metadata='"Gone-3"', key="Gone-4")
    await append(
        store, "Gone-1", TurnStart(turn_id="Gone-5"), StepStart(step_id="Gone-6"), user("Gone-7"), key="Gone-8"
    )
    await put(store, "Gone-1", MEMORY, "Gone-9")
    await put_insight(store, "Gone-1", "Gone-10")
    await store.sessions.consume_insight(SPACE, "Gone-1", None, None, "Gone-11")
    await store.tree.add_ref(SPACE, "friend", "Gone-1")
    await store.tree.add_ref(SPACE, "Gone-1", "friend")
    await append(store, "friend", user("Stays"))
    assert {"Gone-", made.log, "Stays"} == await stored.mentioned("Gone-", made.log, "Stays")
    await store.tree.delete(SPACE, "Gone-1")
    assert {"Stays"} == await stored.mentioned("Gone-", made.log, "Stays")


async def test_references_to_a_deleted_session_are_removed(store: Store) -> None:
    for id in ("a", "b", "c"):
        await create(store, id)
    await create(store, "below", "b")
    for source, target in (("a", "b"), ("a", "c"), ("c", "below"), ("below", "a"), ("b", "c")):
        await store.tree.add_ref(SPACE, source, target)
    await store.tree.delete(SPACE, "b", cascade=True)
    assert (await node(store, "a")).document.refs == ("c",)
    assert (await node(store, "c")).document.refs == ()
    assert await store.tree.referrers(SPACE, ["a", "b", "c", "below"]) == {"a": [], "b": [], "c": ["a"], "below": []}


async def test_a_session_created_again_under_its_id_has_a_new_log(store: Store) -> None:
    old = await create(store, "a", label="old")
    await append(store, "a", *texts(3), key="key")
    await put(store, "a", MEMORY, "old")
    await store.tree.delete(SPACE, "a")
    new = await create(store, "a")
    assert new.log != old.log
    assert (new.head, new.label, await whole_log(store, "a")) == (0, "Root", [])
    assert not (await append(store, "a", user("new"), key="key")).duplicate
    assert (await put(store, "a", MEMORY, "new", if_version=0)).slot is not None
    assert (await node(store, "a")).document.index == 1


async def test_a_fork_keeps_the_shared_commits_and_the_rest_is_dropped(store: Store) -> None:
    made = await create(store, "a")
    for first, size in ((0, 2), (2, 4), (6, 1), (7, 3)):
        await append(store, "a", *texts(size, first))
    await fork(store, "a", id="b", at_seq=4, as_root=True)
    await append(store, "b", user("own"))
    log = await whole_log(store, "b")
    await store.tree.delete(SPACE, "a")
    assert await whole_log(store, "b") == log
    assert contents(log) == ["message 0", "message 1", "message 2", "message 3", "own"]
    assert log[0].session_id == "a"
    assert await commits_of(store, made.log) == [(0, 1), (2, 5)]
    assert (await node(store, "b")).document.source_session_id == "a"
    assert seqs((await store.sessions.events(await session(store, "b"), last=2)).events) == [3, 4]


async def test_commits_below_the_largest_cut_are_kept(store: Store) -> None:
    made = await create(store, "a")
    for n in range(6):
        await append(store, "a", *texts(2, 2 * n))
    for id, cut in (("b", 3), ("c", 9), ("d", 6)):
        await fork(store, "a", id=id, at_seq=cut, as_root=True)
    await store.tree.delete(SPACE, "a")
    assert await commits_of(store, made.log) == [(n, n + 1) for n in (0, 2, 4, 6, 8)]
    await store.tree.delete(SPACE, "c")
    assert await commits_of(store, made.log) == [(n, n + 1) for n in (0, 2, 4)]
    await store.tree.delete(SPACE, "b")
    assert contents(await whole_log(store, "d")) == [f"message {n}" for n in range(6)]


async def test_deleting_the_last_fork_drops_what_was_kept_for_it(store: Store, stored: Stored) -> None:
    source = await create(store, "a")
    await append(store, "a", *texts(3))
    await fork(store, "a", id="b", as_root=True)
    await append(store, "b", *texts(2, 3))
    last = await fork(store, "b", id="c", at_seq=4, as_root=True)
    await store.tree.delete(SPACE, "b")
    await store.tree.delete(SPACE, "a")
    assert contents(await whole_log(store, "c")) == [f"message {n}" for n in range(4)]
    await store.tree.delete(SPACE, "c")
    assert await store.database.read(lambda queries: queries.all_logs()) == []
    assert await stored.mentioned(source.log, last.log, "message") == set()


async def test_a_fork_below_its_source_is_deleted_with_it(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    await fork(store, "a", id="b")
    await fork(store, "b", id="c")
    assert sorted(await store.tree.delete(SPACE, "a", cascade=True)) == ["a", "b", "c"]
    assert await store.database.read(lambda queries: queries.all_logs()) == []


async def test_shared_commits_remain_readable(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), StepStart(step_id="s"), user("x"), TurnStart(turn_id="later"))
    await append(store, "a", TurnStart(turn_id="last"))
    await fork(store, "a", id="b", at_seq=3, as_root=True)
    await store.tree.delete(SPACE, "a")
    with pytest.raises(errors.BadInput, match="turnId"):
        await append(store, "b", TurnStart(turn_id="t"))
    with pytest.raises(errors.BadInput, match="stepId"):
        await append(store, "b", StepStart(step_id="s"))
    await append(store, "b", TurnStart(turn_id="later"), TurnStart(turn_id="last"))
    again = await fork(store, "b", at_seq=2, as_root=True)
    assert (again.open[0].turn, again.open[0].steps) == ("t", ("s",))


async def test_collecting_again_changes_nothing(store: Store) -> None:
    owned = await create(store, "owned")
    await append(store, "owned", *texts(2))
    made = await create(store, "a")
    for first in (0, 2, 4):
        await append(store, "a", *texts(2, first))
    await fork(store, "a", id="b", at_seq=3, as_root=True)
    await store.tree.delete(SPACE, "a")
    kept = await commits_of(store, made.log)
    for log in (made.log, owned.log, "unknown"):
        assert await collect(store.database, log) == 0
    assert await commits_of(store, made.log) == kept == [(0, 1), (2, 3)]
    assert await commits_of(store, owned.log) == [(0, 1)]


async def test_an_interrupted_collection_can_be_finished_later(store: Store) -> None:
    made = await create(store, "a")
    for n in range(3):
        await append(store, "a", user(str(n)))

    await store.database.transact(lambda tx: deletion.delete(tx, SPACE, "a", cascade=False))
    assert await commits_of(store, made.log) == [(0, 0), (1, 1), (2, 2)]
    assert await collect(store.database, made.log) == 3
    assert await store.database.read(lambda queries: queries.all_logs()) == []


async def test_a_cascade_deletes_at_most_1000_nodes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = topology.MAX_CASCADE
    assert limit == 1_000
    if not thorough(store):
        limit = 100
        monkeypatch.setattr(topology, "MAX_CASCADE", limit)

    async def many(unit: UnitOfWork) -> None:
        await unit.tree.create(SPACE, NewSession(id="root"))
        for n in range(limit - 1):
            await unit.tree.create(SPACE, NewSession(id=f"n{n}", parent_id="root"))

    await store.transaction(many)
    await create(store, "one-more", "root")
    with pytest.raises(errors.BadInput, match=f"{limit - 1}"):
        await store.tree.delete(SPACE, "root", cascade=True)
    await store.tree.delete(SPACE, "one-more")
    assert (await node(store, "root")).document.child_count == limit - 1
    assert len(await store.tree.delete(SPACE, "root", cascade=True)) == limit
    assert await ids(store) == set()


async def test_deleting_and_appending_exclude_each_other(open_store: OpenStore, stored: Stored) -> None:
    stores = [await open_store(), await open_store()]
    for round in range(5):
        made = await create(stores[0], f"Race-{round}")
        results = await asyncio.gather(
            *(append(stores[n % 2], made.id, user("raced")) for n in range(4)),
            stores[1].tree.delete(SPACE, made.id),
            *(append(stores[n % 2], made.id, user("raced")) for n in range(4)),
            return_exceptions=True,
        )
        assert all(isinstance(result, Appended | errors.NotFound | list) for result in results)
        assert await stored.mentioned(made.log, made.id) == set()


async def test_deleting_and_forking_exclude_each_other(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    for round in range(6):
        await create(stores[0], "a")
        await append(stores[0], "a", *texts(3))
        made, deleted = await asyncio.gather(
            fork(stores[round % 2], "a", at_seq=2, as_root=True),
            stores[1].tree.delete(SPACE, "a"),
            return_exceptions=True,
        )
        assert deleted == ["a"]
        if isinstance(made, SessionMeta):
            assert contents(await whole_log(stores[0], made.id)) == ["message 0", "message 1"]
            await stores[0].tree.delete(SPACE, made.id)
        else:
            assert isinstance(made, errors.NotFound)
        assert await stores[0].database.read(lambda queries: queries.all_logs()) == []


async def test_deleting_a_parent_and_creating_a_child_exclude_each_other(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    for round in range(6):
        await create(stores[0], f"p{round}")
        made, deleted = await asyncio.gather(
            create(stores[round % 2], f"c{round}", f"p{round}"),
            stores[1].tree.delete(SPACE, f"p{round}"),
            return_exceptions=True,
        )
        if isinstance(made, SessionMeta):
            assert isinstance(deleted, errors.HasChildren)
            assert await ids(stores[0]) == {f"p{round}", f"c{round}"}
            await stores[0].tree.delete(SPACE, f"p{round}", cascade=True)
        else:
            assert isinstance(made, errors.NotFound)
            assert deleted == [f"p{round}"]
        assert await ids(stores[0]) == set()
