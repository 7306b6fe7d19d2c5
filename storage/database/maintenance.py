"""Work on a whole store: its clock, its spaces, and deleting sessions."""

from collections.abc import Collection
from typing import Protocol

from storage.events import Instant


class MaintenanceQueries(Protocol):
    """Reading about the store as a whole."""

    async def all_spaces(self) -> list[str]:
        """All spaces that have sessions, nodes or rows of runs; each once, in no order."""
        ...

    async def as_of(self) -> Instant:
        """A time (ms) such that whatever is committed later has an updatedAt that is not before it."""
        ...


class MaintenanceWrites(Protocol):
    """Writing over several kinds of documents."""

    async def rely_on(self, space: str, *, sessions: Collection[str] = (), nodes: Collection[str] = ()) -> None:
        """Makes this transaction conflict with any other that writes or relies on these documents.

        For what a transaction only reads but needs unchanged until it commits. A store with one writer does nothing.
        """
        ...

    async def delete(self, space: str, ids: Collection[str]) -> None:
        """Deletes sessions with their nodes, slots and rows of runs. Unknown ids are no error.

        Their commits stay until `Database.collect` drops them: forks may share them. Notifications: `session` and
        `node` of each.
        """
        ...
