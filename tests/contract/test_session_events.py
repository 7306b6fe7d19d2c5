"""Live events of one session: each exactly once and in order, first stored, then live."""

import asyncio
import random

import pytest

from storage import errors
from storage.events import Event, TurnEnd, TurnStart
from storage.session import SessionStatus
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.live import session_events, write
from tests.contract.shorthand import (
    SPACE,
    append,
    contents,
    create,
    fork,
    rest,
    session,
    take,
    texts,
    user,
    whole_log,
)


async def test_readers_go_from_stored_to_live_events_while_20_writers_append(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(30))
    await append(store, "a", *texts(20))
    chance = random.Random(1)
    readers = [await session_events(store, "a", from_seq) for from_seq in (0, 7, 49, 50)]
    writers = asyncio.gather(*(write(store, "a", 8, random.Random(seed)) for seed in range(20)))
    readers += [await session_events(store, "a", chance.randint(0, 50)) for _ in range(4)]
    await writers
    log = await whole_log(store, "a")
    for reader in readers:
        first = (await take(reader, 1))[0]
        following = await take(reader, len(log) - first.seq - 1)
        assert [first, *following] == log[first.seq :]
        await reader.aclose()


async def test_a_reader_that_keeps_up_gets_each_event_as_stored(store: Store) -> None:
    await create(store, "a")
    reader = await session_events(store, "a", 0)
    reading = asyncio.create_task(take(reader, 20))
    for n in range(20):
        await append(store, "a", user(str(n)))
    read = await reading
    assert read == await whole_log(store, "a")
    await reader.aclose()


async def test_a_reader_may_start_at_any_seq(store: Store) -> None:
    await create(store, "a")
    for first, size in ((0, 1), (1, 5), (6, 3)):
        await append(store, "a", *texts(size, first))
    await fork(store, "a", id="b", at_seq=4)
    await append(store, "b", *texts(5, 4))
    for id in ("a", "b"):
        log = await whole_log(store, id)
        for from_seq in range(10):
            reader = await session_events(store, id, from_seq)
            assert await take(reader, 9 - from_seq) == log[from_seq:]
            await reader.aclose()


async def test_a_reader_without_a_seq_gets_only_new_events(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(5))
    reader = await session_events(store, "a")
    await append(store, "a", user("new"))
    assert contents(await take(reader, 1)) == ["new"]
    await reader.aclose()


async def test_a_reader_that_resumes_at_last_plus_one_gets_exactly_the_rest(store: Store) -> None:
    await create(store, "a")
    writing = asyncio.create_task(write(store, "a", 60, random.Random(2)))
    sizes = random.Random(2)
    total = sum(sizes.randint(1, 3) for _ in range(60))
    chance = random.Random(3)
    read: list[Event] = []
    while len(read) < total:
        reader = await session_events(store, "a", len(read))
        read += await take(reader, min(chance.randint(1, 9), max((await session(store, "a")).head - len(read), 1)))
        await reader.aclose()
    await writing
    assert read == await whole_log(store, "a")
    assert store.live.hub.count == 0


async def test_appends_through_another_store_reach_its_readers(open_store: OpenStore) -> None:
    first, second = await open_store(), await open_store()
    await create(first, "a")
    readers = [await session_events(first, "a", 0), await session_events(first, "a")]
    reading = [asyncio.create_task(take(reader, 30)) for reader in readers]
    for n in range(30):
        await append((second, second, first)[n % 3], "a", user(str(n)))
    for task in reading:
        assert contents(await task) == [str(n) for n in range(30)]
    for reader in readers:
        await reader.aclose()


async def test_appends_through_two_stores_reach_readers_of_both(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    readers = [await session_events(store, "a", 0) for store in stores]
    reading = [asyncio.create_task(take(reader, 60)) for reader in readers]
    await asyncio.gather(*(append(stores[n % 2], "a", *texts(2)) for n in range(30)))
    log = await whole_log(stores[0], "a")
    assert [await task for task in reading] == [log, log]
    for reader in readers:
        await reader.aclose()


async def test_deleting_the_session_completes_its_readers(open_store: OpenStore) -> None:
    first, second = await open_store(), await open_store()
    for deleter in (first, second):
        await create(first, "a")
        await append(first, "a", user("x"))
        caught_up = await session_events(first, "a", 0)
        waiting = await session_events(first, "a")
        await take(caught_up, 1)
        ends = [asyncio.create_task(rest(reader)) for reader in (caught_up, waiting)]
        await deleter.tree.delete(SPACE, "a")
        assert [await end for end in ends] == [[], []]
    assert first.live.hub.count == 0


async def test_a_reader_of_a_deleted_session_gets_nothing_of_one_that_reuses_its_id(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("old"))
    reader = await session_events(store, "a")
    await store.tree.delete(SPACE, "a")
    await create(store, "a")
    await append(store, "a", *texts(3))
    assert await rest(reader) == []


async def test_an_archived_session_can_be_followed_and_goes_on_once_restored(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("before"))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    reader = await session_events(store, "a", 0)
    assert contents(await take(reader, 1)) == ["before"]
    await store.sessions.set_status(SPACE, "a", SessionStatus.ACTIVE)
    await store.sessions.update(SPACE, "a", {"label": "renamed"})
    await append(store, "a", user("after"))
    assert contents(await take(reader, 1)) == ["after"]
    await reader.aclose()


async def test_a_bad_seq_and_an_unknown_session_are_refused_at_once(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    for from_seq in (-1, 4, 2**31):
        with pytest.raises(errors.BadInput, match=r"fromSeq.*3"):
            await session_events(store, "a", from_seq)
    with pytest.raises(errors.NotFound, match="nobody"):
        await session_events(store, "nobody", 0)
    await store.tree.delete(SPACE, "a")
    with pytest.raises(errors.NotFound, match="a"):
        await session_events(store, "a", 0)


async def test_what_is_appended_to_the_source_later_does_not_reach_readers_of_a_fork(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(4))
    await fork(store, "a", id="b", at_seq=2)
    reader = await session_events(store, "b", 0)
    await append(store, "a", user("of a"))
    await append(store, "b", user("of b"))
    assert contents(await take(reader, 3)) == ["message 0", "message 1", "of b"]
    await reader.aclose()


async def test_only_events_of_the_given_types_are_sent(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), *texts(2))
    reader = await store.live.session_events(SPACE, "a", 0, ["turn/start", "turn/end"])
    await append(store, "a", user("x"), TurnEnd(turn_id="t"))
    assert [event.seq for event in await take(reader, 2)] == [0, 4]
    await reader.aclose()
