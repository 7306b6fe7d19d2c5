"""Batched look-ups: all keys requested in one tick of the event loop are found together.

Strawberry's own DataLoader needs time quadratic in the size of a batch to cancel it: stopping a query of ten thousand
look-ups blocked the server for minutes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class _Batch(Generic[K, T]):
    """The futures waiting for each key. The look-up is cancelled once all of them are done."""

    def __init__(self) -> None:
        self.waiting: dict[K, list[asyncio.Future[T]]] = {}
        self.task: asyncio.Task[None] | None = None
        self._pending = 0

    def add(self, key: K) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._done)
        self.waiting.setdefault(key, []).append(future)
        self._pending += 1
        return future

    def _done(self, future: asyncio.Future[T]) -> None:
        self._pending -= 1
        if self._pending == 0 and future.cancelled() and self.task is not None:
            self.task.cancel()

    async def answer(self, find: Callable[[Sequence[K]], Awaitable[Sequence[T]]]) -> None:
        if self._pending == 0:
            return
        try:
            found = await find(list(self.waiting))
        except Exception as error:
            for futures in self.waiting.values():
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
            return
        for futures, value in zip(self.waiting.values(), found, strict=True):
            for future in futures:
                if not future.done():
                    future.set_result(value)


class Loader(Generic[K, T]):
    """Finds values by key, without caching. `find` gets distinct keys and returns values in their order."""

    def __init__(self, find: Callable[[Sequence[K]], Awaitable[Sequence[T]]]) -> None:
        self._find = find
        self._batch: _Batch[K, T] | None = None

    def load(self, key: K) -> asyncio.Future[T]:
        """The value of a key, once its batch is answered."""
        if self._batch is None:
            self._batch = _Batch()
            asyncio.get_running_loop().call_soon(self._begin)
        return self._batch.add(key)

    async def load_many(self, keys: Iterable[K]) -> list[T]:
        """The values of several keys, in order."""
        return await asyncio.gather(*map(self.load, keys))

    def _begin(self) -> None:
        batch, self._batch = self._batch, None
        assert batch is not None
        batch.task = asyncio.get_running_loop().create_task(batch.answer(self._find))
