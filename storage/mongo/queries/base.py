"""What all queries share: the collections, the transaction if there is one, and reading documents from both."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorDatabase

from storage.mongo.codec import Document

BATCH = 10_000
"""Documents of an answer, so that long ones need no second command. The server ends an answer at 16 MiB anyway."""
KEYS_PER_COMMAND = 50
"""Keys in one `$in`."""


class MongoReader:
    """Queries on the collections, inside the transaction of `session` if there is one."""

    def __init__(
        self, database: AsyncIOMotorDatabase[Document], session: AsyncIOMotorClientSession | None = None
    ) -> None:
        self._database = database
        self._session = session

    async def _ready(self) -> None:
        """Called before each command; a transaction sends the writes that are pending."""

    async def _find_one(self, collection: str, where: Document, fields: Document | None = None) -> Document | None:
        await self._ready()
        found: Document | None = await self._database[collection].find_one(where, fields, session=self._session)
        return found

    async def _find(self, collection: str, where: Document, fields: Document | None = None) -> list[Document]:
        await self._ready()
        return await self._database[collection].find(where, fields, session=self._session).to_list(None)

    async def _aggregate(self, collection: str | None, pipeline: list[Document]) -> list[Document]:
        """Runs a pipeline over a collection, or over the database for one that starts with `$documents`."""
        await self._ready()
        target: Any = self._database if collection is None else self._database[collection]
        found: list[Document] = await target.aggregate(pipeline, batchSize=BATCH, session=self._session).to_list(None)
        return found

    async def _matching(
        self, collection: str, field: str, values: Collection[str], fields: Document | None = None
    ) -> AsyncGenerator[Document, None]:
        """Documents whose `field` is, or holds, one of these values.

        Outside of a transaction, this is one command, and documents are in the order of the values; inside, there is
        no order, and `$documents` is not allowed. A document that holds several of the values may be found several
        times.
        """
        await self._ready()
        target: Any = self._database[collection]
        wanted = list(dict.fromkeys(values))
        if self._session is None and len(wanted) > 1:
            pipeline = [keyed_documents(wanted), *joined(collection, "_id", field)]
            if fields is not None:
                pipeline.append({"$project": fields})
            async with aclosing(iterate(self._database.aggregate(pipeline, batchSize=BATCH))) as found:
                async for document in found:
                    yield document
            return
        for chunk in chunks(wanted):
            where = {field: chunk[0] if len(chunk) == 1 else {"$in": chunk}}
            async with aclosing(iterate(target.find(where, fields, session=self._session))) as found:
                async for document in found:
                    yield document


async def iterate(cursor: Any) -> AsyncGenerator[Document, None]:
    """A cursor's documents; closes it when the caller stops before its end."""
    try:
        async for document in cursor:
            yield document
    finally:
        await cursor.close()


async def replay(documents: Iterable[Document]) -> AsyncGenerator[Document, None]:
    """Documents that were read before, as a cursor yields them."""
    for document in documents:
        yield document


def chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Values in chunks for one `$in` each."""
    for start in range(0, len(values), KEYS_PER_COMMAND):
        yield values[start : start + KEYS_PER_COMMAND]


def keyed_documents(keys: Sequence[str]) -> Document:
    """The stage that starts a pipeline with a document for each key."""
    return {"$documents": [{"_id": key} for key in keys]}


def joined(collection: str, local: str, foreign: str) -> list[Document]:
    """Stages that replace each document by those of another collection whose `foreign` field is its `local` one."""
    lookup = {"from": collection, "localField": local, "foreignField": foreign, "as": "found"}
    return [{"$lookup": lookup}, {"$unwind": "$found"}, {"$replaceWith": "$found"}]
