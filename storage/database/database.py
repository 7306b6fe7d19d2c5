"""An open store, and its two ways in: reading, and transactions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from storage import errors
from storage.database.forest import ForestQueries, ForestWrites
from storage.database.keys import KeyQueries, KeyWrites
from storage.database.log import LogQueries, LogWrites
from storage.database.maintenance import MaintenanceQueries, MaintenanceWrites
from storage.database.notification import Notification
from storage.database.runs import RunQueries, RunWrites
from storage.database.sessions import SessionQueries, SessionWrites
from storage.database.slots import SlotQueries, SlotWrites
from storage.log.commit import Commit

T = TypeVar("T")
Listener = Callable[[Sequence[Notification], Sequence[Commit]], None]


class Queries(
    LogQueries, SessionQueries, ForestQueries, SlotQueries, RunQueries, KeyQueries, MaintenanceQueries, Protocol
):
    """All reading. In a transaction: its snapshot and its own writes; else what is committed, and stays so."""


class Transaction(
    Queries, LogWrites, SessionWrites, ForestWrites, SlotWrites, RunWrites, KeyWrites, MaintenanceWrites, Protocol
):
    """Reading and writing as one unit. Writes that set updatedAt set it by the database's clock."""


@dataclass(frozen=True, slots=True)
class Work:
    """Work for a transaction, and the queues it waits in, as arguments of `Database.transact`."""

    run: Callable[[Transaction], Awaitable[Any]]
    queue: Collection[str] = ()


class Database(Protocol):
    """An open store."""

    name: str
    """What the store is and where, for people; without credentials."""

    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        """Runs a query function outside of transactions. Raises Unavailable when the database is out of reach.

        The function awaits nothing but the methods of its argument. `quick` is a hint that it finds a few documents by
        their keys and needs no snapshot over several calls. SQLite answers such a query on the event loop's own
        thread: passing it to another thread and back makes a lookup by key four times as slow (measured), and the
        function alone does not show what it will read. A store may ignore the hint.
        """
        ...

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        """Runs work in one transaction: all of it or, when it raises, nothing. Returns when the result is durable.

        Work is started over on conflicts, so it has no effect outside of the transaction, and awaits nothing but the
        transaction's methods. Raises what the work raises, or Unavailable.

        `queue` is a hint: work of this process that names a common key will conflict. MongoDB runs such work one
        after the other: without it, 100 concurrent appends to one session take several times as long, as each conflict
        starts over. What work will write is not known before it has its snapshot, so the store can't queue it by
        itself. A store with one writer ignores the hint.
        """
        ...

    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        """Runs independent works in their order, and returns the result of each, or the SapwoodError that it raised.

        Works share transactions, so that many small ones cost few commits. One that raises writes nothing, and the
        others are written all the same. Returns when all results are durable. Raises errors other than SapwoodError.
        """
        ...

    async def collect(self, log: str, cut: int) -> int:
        """Drops the commits of a log with first >= cut, and returns how many. Safe to repeat and to interrupt."""
        ...

    def changes(self) -> AsyncIterator[Sequence[Notification]]:
        """What other processes and this one commit from now on; LOST where it may have missed something.

        The first item is empty: nothing after it is missed. Raises Unavailable when it can't go on.
        """
        ...

    def watch(self, listener: Listener) -> None:
        """Calls a listener on the event loop with what this process commits, once durable, before `transact` returns.

        One call may cover several transactions; its notifications and commits are in their order. A listener must not
        raise or block.
        """
        ...

    async def ping(self) -> None:
        """Raises Unavailable when the database is out of reach."""
        ...

    async def close(self) -> None:
        """Finishes the transactions under way, then closes all connections."""
        ...
