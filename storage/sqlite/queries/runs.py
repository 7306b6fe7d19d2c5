"""Reading rows of runs."""

from collections.abc import Collection

from typing_extensions import override

from storage.database.runs import RunQueries
from storage.events import Instant
from storage.run_filter import RunFilter
from storage.sqlite import run_page
from storage.sqlite.queries.base import SqliteReader, documents
from storage.sqlite.queries.statement import batches, placeholders
from storage.views.run_rows import RunRow


class SqliteRunQueries(SqliteReader, RunQueries):
    """Reads the tables runs and run_names."""

    @override
    async def run_rows(self, space: str, session: str, turns: Collection[str] | None) -> dict[str, RunRow]:
        sql = "SELECT doc FROM runs WHERE space = ? AND session = ?"
        if turns is None:
            rows = documents(RunRow, self._connection.execute(sql, (space, session)))
            return {row.turn_id: row for row in rows}
        found: dict[str, RunRow] = {}
        for batch in batches(turns):
            rows = documents(
                RunRow,
                self._connection.execute(f"{sql} AND turn IN ({placeholders(batch)})", [space, session, *batch]),
            )
            found |= {row.turn_id: row for row in rows}
        return found

    @override
    async def run_page(
        self, space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int
    ) -> list[RunRow]:
        return documents(RunRow, self._connection.execute(*run_page.page(space, selection, after, limit)))

    @override
    async def run_sessions(self, space: str) -> set[str]:
        rows = self._rows("SELECT DISTINCT session FROM runs WHERE space = :space", space=space)
        return {session for (session,) in rows}
