"""Live events of many sessions: each event once and in order per session, as sessions come and go."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from storage import errors
from storage.database import LOST, Notification
from storage.events import Event, TurnEnd, TurnStart
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.live import all_events, write
from tests.contract.shorthand import (
    SPACE,
    append,
    contents,
    create,
    fork,
    rest,
    take,
    texts,
    user,
    whole_log,
)


async def by_session(stream: AsyncIterator[Event], count: int) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for event in await take(stream, count):
        found[event.session_id].append(event.seq)
    return dict(found)


async def test_a_space_is_followed_from_now_on_with_later_sessions(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    reader = await all_events(store)
    await append(store, "a", *texts(2))
    await create(store, "b")
    await append(store, "b", *texts(2))
    await append(store, "a", user("x"))
    assert await by_session(reader, 5) == {"a": [3, 4, 5], "b": [0, 1]}
    await reader.aclose()


async def test_each_event_is_sent_once_and_in_order_while_20_writers_append(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    names = [f"s{n}" for n in range(5)]
    for id in names:
        await create(stores[0], id)
        await append(stores[0], id, *texts(4))
    readers = [await all_events(store, positions={"s0": 0, "s1": 3}) for store in stores]

    async def read_to_the_last(reader: AsyncIterator[Event]) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {id: [] for id in names}
        while not all(contents(events[-1:]) == ["last"] for events in found.values()):
            [event] = await take(reader, 1)
            found[event.session_id].append(event)
        return found

    reading = [asyncio.create_task(read_to_the_last(reader)) for reader in readers]
    await asyncio.gather(*(write(stores[n % 2], names[n % 5], 5, random.Random(n)) for n in range(20)))
    for id in names:
        await append(stores[0], id, user("last"))
    starts = dict(zip(names, (0, 3, 4, 4, 4), strict=True))
    expected = {id: (await whole_log(stores[0], id))[start:] for id, start in starts.items()}
    assert [await task for task in reading] == [expected, expected]
    for reader in readers:
        await reader.aclose()


async def test_sessions_with_positions_catch_up_first(store: Store) -> None:
    for id in ("a", "b", "c"):
        await create(store, id)
        await append(store, id, *texts(3))
    reader = await all_events(store, positions={"a": 1, "b": 3})
    assert await by_session(reader, 2) == {"a": [1, 2]}
    for id in ("a", "b", "c"):
        await append(store, id, user("x"))
    assert await by_session(reader, 3) == {"a": [3], "b": [3], "c": [3]}
    await reader.aclose()


async def test_a_fork_sends_only_its_own_events(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    await fork(store, "a", id="early")
    await append(store, "early", user("own"))
    reader = await all_events(store, positions={"early": 0})
    await fork(store, "a", id="late", prompt="go")
    await append(store, "late", user("more"))
    await append(store, "early", user("more"))
    assert await by_session(reader, 4) == {"early": [3, 4], "late": [3, 4]}
    await reader.aclose()


async def test_a_subtree_is_followed_with_what_moves_in_and_without_what_moves_out(store: Store) -> None:
    await create(store, "root")
    await create(store, "in", "root")
    await create(store, "out")
    await create(store, "below", "out")
    for id in ("in", "out", "below"):
        await append(store, id, *texts(2))
    reader = await all_events(store, "root")
    await append(store, "out", user("not seen"))
    await append(store, "in", user("seen"))
    assert await by_session(reader, 1) == {"in": [2]}
    await store.tree.move(SPACE, "out", "in")
    await append(store, "root", user("mark"))
    assert await by_session(reader, 1) == {"root": [0]}
    await append(store, "out", user("seen"))
    await append(store, "below", user("seen"))
    assert await by_session(reader, 2) == {"out": [3], "below": [2]}
    await store.tree.move(SPACE, "in", None)
    await append(store, "root", user("mark"))
    assert await by_session(reader, 1) == {"root": [1]}
    for id in ("in", "out", "below"):
        await append(store, id, user("not seen"))
    await append(store, "root", user("mark"))
    assert await by_session(reader, 1) == {"root": [2]}
    await store.tree.move(SPACE, "below", "root")
    await append(store, "root", user("mark"))
    assert await by_session(reader, 1) == {"root": [3]}
    await append(store, "below", user("seen"))
    assert await by_session(reader, 1) == {"below": [4]}
    await reader.aclose()


async def test_a_late_reader_gets_what_is_appended_right_after_a_move_in(
    open_store: OpenStore,
) -> None:
    first, second = await open_store(), await open_store()
    for round, writer in enumerate((first, second)):
        await create(first, f"root{round}")
        await create(first, f"a{round}")
        await append(first, f"a{round}", *texts(2))
        reader = await all_events(first, f"root{round}")
        await append(writer, f"a{round}", user("outside"))
        await writer.tree.move(SPACE, f"a{round}", f"root{round}")
        await append(writer, f"a{round}", user("inside"))
        assert await by_session(reader, 1) == {f"a{round}": [3]}
        await reader.aclose()


async def test_a_busy_reader_gets_what_is_appended_after_a_move_in(store: Store) -> None:
    await create(store, "root")
    await create(store, "a")
    await append(store, "a", user("outside"))
    reader = await all_events(store, "root")
    await store.tree.move(SPACE, "a", "root")
    await append(store, "root", user("mark"))
    assert await by_session(reader, 1) == {"root": [0]}
    await append(store, "a", user("inside"))
    assert await by_session(reader, 1) == {"a": [1]}
    await reader.aclose()


async def test_a_notification_that_arrives_twice_and_late_hides_nothing(store: Store) -> None:
    await create(store, "root")
    await create(store, "a")
    await append(store, "a", user("outside"))
    reader = await all_events(store, "root")
    await store.tree.move(SPACE, "a", "root")
    await append(store, "a", user("inside"))
    store.live.hub.publish([Notification("node", SPACE, "a")])  # as a change stream reports this process's own move
    assert await by_session(reader, 1) == {"a": [1]}
    await reader.aclose()


async def test_a_session_created_again_is_followed_from_its_start(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    reader = await all_events(store)
    await store.tree.delete(SPACE, "a")
    await create(store, "a")
    await append(store, "a", *texts(2))
    assert await by_session(reader, 2) == {"a": [0, 1]}
    await reader.aclose()


async def test_the_deletion_of_the_root_completes_the_reader(store: Store) -> None:
    await create(store, "root")
    await create(store, "a", "root")
    reader = await all_events(store, "root")
    await append(store, "a", user("x"))
    assert len(await take(reader, 1)) == 1
    await store.tree.delete(SPACE, "root", cascade=True)
    assert await rest(reader) == []


async def test_bad_positions_and_an_unknown_root_are_refused_at_once(store: Store) -> None:
    await create(store, "root")
    await create(store, "stranger")
    await append(store, "root", *texts(2))
    for from_seq in (-1, 3):
        with pytest.raises(errors.BadInput, match="root"):
            await all_events(store, positions={"root": from_seq})
    with pytest.raises(errors.NotFound, match="nobody"):
        await all_events(store, positions={"nobody": 0})
    with pytest.raises(errors.NotFound, match="stranger"):
        await all_events(store, "root", {"stranger": 0})
    with pytest.raises(errors.NotFound, match="nobody"):
        await all_events(store, "nobody")


async def test_what_was_appended_before_a_session_left_is_sent(open_store: OpenStore) -> None:
    """Even to a reader that reads only after the append and the move out."""
    store, other = await open_store(), await open_store()
    await create(store, "root")
    await create(store, "a", "root")
    reader = await all_events(store, root_id="root")
    await append(other, "a", user("in time"))
    await other.tree.move(SPACE, "a", None)
    await append(other, "a", user("too late"))
    await append(other, "root", user("mark"))
    assert contents(await take(reader, 2)) == ["in time", "mark"]
    await reader.aclose()


async def test_a_reader_not_yet_notified_of_the_move_out_reads_no_further(
    open_store: OpenStore,
) -> None:
    store, other = await open_store(), await open_store()
    await create(store, "root")
    made = await create(store, "a", "root")
    reader = await all_events(store, root_id="root")
    assert store.live._listening is not None
    store.live._listening.cancel()  # from here on, the test decides what the reader is notified of
    await append(other, "a", user("in time"))
    await other.tree.move(SPACE, "a", None)
    await append(other, "a", user("too late"))
    await append(other, "root", user("mark"))
    store.live.hub.publish([Notification("log", SPACE, "a", made.log, 0, 0)])
    assert contents(await take(reader, 1)) == ["in time"]
    store.live.hub.publish([LOST])
    assert contents(await take(reader, 1)) == ["mark"]
    await reader.aclose()


async def test_a_session_created_outside_counts_from_its_move_in(open_store: OpenStore) -> None:
    """However late the reader reads, it gets what was appended inside and not what was appended outside."""
    store, other = await open_store(), await open_store()
    await create(store, "root")
    reader = await all_events(store, root_id="root")
    await create(other, "a")
    await append(other, "a", user("outside"))
    await other.tree.move(SPACE, "a", "root")
    await append(other, "a", user("inside"))
    assert contents(await take(reader, 1)) == ["inside"]
    await reader.aclose()


async def test_a_session_created_inside_and_moved_within_is_sent_whole(open_store: OpenStore) -> None:
    store, other = await open_store(), await open_store()
    await create(store, "root")
    await create(store, "branch", "root")
    reader = await all_events(store, root_id="root")
    await create(other, "a", "root")
    await append(other, "a", user("first"))
    await other.tree.move(SPACE, "a", "branch")
    await append(other, "a", user("second"))
    assert contents(await take(reader, 2)) == ["first", "second"]
    await reader.aclose()


async def test_only_events_of_the_given_types_are_sent(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), *texts(2))
    reader = await store.live.space_events(SPACE, positions=[("a", 0)], types=["turn/start", "turn/end"])
    await append(store, "a", user("x"), TurnEnd(turn_id="t"))
    assert await by_session(reader, 2) == {"a": [0, 4]}
    await reader.aclose()


async def test_a_session_may_be_named_twice_only_with_the_same_position(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    reader = await store.live.space_events(SPACE, positions=[("a", 1), ("a", 1)])
    assert await by_session(reader, 1) == {"a": [1]}
    await reader.aclose()
    with pytest.raises(errors.BadInput, match="positions: a is named twice, with different fromSeq"):
        await store.live.space_events(SPACE, positions=[("a", 1), ("a", 2)])
