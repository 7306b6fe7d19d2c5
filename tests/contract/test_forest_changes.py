"""The forest, live: a snapshot, then the newest state of every node that changed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from storage import errors
from storage.live.forest_changes import DELTA_SECONDS, ForestDelta
from storage.session import SessionConfig, SessionStatus
from storage.session_tree import Forest
from storage.store import Store
from storage.topology import TopologyNode
from tests.conftest import OpenStore
from tests.contract.live import whole_forest
from tests.contract.shorthand import (
    IN_TIME,
    SPACE,
    append,
    create,
    forest,
    rest,
    take,
    texts,
    user,
)

Shown = dict[str, TopologyNode]


async def begin(stream: AsyncIterator[Forest | ForestDelta]) -> Shown:
    [snapshot] = await take(stream, 1)
    assert isinstance(snapshot, Forest)
    return {node.id: node for node in snapshot.nodes}


async def follow(
    stream: AsyncIterator[Forest | ForestDelta], shown: Shown, done: Callable[[Shown], bool]
) -> list[ForestDelta]:
    """Applies deltas to `shown` until it is as wanted."""
    deltas: list[ForestDelta] = []
    async with asyncio.timeout(IN_TIME):
        while not done(shown):
            delta = await anext(stream)
            assert isinstance(delta, ForestDelta)
            assert delta.upserted or delta.removed_ids
            deltas.append(delta)
            for id in delta.removed_ids:
                del shown[id]
            shown.update({node.id: node for node in delta.upserted})
    return deltas


async def follow_to_now(store: Store, stream: AsyncIterator[Forest | ForestDelta], shown: Shown, **wanted: Any) -> None:
    """Follows until `shown` is the forest as queries return it."""
    now = {node.id: node for node in (await forest(store, **wanted)).nodes}
    await follow(stream, shown, lambda shown: shown == now)


async def test_a_snapshot_and_then_every_change(open_store: OpenStore) -> None:
    store, other = await open_store(), await open_store()
    await create(store, "a")
    await create(store, "b", "a")
    stream = await whole_forest(store)
    shown = await begin(stream)
    assert shown.keys() == {"a", "b"}
    await create(store, "c", "b")
    await follow_to_now(store, stream, shown)
    assert shown["b"].document.child_count == 1
    await append(other, "c", *texts(3))
    await follow_to_now(store, stream, shown)
    assert shown["c"].session.head == 3
    await store.sessions.update(SPACE, "a", {"label": "renamed"})
    await other.tree.put_config(SPACE, "a", SessionConfig(skills=["x"]))
    await create(other, "x")
    await store.tree.add_ref(SPACE, "x", "c")
    await follow_to_now(store, stream, shown)
    assert (shown["a"].session.label, shown["x"].document.refs) == ("renamed", ("c",))
    await other.tree.delete(SPACE, "b", cascade=True)
    await follow_to_now(store, stream, shown)
    assert shown.keys() == {"a", "x"}
    assert shown["x"].document.refs == ()
    await stream.aclose()


async def test_a_move_upserts_the_whole_subtree(store: Store) -> None:
    for id, parent in (("a", None), ("b", "a"), ("c", "b"), ("d", "c"), ("x", None)):
        await create(store, id, parent)
    stream = await whole_forest(store)
    shown = await begin(stream)
    await store.tree.move(SPACE, "b", "x")
    now = {node.id: node for node in (await forest(store)).nodes}
    deltas = await follow(stream, shown, lambda shown: shown == now)
    upserted = [node.id for delta in deltas for node in delta.upserted]
    assert {"b", "c", "d"} <= set(upserted)
    assert [id for id in upserted if id in "bcd"] == ["b", "c", "d"]
    await stream.aclose()


async def test_a_tree_to_a_depth_is_followed_as_nodes_come_and_go(store: Store) -> None:
    for id, parent in (("top", None), ("root", "top"), ("a", "root"), ("b", "a"), ("x", None), ("y", "x")):
        await create(store, id, parent)
    stream = await whole_forest(store, "root", max_depth=1)
    shown = await begin(stream)
    assert shown.keys() == {"root", "a"}
    await store.tree.move(SPACE, "b", "root")
    await follow(stream, shown, lambda shown: shown.keys() == {"root", "a", "b"})
    await store.tree.move(SPACE, "a", "b")
    await follow(stream, shown, lambda shown: shown.keys() == {"root", "b"})
    await store.tree.move(SPACE, "x", "root")
    await follow(stream, shown, lambda shown: shown.keys() == {"root", "b", "x"})
    await store.tree.move(SPACE, "root", None)
    await follow_to_now(store, stream, shown, root_id="root", max_depth=1)
    await append(store, "y", user("too deep to be seen"))
    await store.tree.move(SPACE, "x", "top")
    await follow(stream, shown, lambda shown: shown.keys() == {"root", "b"})
    await stream.aclose()


async def test_nodes_of_one_status_are_followed_with_their_ancestors(store: Store) -> None:
    for id, parent in (("a", None), ("b", "a"), ("c", "b"), ("x", None)):
        await create(store, id, parent)
    stream = await whole_forest(store, status=SessionStatus.ARCHIVED)
    shown = await begin(stream)
    assert shown == {}
    await store.sessions.set_status(SPACE, "b", SessionStatus.ARCHIVED)
    await follow(stream, shown, lambda shown: shown.keys() == {"a", "b"})
    await store.sessions.set_status(SPACE, "c", SessionStatus.ARCHIVED)
    await follow(stream, shown, lambda shown: shown.keys() == {"a", "b", "c"})
    await store.tree.move(SPACE, "c", "x")
    await follow(stream, shown, lambda shown: shown.keys() == {"a", "b", "c", "x"})
    await store.sessions.set_status(SPACE, "b", SessionStatus.ACTIVE)
    await follow(stream, shown, lambda shown: shown.keys() == {"c", "x"})
    await stream.aclose()


async def test_there_are_at_most_four_deltas_a_second_with_the_latest_state(store: Store) -> None:
    await create(store, "a")
    stream = await whole_forest(store)
    shown = await begin(stream)
    times: list[float] = []
    heads: list[int] = []
    done = asyncio.Event()

    async def write_all() -> None:
        while not done.is_set():
            await append(store, "a", user("x"))

    writing = asyncio.create_task(write_all())
    async with asyncio.timeout(IN_TIME):
        while len(times) < 6:
            delta = await anext(stream)
            assert isinstance(delta, ForestDelta)
            times.append(time.monotonic())
            heads.append(delta.upserted[0].session.head)
            assert [node.id for node in delta.upserted] == ["a"]
            shown["a"] = delta.upserted[0]  # which may be the last delta, if nothing is appended after it
    done.set()
    await writing
    # On a busy machine the first may be read late, and the last on time.
    assert times[-1] - times[0] >= 4 * DELTA_SECONDS
    assert heads == sorted(set(heads))
    await follow_to_now(store, stream, shown)
    await stream.aclose()


async def test_a_change_that_is_undone_before_the_next_delta_is_not_sent(store: Store) -> None:
    await create(store, "a")
    stream = await whole_forest(store)
    shown = await begin(stream)
    await create(store, "x")
    await store.tree.delete(SPACE, "x")
    await create(store, "mark")
    await follow(stream, shown, lambda shown: "mark" in shown)
    assert shown.keys() == {"a", "mark"}
    await stream.aclose()


async def test_deleting_the_root_completes_the_reader(store: Store) -> None:
    await create(store, "root")
    await create(store, "a", "root")
    stream = await whole_forest(store, "root")
    shown = await begin(stream)
    await store.tree.delete(SPACE, "root", cascade=True)
    deltas = await rest(stream)
    removed = [id for delta in deltas if isinstance(delta, ForestDelta) for id in delta.removed_ids]
    assert sorted(removed) == sorted(shown)


async def test_bad_arguments_are_refused_at_once(store: Store) -> None:
    with pytest.raises(errors.NotFound, match="nobody"):
        await whole_forest(store, "nobody")
    with pytest.raises(errors.BadInput, match="maxDepth"):
        await whole_forest(store, max_depth=-1)


async def test_deleting_the_root_completes_a_reader_with_a_status_filter_too(store: Store) -> None:
    await create(store, "root")
    stream = await whole_forest(store, "root", status=SessionStatus.ACTIVE)
    await take(stream, 1)
    await store.tree.delete(SPACE, "root")
    [removal] = await rest(stream)
    assert isinstance(removal, ForestDelta)
    assert removal.removed_ids == ["root"]


async def test_a_root_whose_status_leaves_the_filter_does_not_complete_its_reader(store: Store) -> None:
    await create(store, "root")
    stream = await whole_forest(store, "root", status=SessionStatus.ACTIVE)
    await take(stream, 1)
    await store.sessions.set_status(SPACE, "root", SessionStatus.ARCHIVED)
    [removal] = await take(stream, 1)
    assert isinstance(removal, ForestDelta)
    assert removal.removed_ids == ["root"]
    await store.sessions.set_status(SPACE, "root", SessionStatus.ACTIVE)
    [addition] = await take(stream, 1)
    assert isinstance(addition, ForestDelta)
    assert [node.id for node in addition.upserted] == ["root"]
    await stream.aclose()
