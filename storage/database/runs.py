"""Rows of runs: what tables of turns show, written with the commits that they come from."""

from collections.abc import Collection, Sequence
from typing import Protocol

from storage.events import Instant
from storage.run_filter import RunFilter
from storage.views.run_rows import RunRow


class RunQueries(Protocol):
    """Reading rows of runs. A space or session that is unknown has none."""

    async def run_rows(self, space: str, session: str, turns: Collection[str] | None) -> dict[str, RunRow]:
        """The rows of these turns of a session, or of all its turns, by turn. Unknown turns are left out."""
        ...

    async def run_page(
        self, space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int
    ) -> list[RunRow]:
        """Up to `limit` rows by (startedAt, sort key) descending, only those below `after`.

        The sort key is `RunRow.place`, where the run starts: it orders runs of the same time.
        """
        ...

    async def run_sessions(self, space: str) -> set[str]:
        """Ids of all sessions that have rows."""
        ...


class RunWrites(Protocol):
    """Writing rows of runs. There is no Notification: readers of rows follow the commits."""

    async def put_run_rows(self, rows: Sequence[RunRow]) -> None:
        """Writes rows, over those of the same turns.

        Rows only grow: one that is written over must have the same start, and no names that the new one lacks.
        """
        ...

    async def drop_run_rows(self, space: str, session: str, turns: Collection[str] | None) -> None:
        """Deletes the rows of these turns of a session, or of all its turns. Unknown ones are no error."""
        ...
