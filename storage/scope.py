"""Where an operation runs: in a transaction of its own, or inside one that is already open."""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from typing_extensions import override

from storage import errors
from storage.database import Database, Queries, Transaction, Work

T = TypeVar("T")
logger = logging.getLogger("sapwood.collector")


class Scope(Protocol):
    """What the parts of a store need of a database or of an open transaction.

    `committed`: reads see only committed data, which can't be rolled back.
    """

    committed: bool

    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        """Runs a query function, as `storage.database.Database.read`."""
        ...

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        """Runs work as one unit, as `storage.database.Database.transact`."""
        ...

    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        """Runs independent works, as `storage.database.Database.transact_each`."""
        ...

    async def release(self, logs: Collection[str]) -> None:
        """Drops the commits of these logs that no session reads, once the transaction that freed them is durable."""
        ...


def session_queue(space: str, id: str) -> str:
    """The queue in which writes to a session wait for each other."""
    return f"session {space}/{id}"


def node_queue(space: str, id: str) -> str:
    """The queue in which changes of a node, and of the list of its children, wait for each other."""
    return f"node {space}/{id}"


def children_queue(space: str, parent_id: str | None) -> str:
    """The queue in which new children of a parent, or new roots, wait for each other."""
    return f"roots {space}" if parent_id is None else node_queue(space, parent_id)


async def collect(database: Database, log: str) -> int:
    """Drops the commits of a log that no session reads, and returns how many. Safe to repeat and to interrupt."""
    holders = await database.read(lambda queries: queries.holders(log))
    return 0 if holders.owned else await database.collect(log, holders.largest_cut)


class DatabaseScope(Scope):
    """Runs each operation in a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self.committed = True
        self._database = database

    @override
    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        return await self._database.read(query, quick=quick)

    @override
    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        return await self._database.transact(work, queue=queue)

    @override
    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        return await self._database.transact_each(works)

    @override
    async def release(self, logs: Collection[str]) -> None:
        try:
            for log in logs:
                await collect(self._database, log)
        except errors.Unavailable as error:
            # The deletion itself is durable; a server drops the rest at its next start.
            logger.warning("commits of deleted sessions are left over for now: %s", error)


class TransactionScope(Scope):
    """Runs all operations in one open transaction. `released` are the logs to collect after it.

    `refused` is the first error of an operation. It may have written before it failed, so the transaction must not
    commit.
    """

    def __init__(self, transaction: Transaction) -> None:
        self.committed = False
        self._transaction = transaction
        self.released: list[str] = []
        self.refused: Exception | None = None

    @override
    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        return await query(self._transaction)

    @override
    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        try:
            return await work(self._transaction)
        except Exception as error:
            self.refused = self.refused or error
            raise

    @override
    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        return [await self._attempt(work) for work in works]

    async def _attempt(self, work: Work) -> Any | errors.SapwoodError:
        try:
            return await self.transact(work.run)
        except errors.SapwoodError as error:
            return error

    @override
    async def release(self, logs: Collection[str]) -> None:
        self.released.extend(logs)
