"""A store: sessions, tree, runs and feed over one database."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from storage.database import Database, Transaction
from storage.feed import Feed
from storage.run_reading import RunViews
from storage.scope import Direct, Scope, Within
from storage.sessions import SessionStorage
from storage.tree import SessionTree

T = TypeVar("T")


class Unit:
    """Sessions, tree and runs in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.sessions = SessionStorage(scope)
        self.tree = SessionTree(scope)
        self.runs = RunViews(scope)


class Store(Unit):
    """An open store. Each operation is a transaction of its own, unless made inside `transaction`."""

    def __init__(self, database: Database) -> None:
        self._direct = Direct(database)
        super().__init__(self._direct)
        self.database = database
        self.feed = Feed(database)

    async def transaction(self, work: Callable[[Unit], Awaitable[T]]) -> T:
        """Runs several operations as one: all of them, or nothing when `work` raises or one of them was refused.

        It may be started over on a collision, so it must not have effects outside, nor await anything but the
        operations of the unit that it is given.
        """
        scope: Within

        async def whole(tx: Transaction) -> T:
            nonlocal scope
            scope = Within(tx)
            result = await work(Unit(scope))
            if scope.refused is not None:
                raise scope.refused
            return result

        result = await self._direct.transact(whole)
        await self._direct.release(scope.released)
        return result

    async def collect_leftovers(self) -> None:
        """Drops commits that a deletion freed just before its process was killed."""
        await self._direct.release(await self.database.read(lambda queries: queries.unowned_logs()))

    async def close(self) -> None:
        """Ends all feeds, then closes the database."""
        await self.feed.close()
        await self.database.close()
