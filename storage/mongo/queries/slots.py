"""Reading slots and form definitions."""

from collections.abc import Collection
from contextlib import aclosing

from pymongo import ASCENDING
from typing_extensions import override

from storage.cards.definition import FormDefinition
from storage.database.slots import SlotQueries
from storage.mongo import codec, pages
from storage.mongo.codec import Document, date, key
from storage.mongo.queries.base import MongoReader, iterate, replay
from storage.session import SessionMeta, Slots

NO_CONTENT = {f"{name}.content": 0 for name in codec.SLOT_NAMES}


class MongoSlotQueries(MongoReader, SlotQueries):
    """Reads the collections slots and forms."""

    @override
    async def slots(self, space: str, ids: Collection[str], max_bytes: int | None = None) -> dict[str, Slots]:
        keys = [key(space, id) for id in ids]
        if self._session is None:
            async with aclosing(self._matching("slots", "_id", keys)) as found:
                return {slots.id: slots for slots in await pages.bounded_slots(found, max_bytes)}
        documents = {document["id"]: document async for document in self._matching("slots", "_id", keys)}
        ordered = replay(documents[id] for id in ids if id in documents)
        return {slots.id: slots for slots in await pages.bounded_slots(ordered, max_bytes)}

    @override
    async def slots_between(self, space: str, first: SessionMeta, last: SessionMeta, max_bytes: int) -> list[Slots]:
        await self._ready()
        times = {"$gte": date(first.created_at), "$lt": date(last.created_at + 1)}
        cursor = self._database["slots"].find({"space": space, "createdAt": times}, session=self._session)
        ordered = cursor.sort([("createdAt", ASCENDING), ("id", ASCENDING)])
        low, high = (first.created_at, first.id), (last.created_at, last.id)
        async with aclosing(iterate(ordered)) as found:
            inside = (row async for row in found if low <= (int(row["createdAt"]), row["id"]) <= high)
            return await pages.bounded_slots(inside, max_bytes)

    @override
    async def slot_marks(self, space: str, id: str | None) -> list[Slots]:
        where: Document = {"space": space} if id is None else {"_id": key(space, id)}
        return [codec.decode_slots(found) for found in await self._find("slots", where, NO_CONTENT)]

    @override
    async def forms(self, space: str, ids: Collection[str] | None) -> list[FormDefinition]:
        if ids is None:
            found = await self._find("forms", {"space": space})
        else:
            found = [document async for document in self._matching("forms", "_id", [f"{space}/{id}" for id in ids])]
        return sorted(map(codec.decode_form, found), key=lambda form: form.form_id)
