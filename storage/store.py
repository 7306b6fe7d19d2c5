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
from storage.scope import Direct, Scope, Within
from storage.session_storage import SessionStorage
from storage.session_tree import SessionTree

T = TypeVar("T")


class UnitOfWork:
    """What can be done with the sessions of a store, in one scope."""

    def __init__(self, scope: Scope, surfaces: Surfaces) -> None:
        self.sessions = SessionStorage(scope, surfaces)
        self.tree = SessionTree(scope)
        self.messages = MessageReader(scope, surfaces)
        self.conversations = ConversationReader(scope)
        self.maintenance = Maintenance(scope, surfaces)
        self.forms = Forms(scope)
        self.runs = RunReader(scope)


class Store(UnitOfWork):
    """An open store. Each operation is a transaction of its own, unless made inside `transaction`."""

    def __init__(self, database: Database) -> None:
        self._direct = Direct(database)
        recent = RecentCommits()
        self._surfaces = Surfaces(recent=recent)
        super().__init__(self._direct, self._surfaces)
        self.database = database
        self.live = LiveReader(database, recent)

    async def transaction(self, work: Callable[[UnitOfWork], Awaitable[T]]) -> T:
        """Runs several operations as one: all of them, or nothing when `work` raises or one of them was refused.

        It may be started over on a collision, so it must not have effects outside, nor await anything but the
        operations of the unit that it is given.
        """
        scope: Within

        async def whole(tx: Transaction) -> T:
            nonlocal scope
            scope = Within(tx)
            result = await work(UnitOfWork(scope, self._surfaces))
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
        await self.live.close()
        await self.database.close()
