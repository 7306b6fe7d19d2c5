"""Reading API keys."""

from collections.abc import Collection

from typing_extensions import override

from storage.access_key import AccessKey
from storage.database.keys import KeyQueries
from storage.sqlite.queries.base import SqliteReader, documents
from storage.sqlite.queries.statement import IN_IDS, id_array


class SqliteKeyQueries(SqliteReader, KeyQueries):
    """Reads the table keys."""

    @override
    async def access_keys(self, ids: Collection[str]) -> dict[str, AccessKey]:
        rows = self._rows(f"SELECT doc FROM keys WHERE id {IN_IDS}", ids=id_array(ids))
        return {key.id: key for key in documents(AccessKey, rows)}

    @override
    async def access_keys_in(self, space: str | None) -> list[AccessKey]:
        sql = "SELECT doc FROM keys WHERE :space IS NULL OR space = :space"
        return documents(AccessKey, self._rows(sql, space=space))

    @override
    async def access_keys_exist(self) -> bool:
        return self._rows("SELECT 1 FROM keys LIMIT 1").fetchone() is not None
