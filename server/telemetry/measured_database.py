"""A database whose calls are timed."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from typing_extensions import override

from server.telemetry.metrics import Metrics
from storage import errors
from storage.database import Database, Listener, Notification, Queries, Transaction, Work

T = TypeVar("T")


class MeasuredDatabase(Database):
    """A database whose reads, transactions and commits are counted and timed."""

    def __init__(self, database: Database, metrics: Metrics) -> None:
        self.name = database.name
        self._database = database
        self._metrics = metrics
        database.watch(metrics.committed)

    @contextmanager
    def _timed(self, call: str) -> Iterator[None]:
        began = time.perf_counter()
        outcome = "failed"
        try:
            yield
            outcome = "ok"
        except errors.Unavailable:
            outcome = "unavailable"
            raise
        except errors.SapwoodError:
            outcome = "refused"
            raise
        finally:
            self._metrics.database_call(call, outcome, time.perf_counter() - began)

    @override
    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        with self._timed("read"):
            return await self._database.read(query, quick=quick)

    @override
    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        with self._timed("transact"):
            return await self._database.transact(work, queue=queue)

    @override
    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        with self._timed("transact_each"):
            return await self._database.transact_each(works)

    @override
    async def collect(self, log: str, cut: int) -> int:
        with self._timed("collect"):
            return await self._database.collect(log, cut)

    @override
    def changes(self) -> AsyncIterator[Sequence[Notification]]:
        return self._database.changes()

    @override
    def watch(self, listener: Listener) -> None:
        self._database.watch(listener)

    @override
    async def ping(self) -> None:
        with self._timed("ping"):
            await self._database.ping()

    @override
    async def close(self) -> None:
        await self._database.close()
