"""A store: sessions, tree, views and live feeds over one database."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from storage.database import Database, Transaction
from storage.forms import Forms
from storage.live.reader import LiveReader
from storage.log.recent import RecentCommits
from storage.maintenance import Maintenance
from storage.readers.conversation import ConversationReader
from storage.readers.messages import MessageReader
from storage.readers.runs import RunReader
from storage.readers.surfaces import Surfaces
from storage.scope import DatabaseScope, Scope, TransactionScope
from storage.session_storage import SessionStorage
from storage.session_tree import SessionTree

T = TypeVar("T")


class UnitOfWork:
    """The operations on a store's sessions, all in one scope."""

    def __init__(self, scope: Scope, surfaces: Surfaces) -> None:
        self.sessions = SessionStorage(scope, surfaces)
        self.tree = SessionTree(scope)
        self.messages = MessageReader(scope, surfaces)
        self.conversations = ConversationReader(scope)
        self.maintenance = Maintenance(scope, surfaces)
        self.forms = Forms(scope)
        self.runs = RunReader(scope)


class Store(UnitOfWork):
    """An open store. Each operation is a transaction of its own, except inside `transaction`."""

    def __init__(self, database: Database) -> None:
        self._scope = DatabaseScope(database)
        recent = RecentCommits()
        self._surfaces = Surfaces(recent=recent)
        super().__init__(self._scope, self._surfaces)
        self.database = database
        self.live = LiveReader(database, recent)

    async def transaction(self, work: Callable[[UnitOfWork], Awaitable[T]]) -> T:
        """Runs several operations as one: all of them, or nothing if `work` raises or any operation was refused.

        `work` may be restarted on a collision, so it must have no effects outside the unit of work, and await nothing
        but its operations.
        """
        scope: TransactionScope

        async def whole(tx: Transaction) -> T:
            nonlocal scope
            scope = TransactionScope(tx)
            result = await work(UnitOfWork(scope, self._surfaces))
            if scope.refused is not None:
                raise scope.refused
            return result

        result = await self._scope.transact(whole)
        await self._scope.release(scope.released)
        return result

    async def collect_leftovers(self) -> None:
        """Drops commits that a deletion freed just before its process was killed."""
        await self._scope.release(await self.database.read(lambda queries: queries.unowned_logs()))

    async def close(self) -> None:
        """Ends all feeds, then closes the database."""
        await self.live.close()
        await self.database.close()
