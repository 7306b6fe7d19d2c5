"""Where an operation runs: in a transaction of its own, or inside one that is already open."""

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol, TypeVar

from storage import errors
from storage.database import Database, Queries, Transaction

T = TypeVar("T")
logger = logging.getLogger("sapwood.collector")


class Scope(Protocol):
    """What the parts of a store need of a database or of an open transaction.

    `committed`: what is read is committed, and so can't be undone.
    """

    committed: bool

    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T: ...
    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T: ...
    async def release(self, logs: Collection[str]) -> None:
        """Drops what no session reads any more of these logs, once the transaction that freed them is durable."""
        ...


async def collect(database: Database, log: str) -> int:
    """Drops the commits of a log that nobody reads any more; how many. Safe to repeat and to interrupt."""
    holders = await database.read(lambda queries: queries.holders(log))
    return 0 if holders.owned else await database.collect(log, holders.largest_cut)


class Direct:
    """Each operation is one transaction."""

    committed = True

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        return await self._database.read(query, quick=quick)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        return await self._database.transact(work, queue=queue)

    async def release(self, logs: Collection[str]) -> None:
        try:
            for log in logs:
                await collect(self._database, log)
        except errors.Unavailable as error:
            # What was asked for is done and durable; the rest is dropped at a server's next start.
            logger.warning("commits of deleted sessions are left over for now: %s", error)


class Within:
    """All operations are parts of one transaction. `released` are the logs to collect after it.

    `refused` is the first operation's error: it may have written before, so nothing of the transaction can stand.
    """

    committed = False

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.released: list[str] = []
        self.refused: Exception | None = None

    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        return await query(self._transaction)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        try:
            return await work(self._transaction)
        except Exception as error:
            self.refused = self.refused or error
            raise

    async def release(self, logs: Collection[str]) -> None:
        self.released.extend(logs)
