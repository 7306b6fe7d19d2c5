"""Reading nodes."""

from collections.abc import Collection

from typing_extensions import override

from storage.database.forest import ForestQueries
from storage.mongo import codec
from storage.mongo.codec import Document, key
from storage.mongo.queries.base import MongoReader, joined
from storage.topology import NodeDocument


class MongoForestQueries(MongoReader, ForestQueries):
    """Reads the collection nodes."""

    @override
    async def node(self, space: str, id: str) -> NodeDocument | None:
        found = await self._find_one("nodes", {"_id": key(space, id)})
        return None if found is None else codec.decode_node(found)

    @override
    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, NodeDocument]:
        return {node.id: node for node in await self._nodes("_id", space, ids)}

    @override
    async def children(self, space: str, parents: Collection[str]) -> list[NodeDocument]:
        return await self._nodes("parentKey", space, parents)

    @override
    async def roots(self, space: str) -> list[NodeDocument]:
        # A root's parentKey is the key of "", which no node has: like an orphan's, its parent is missing.
        pipeline: list[Document] = [
            {"$match": {"parentKey": {"$gte": f"{space}/", "$lt": f"{space}0"}}},
            {"$group": {"_id": "$parentKey"}},
            {"$lookup": {"from": "nodes", "localField": "_id", "foreignField": "_id", "as": "parent"}},
            {"$match": {"parent": []}},
            *joined("nodes", "_id", "parentKey"),
        ]
        return [codec.decode_node(found) for found in await self._aggregate("nodes", pipeline)]

    @override
    async def subtree(self, space: str, root: str | None, limit: int | None = None) -> list[NodeDocument]:
        await self._ready()
        where = {"space": space} if root is None else {"space": space, "lineage": codec.possible(root)}
        cursor = self._database["nodes"].find(where, limit=limit or 0, session=self._session)
        return [codec.decode_node(found) for found in await cursor.to_list(None)]

    @override
    async def referrers(self, space: str, ids: Collection[str]) -> list[NodeDocument]:
        return list({node.id: node for node in await self._nodes("refKeys", space, ids)}.values())

    async def _nodes(self, field: str, space: str, ids: Collection[str]) -> list[NodeDocument]:
        keys = [key(space, id) for id in ids]
        return [codec.decode_node(found) async for found in self._matching("nodes", field, keys)]
