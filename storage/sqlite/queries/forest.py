"""Reading nodes."""

from collections.abc import Collection

from typing_extensions import override

from storage.database.forest import ForestQueries
from storage.session import SessionFilter
from storage.sqlite.queries.base import SqliteReader, documents
from storage.sqlite.queries.statement import IN_IDS, conditions, id_array
from storage.topology import NodeDocument


class SqliteForestQueries(SqliteReader, ForestQueries):
    """Reads the tables nodes and refs."""

    @override
    async def node(self, space: str, id: str) -> NodeDocument | None:
        sql = "SELECT doc FROM nodes WHERE space = :space AND id = :id"
        return self._document(NodeDocument, sql, space=space, id=id)

    @override
    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, NodeDocument]:
        sql = f"SELECT doc FROM nodes WHERE space = :space AND id {IN_IDS}"
        return {node.id: node for node in documents(NodeDocument, self._rows(sql, space=space, ids=id_array(ids)))}

    @override
    async def children(self, space: str, parents: Collection[str]) -> list[NodeDocument]:
        sql = f"SELECT doc FROM nodes WHERE space = :space AND parent {IN_IDS}"
        return documents(NodeDocument, self._rows(sql, space=space, ids=id_array(parents)))

    @override
    async def roots(self, space: str) -> list[NodeDocument]:
        sql = """SELECT doc FROM nodes WHERE space = :space AND parent IS NULL UNION ALL
            SELECT doc FROM nodes AS orphan WHERE space = :space AND parent IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM nodes WHERE space = :space AND id = orphan.parent)"""
        return documents(NodeDocument, self._rows(sql, space=space))

    @override
    async def subtree(self, space: str, root: str | None, limit: int | None = None) -> list[NodeDocument]:
        prefix, where, values = conditions(space, SessionFilter(under=root))
        rows = self._rows(f"{prefix} SELECT doc FROM nodes WHERE {where} LIMIT :limit", **values, limit=limit or -1)
        return documents(NodeDocument, rows)

    @override
    async def referrers(self, space: str, ids: Collection[str]) -> list[NodeDocument]:
        sql = f"""SELECT doc FROM nodes WHERE space = :space AND id IN
            (SELECT source FROM refs WHERE space = :space AND target {IN_IDS})"""
        return documents(NodeDocument, self._rows(sql, space=space, ids=id_array(ids)))
