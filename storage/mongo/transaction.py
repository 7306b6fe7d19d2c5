"""Writing documents, inside a transaction of the database."""

from collections.abc import Collection, Sequence
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorDatabase
from pymongo import ReplaceOne, ReturnDocument, UpdateOne
from typing_extensions import override

from storage import errors
from storage.access_key import AccessKey
from storage.cards.definition import FormDefinition
from storage.database import MOVED_FIELDS, Notification, Transaction
from storage.events import Instant
from storage.log.commit import Commit
from storage.mongo import codec
from storage.mongo.codec import Document, date, key
from storage.mongo.queries import MongoQueries
from storage.mongo.queries.base import chunks
from storage.session import SessionMeta, Slot, Slots
from storage.topology import NodeDocument
from storage.views.run_rows import RunRow

WRITES_PER_COMMAND = 1_000


class MongoTransaction(MongoQueries, Transaction):
    """One attempt at a work, of the id `attempt`; `result` is what the work returned, `writes` counts its writes.

    The first write that needs the time sets it by the database's clock and reads it back. Later writes use the same
    time, and are pending until the next command or the end.
    """

    def __init__(
        self,
        database: AsyncIOMotorDatabase[Document],
        session: AsyncIOMotorClientSession,
        attempt: str,
    ) -> None:
        super().__init__(database, session)
        self.attempt = attempt
        self.result: Any = None
        self.notifications: list[Notification] = []
        self.commits_made: list[Commit] = []
        self.writes = 0
        self._now: Instant | None = None
        self._pending: dict[str, list[UpdateOne | ReplaceOne[Document]]] = {}

    @property
    def evidence(self) -> tuple[str, str]:
        """Collection and `_id` of a document that exists if, and only if, this transaction was committed."""
        return ("commits", self.commits_made[0].id) if self.commits_made else ("attempts", self.attempt)

    async def finds(self, earlier: "MongoTransaction") -> bool:
        """Whether an earlier attempt, whose outcome is unknown, is committed in this snapshot."""
        collection, id = earlier.evidence
        return await self._find_one(collection, {"_id": id}, {"_id": 1}) is not None

    async def seal(self) -> None:
        """Sends the pending writes, and writes the evidence."""
        await self._ready()
        if self.writes and not self.commits_made:
            update = {"$currentDate": {"at": True}}
            await self._database["attempts"].update_one(
                {"_id": self.attempt}, update, upsert=True, session=self._session
            )

    @override
    async def _ready(self) -> None:
        pending, self._pending = self._pending, {}
        for collection, writes in pending.items():
            for start in range(0, len(writes), WRITES_PER_COMMAND):
                part = writes[start : start + WRITES_PER_COMMAND]
                await self._database[collection].bulk_write(part, session=self._session)

    @override
    async def next_root(self, space: str) -> tuple[int, Instant]:
        await self._ready()
        self.writes += 1
        found = await self._database["spaces"].find_one_and_update(
            {"_id": space},
            {"$inc": {"roots": 1}, "$currentDate": {"updatedAt": True}},
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=self._session,
        )
        self._now = self._now or int(found["updatedAt"])
        return int(found["roots"]) - 1, self._now

    @override
    async def insert_session(self, meta: SessionMeta) -> None:
        await self._insert("sessions", codec.encode_session(meta))
        self._notify("session", meta.space, meta.id)

    @override
    async def insert_node(self, node: NodeDocument) -> None:
        await self._insert("nodes", codec.encode_node(node))
        self._notify("node", node.space, node.id)

    @override
    async def insert_slots(self, slots: Slots) -> None:
        await self._insert("slots", codec.encode_slots(slots))
        self._notify("slots", slots.space, slots.id)

    @override
    async def insert_commit(self, commit: Commit) -> None:
        await self._insert("commits", codec.encode_commit(commit))
        self.commits_made.append(commit)
        seqs = (commit.first, commit.last)
        self.notifications.append(Notification("log", commit.space, commit.session, commit.log, *seqs))

    async def _insert(self, collection: str, document: Document) -> None:
        self.writes += 1
        await self._database[collection].insert_one(document, session=self._session)

    @override
    async def change_session(
        self, meta: SessionMeta, changes: dict[str, Any], *, appended: bool = False
    ) -> SessionMeta:
        changed = meta.model_copy(update=changes)
        sets, unsets = codec.changed_fields(codec.encode_session_part(changed, changes), meta, changes)
        dates = ("updatedAt", "lastEventAt") if appended else ("updatedAt",)
        times = await self._update("sessions", key(meta.space, meta.id), sets, unsets, dates)
        if not appended:
            self._notify("session", meta.space, meta.id)
        last_event_at = times[1] if appended else meta.last_event_at
        return changed.model_copy(update={"updated_at": times[0], "last_event_at": last_event_at})

    @override
    async def rely_on(self, space: str, *, sessions: Collection[str] = (), nodes: Collection[str] = ()) -> None:
        for collection, ids in (("sessions", sessions), ("nodes", nodes)):
            for id in ids:
                self._add(collection, UpdateOne({"_id": key(space, id)}, {"$inc": {"relied": 1}}))

    @override
    async def change_node(self, node: NodeDocument, changes: dict[str, Any]) -> NodeDocument:
        changed = node.model_copy(update=changes)
        sets, unsets = codec.changed_fields(codec.encode_node(changed), node, changes)
        [now] = await self._update("nodes", key(node.space, node.id), sets, unsets, ("updatedAt",))
        self._notify("node", node.space, node.id)
        return changed.model_copy(update={"updated_at": now})

    @override
    async def move_nodes(self, nodes: Sequence[NodeDocument]) -> None:
        for node in nodes:
            await self.change_node(node, {name: getattr(node, name) for name in MOVED_FIELDS})

    @override
    async def change_slots(self, slots: Slots, changes: dict[str, Any]) -> Slots:
        sets: Document = {}
        unsets: Document = {}
        dates: list[str] = []
        changed = codec.encode_slots(slots.model_copy(update=changes))
        for name in changes:
            slot = Slots.model_fields[name].alias or name
            for field in Slot.model_fields.values():
                dotted = f"{slot}.{field.alias}"
                if field.alias == "updatedAt":
                    dates.append(dotted)
                elif field.alias in changed[slot]:
                    sets[dotted] = changed[slot][field.alias]
                else:
                    unsets[dotted] = ""
        times = await self._update("slots", key(slots.space, slots.id), sets, unsets, dates)
        self._notify("slots", slots.space, slots.id)
        timed = {
            name: slot.model_copy(update={"updated_at": now})
            for (name, slot), now in zip(changes.items(), times, strict=True)
        }
        return slots.model_copy(update=timed)

    @override
    async def put_form(self, form: FormDefinition) -> FormDefinition:
        await self._ready()
        self.writes += 1
        found = await self._database["forms"].find_one_and_update(
            {"_id": f"{form.space}/{form.form_id}"},
            {"$set": codec.encode_form(form), "$currentDate": {"updatedAt": True}},
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=self._session,
        )
        return codec.decode_form(found)

    @override
    async def put_run_rows(self, rows: Sequence[RunRow]) -> None:
        for row in rows:
            document = codec.encode_run(row)
            self._add("runs", ReplaceOne({"_id": document["_id"]}, document, upsert=True))

    @override
    async def drop_run_rows(self, space: str, session: str, turns: Collection[str] | None) -> None:
        await self._ready()
        self.writes += 1
        keys = [codec.run_key(space, session, turn) for turn in turns or ()]
        everything: Document = {"space": space, "sessionId": codec.possible(session)}
        conditions = [everything] if turns is None else [{"_id": {"$in": chunk}} for chunk in chunks(keys)]
        for where in conditions:
            await self._database["runs"].delete_many(where, session=self._session)

    @override
    async def insert_access_key(self, key: AccessKey) -> None:
        await self._insert("keys", codec.encode_access_key(key))

    @override
    async def change_access_key(self, key: AccessKey, changes: dict[str, Any]) -> AccessKey:
        changed = key.model_copy(update=changes)
        sets, unsets = codec.changed_fields(codec.encode_access_key(changed), key, changes)
        update = {operator: fields for operator, fields in (("$set", sets), ("$unset", unsets)) if fields}
        self._add("keys", UpdateOne({"_id": key.id}, update))
        return changed

    @override
    async def delete(self, space: str, ids: Collection[str]) -> None:
        await self._ready()
        self.writes += 1
        keys = [key(space, id) for id in ids]
        for collection in ("sessions", "nodes", "slots"):
            for chunk in chunks(keys):
                await self._database[collection].delete_many({"_id": {"$in": chunk}}, session=self._session)
        for id in ids:
            await self.drop_run_rows(space, id, None)
            self._notify("session", space, id)
            self._notify("node", space, id)

    async def _update(
        self, collection: str, id: str, sets: Document, unsets: Document, dates: Sequence[str]
    ) -> list[Instant]:
        """Sets and unsets fields, and sets `dates` to the database's time. Returns the time of each of them.

        Times that one update sets may differ by a millisecond.
        """
        update: Document = {"$unset": unsets} if unsets else {}
        if self._now is not None:
            update["$set"] = {**sets, **dict.fromkeys(dates, date(self._now))}
            self._add(collection, UpdateOne({"_id": id}, update))
            return [self._now] * len(dates)
        await self._ready()
        self.writes += 1
        if sets:
            update["$set"] = sets
        update["$currentDate"] = dict.fromkeys(dates, True)
        found = await self._database[collection].find_one_and_update(
            {"_id": id},
            update,
            projection=dict.fromkeys(dates, 1),
            return_document=ReturnDocument.AFTER,
            session=self._session,
        )
        if found is None:
            raise errors.SapwoodError(f"the document {id} of {collection} is missing; run `sapwood check --repair`")
        times = [int(_value_at(found, dotted)) for dotted in dates]
        self._now = times[0]
        return times

    def _add(self, collection: str, write: UpdateOne | ReplaceOne[Document]) -> None:
        self.writes += 1
        self._pending.setdefault(collection, []).append(write)

    def _notify(self, kind: str, space: str, id: str) -> None:
        self.notifications.append(Notification(kind, space, id))


def _value_at(document: Document, dotted: str) -> Any:
    """The value of a nested field, named with dots."""
    found: Any = document
    for name in dotted.split("."):
        found = found[name]
    return found
