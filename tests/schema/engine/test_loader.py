"""Batched look-ups."""

import asyncio
from collections.abc import Sequence

import pytest

from schema.engine.loader import Loader


class Finder:
    """A `find` function that records its keys and answers once `open` is set."""

    def __init__(self) -> None:
        self.keys: list[list[int]] = []
        self.begun = asyncio.Event()
        self.open = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def find(self, keys: Sequence[int]) -> Sequence[str]:
        self.keys.append(list(keys))
        self.begun.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if -1 in keys:
            raise LookupError
        return [str(key) for key in keys]


async def test_look_ups_of_one_tick_are_batched_and_not_cached() -> None:
    finder = Finder()
    finder.open.set()
    loader = Loader(finder.find)
    assert list(await asyncio.gather(loader.load(1), loader.load(2), loader.load(1))) == ["1", "2", "1"]
    assert await loader.load_many([2, 1, 2]) == ["2", "1", "2"]
    assert finder.keys == [[1, 2], [2, 1]]


async def test_a_failure_reaches_everyone_who_waits() -> None:
    finder = Finder()
    finder.open.set()
    loader = Loader(finder.find)
    found = await asyncio.gather(loader.load(-1), loader.load(2), return_exceptions=True)
    assert [type(item) for item in found] == [LookupError, LookupError]
    assert await loader.load(2) == "2"


async def test_a_cancelled_look_up_leaves_the_others_alone() -> None:
    finder = Finder()
    loader = Loader(finder.find)
    cancelled, kept = loader.load(1), loader.load(1)
    await finder.begun.wait()
    cancelled.cancel()
    finder.open.set()
    assert await kept == "1"
    assert not finder.cancelled.is_set()


async def test_a_batch_is_cancelled_once_nobody_waits_for_it() -> None:
    finder = Finder()
    loader = Loader(finder.find)
    waiting = asyncio.gather(*(loader.load(key % 100) for key in range(100_000)))
    await finder.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await finder.cancelled.wait()
    assert finder.keys == [list(range(100))]
