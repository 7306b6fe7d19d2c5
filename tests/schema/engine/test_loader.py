"""Look-ups that are gathered."""

import asyncio
from collections.abc import Sequence

import pytest

from schema.engine.loader import Loader


class Asked:
    """What a loader was asked for; it answers once `open` is set."""

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


async def test_look_ups_of_one_moment_are_one_and_nothing_is_remembered() -> None:
    asked = Asked()
    asked.open.set()
    loader = Loader(asked.find)
    assert list(await asyncio.gather(loader.load(1), loader.load(2), loader.load(1))) == ["1", "2", "1"]
    assert await loader.load_many([2, 1, 2]) == ["2", "1", "2"]
    assert asked.keys == [[1, 2], [2, 1]]


async def test_a_failure_is_told_to_all_who_wait() -> None:
    asked = Asked()
    asked.open.set()
    loader = Loader(asked.find)
    found = await asyncio.gather(loader.load(-1), loader.load(2), return_exceptions=True)
    assert [type(item) for item in found] == [LookupError, LookupError]
    assert await loader.load(2) == "2"


async def test_who_waits_no_more_costs_the_others_nothing() -> None:
    asked = Asked()
    loader = Loader(asked.find)
    gone, staying = loader.load(1), loader.load(1)
    await asked.begun.wait()
    gone.cancel()
    asked.open.set()
    assert await staying == "1"
    assert not asked.cancelled.is_set()


async def test_a_look_up_for_which_nobody_waits_is_cancelled_however_many_did() -> None:
    asked = Asked()
    loader = Loader(asked.find)
    waiting = asyncio.gather(*(loader.load(key % 100) for key in range(100_000)))
    await asked.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asked.cancelled.wait()
    assert asked.keys == [list(range(100))]
