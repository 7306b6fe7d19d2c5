"""The cost of readers: no memory while they wait, no delay for others, nothing once they are gone."""

import asyncio
import gc
from collections.abc import AsyncGenerator

import pytest

from storage import errors
from storage.events import CustomEvent
from storage.log.recent import MAX_BYTES
from storage.session import SlotName
from storage.store import Store
from tests.contract.live import all_events, all_slots, session_events, whole_forest
from tests.contract.shorthand import (
    append,
    contents,
    create,
    put,
    rest,
    seqs,
    take,
    user,
)

MEMORY = SlotName.MEMORY
TURNS = 100


async def test_an_idle_reader_costs_no_memory_and_delays_nobody(store: Store) -> None:
    await create(store, "a")
    sleepers = [await session_events(store, "a", 0), await all_events(store)]
    reader = await session_events(store, "a", 0)
    large = "x" * (1024 * 1024)
    for n in range(40):
        await append(store, "a", CustomEvent(name=str(n), data=f'"{large}"'))
        [event] = await take(reader, 1)
        assert event.seq == n
    log = event.id.partition("/")[0]
    del event
    gc.collect()
    held = [found for found in gc.get_objects() if type(found) is CustomEvent and found.id.startswith(log)]
    assert len(held) * len(large) <= MAX_BYTES
    assert store.live.recent.memory <= MAX_BYTES
    del held
    for sleeper in sleepers:
        assert seqs(await take(sleeper, 40)) == list(range(40))
        await sleeper.aclose()
    await reader.aclose()


async def test_a_failing_reader_does_not_affect_others(store: Store) -> None:
    await create(store, "a")
    failing, reader = await session_events(store, "a", 0), await session_events(store, "a", 0)
    await append(store, "a", user("one"))
    await take(failing, 1)
    with pytest.raises(RuntimeError, match="reader"):
        await failing.athrow(RuntimeError("reader"))
    await append(store, "a", user("two"))
    assert contents(await take(reader, 2)) == ["one", "two"]
    await reader.aclose()


async def open_all(store: Store) -> list[AsyncGenerator[object, None]]:
    return [
        await session_events(store, "a", 0),
        await all_events(store, positions={"a": 0}),
        await whole_forest(store),
        await all_slots(store, "a"),
    ]


async def all_freed(store: Store) -> None:
    """Returns once no readers are left, which takes a few turns of the event loop and waits for no timer."""
    for _ in range(TURNS):
        if store.live.hub.count == 0:
            return
        gc.collect()
        await asyncio.sleep(0)
    pytest.fail(f"{store.live.hub.count} readers are left after {TURNS} turns of the event loop")


async def test_closing_frees_everything(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"))
    streams = await open_all(store)
    assert store.live.hub.count == 4
    await put(store, "a", MEMORY, "x")
    for stream in streams:
        await take(stream, 1)
    for left, stream in zip((3, 2, 1, 0), streams, strict=True):
        await stream.aclose()
        assert store.live.hub.count == left
    assert store.live.hub._subscriptions == {}


async def test_a_cancelled_reader_is_freed(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"))
    streams = await open_all(store)
    await put(store, "a", MEMORY, "x")
    for stream in streams:
        await take(stream, 1)
    waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await asyncio.sleep(0)  # lets all of them start waiting
    for task in waiting:
        task.cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert store.live.hub.count == 0
    assert store.live.hub._subscriptions == {}


async def test_a_reader_closed_before_it_reads_is_freed(store: Store) -> None:
    await create(store, "a")
    streams = await open_all(store)
    while streams:
        await streams.pop().aclose()
    await all_freed(store)
    assert store.live.hub._subscriptions == {}


async def test_an_abandoned_reader_is_freed(store: Store) -> None:
    await create(store, "a")
    streams = await open_all(store)
    streams.clear()
    await all_freed(store)
    assert store.live.hub._subscriptions == {}


async def test_a_refused_reader_is_freed(store: Store) -> None:
    await create(store, "a")

    async def try_all() -> None:
        for refused in (
            lambda: session_events(store, "nobody"),
            lambda: session_events(store, "a", 7),
            lambda: all_events(store, "nobody"),
            lambda: whole_forest(store, "nobody"),
            lambda: all_slots(store, "nobody"),
        ):
            try:
                await refused()
            except errors.SapwoodError:
                continue
            raise AssertionError("was not refused")

    await try_all()
    await all_freed(store)
    assert store.live.hub._subscriptions == {}


async def test_closing_the_store_ends_all_readers(store: Store) -> None:
    await create(store, "a")
    streams = await open_all(store)
    shown = streams.pop(2)
    await take(shown, 1)
    ends = [asyncio.create_task(rest(stream)) for stream in (*streams, shown)]
    await store.live.close()
    for end in ends:
        await end
    assert store.live.hub.count == 0
