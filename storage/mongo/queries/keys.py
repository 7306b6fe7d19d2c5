"""Reading API keys."""

from collections.abc import Collection

from typing_extensions import override

from storage.access_key import AccessKey
from storage.database.keys import KeyQueries
from storage.mongo import codec
from storage.mongo.queries.base import MongoReader


class MongoKeyQueries(MongoReader, KeyQueries):
    """Reads the collection keys."""

    @override
    async def access_keys(self, ids: Collection[str]) -> dict[str, AccessKey]:
        wanted = [codec.possible(id) for id in ids]
        found = [codec.decode_access_key(document) async for document in self._matching("keys", "_id", wanted)]
        return {key.id: key for key in found}

    @override
    async def access_keys_in(self, space: str | None) -> list[AccessKey]:
        where = {} if space is None else {"space": space}
        return [codec.decode_access_key(found) for found in await self._find("keys", where)]

    @override
    async def access_keys_exist(self) -> bool:
        return await self._find_one("keys", {}, {"_id": 1}) is not None
