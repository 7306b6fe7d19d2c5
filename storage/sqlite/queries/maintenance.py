"""Reading about the file as a whole."""

from typing_extensions import override

from storage.database.maintenance import MaintenanceQueries
from storage.events import Instant
from storage.sqlite.queries.base import SqliteReader


class SqliteMaintenanceQueries(SqliteReader, MaintenanceQueries):
    """Reads the file's clock, and what has documents in it."""

    @override
    async def all_spaces(self) -> list[str]:
        sql = "SELECT DISTINCT space FROM sessions UNION SELECT space FROM nodes UNION SELECT space FROM runs"
        return [space for (space,) in self._rows(sql)]

    @override
    async def as_of(self) -> Instant:
        clock: int = self._rows("SELECT value FROM meta WHERE name = 'clock'").fetchone()[0]
        return clock
