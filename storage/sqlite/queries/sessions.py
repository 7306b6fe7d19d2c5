"""Reading sessions."""

from collections.abc import Collection

from typing_extensions import override

from storage.database import Head
from storage.database.sessions import SessionQueries
from storage.events import Instant
from storage.session import SessionFilter, SessionMeta, SessionOrder
from storage.sqlite.queries.base import SqliteReader, documents
from storage.sqlite.queries.statement import IN_IDS, conditions, id_array


class SqliteSessionQueries(SqliteReader, SessionQueries):
    """Reads the table sessions."""

    @override
    async def session(self, space: str, id: str) -> SessionMeta | None:
        sql = "SELECT doc FROM sessions WHERE space = :space AND id = :id"
        return self._document(SessionMeta, sql, space=space, id=id)

    @override
    async def sessions(self, space: str, ids: Collection[str]) -> dict[str, SessionMeta]:
        sql = f"SELECT doc FROM sessions WHERE space = :space AND id {IN_IDS}"
        return {meta.id: meta for meta in documents(SessionMeta, self._rows(sql, space=space, ids=id_array(ids)))}

    @override
    async def session_by_key(self, space: str, key: str) -> SessionMeta | None:
        sql = "SELECT doc FROM sessions WHERE space = :space AND creation_key = :key"
        return self._document(SessionMeta, sql, space=space, key=key)

    @override
    async def session_page(
        self,
        space: str,
        selection: SessionFilter,
        order: SessionOrder,
        after: tuple[Instant, str] | None,
        limit: int,
    ) -> list[SessionMeta]:
        prefix, where, values = conditions(space, selection)
        column = "updated_at" if order is SessionOrder.UPDATED_DESC else "created_at"
        direction, beyond = ("ASC", ">") if order is SessionOrder.CREATED_ASC else ("DESC", "<")
        if after is not None:
            where += f" AND ({column}, id) {beyond} (:time, :after)"
            values |= {"time": after[0], "after": after[1]}
        sql = f"{prefix} SELECT doc FROM sessions WHERE {where} ORDER BY {column} {direction}, id {direction}"
        return documents(SessionMeta, self._rows(f"{sql} LIMIT :limit", **values, limit=limit))

    @override
    async def count_sessions(self, space: str, selection: SessionFilter) -> int:
        prefix, where, values = conditions(space, selection)
        count: int = self._rows(f"{prefix} SELECT count(*) FROM sessions WHERE {where}", **values).fetchone()[0]
        return count

    @override
    async def sessions_in(self, space: str, under: str | None) -> list[SessionMeta]:
        prefix, where, values = conditions(space, SessionFilter(under=under))
        return documents(SessionMeta, self._rows(f"{prefix} SELECT doc FROM sessions WHERE {where}", **values))

    @override
    async def heads(self, space: str, under: str | None = None) -> list[Head]:
        prefix, where, values = conditions(space, SessionFilter(under=under))
        rows = self._rows(f"{prefix} SELECT id, log, head, own_start FROM sessions WHERE {where}", **values)
        return [Head(*row) for row in rows]
