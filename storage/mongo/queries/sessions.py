"""Reading documents: of what a majority has committed, or of a transaction's snapshot."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorDatabase
from pymongo import ASCENDING, DESCENDING

from storage.access_key import AccessKey
from storage.cards.definition import FormDefinition
from storage.database import Head, Holders
from storage.events import Instant
from storage.log.commit import Commit
from storage.mongo import codec, pages
from storage.mongo.codec import Document, date, key
from storage.run_filter import RunFilter
from storage.session import SessionFilter, SessionMeta, SessionOrder, Slots
from storage.topology import NodeDocument
from storage.views.run_rows import RunRow

BATCH = 10_000
"""Documents of an answer, so that long ones need no second command; the database ends one at 16 MiB anyway."""
AT_ONCE = 50
"""Keys in one `$in`."""
LAG_MS = 90_000
"""Longer than a transaction can live, so that what it writes is not older than the `as_of` before it."""
NO_CONTENT = {f"{name}.content": 0 for name in codec.SLOT_NAMES}
COUNT: Document = {"$group": {"_id": None, "count": {"$sum": 1}}}
NEAR = 16
"""How far back the commit that holds a seq is looked for first."""


class MongoQueries:
    """`storage.database.Queries`, inside the transaction of `session` if there is one."""

    def __init__(
        self, database: AsyncIOMotorDatabase[Document], session: AsyncIOMotorClientSession | None = None
    ) -> None:
        self._database = database
        self._session = session

    async def _ready(self) -> None:
        """Called before each reading."""

    async def _find_one(self, collection: str, where: Document, fields: Document | None = None) -> Document | None:
        await self._ready()
        found: Document | None = await self._database[collection].find_one(where, fields, session=self._session)
        return found

    async def _find(self, collection: str, where: Document, fields: Document | None = None) -> list[Document]:
        await self._ready()
        return await self._database[collection].find(where, fields, session=self._session).to_list(None)

    async def _aggregate(self, collection: str | None, pipeline: list[Document]) -> list[Document]:
        await self._ready()
        target: Any = self._database if collection is None else self._database[collection]
        found: list[Document] = await target.aggregate(pipeline, batchSize=BATCH, session=self._session).to_list(None)
        return found

    async def _matching(
        self, collection: str, field: str, values: Collection[str], fields: Document | None = None
    ) -> AsyncGenerator[Document, None]:
        """Documents whose `field` is, or holds, one of these; outside of a transaction by one command, in order.

        One that holds several of them may come several times.
        """
        await self._ready()
        target: Any = self._database[collection]
        wanted = list(dict.fromkeys(values))
        if self._session is None and len(wanted) > 1:
            pipeline = [_documents(wanted), *_joined(collection, "_id", field)]
            if fields is not None:
                pipeline.append({"$project": fields})
            async with aclosing(_iterate(self._database.aggregate(pipeline, batchSize=BATCH))) as found:
                async for document in found:
                    yield document
            return
        for chunk in chunks(wanted):
            where = {field: chunk[0] if len(chunk) == 1 else {"$in": chunk}}
            async with aclosing(_iterate(target.find(where, fields, session=self._session))) as found:
                async for document in found:
                    yield document

    async def session(self, space: str, id: str) -> SessionMeta | None:
        found = await self._find_one("sessions", {"_id": key(space, id)})
        return None if found is None else codec.decode_session(found)

    async def sessions(self, space: str, ids: Collection[str]) -> dict[str, SessionMeta]:
        keys = [key(space, id) for id in ids]
        metas = [codec.decode_session(found) async for found in self._matching("sessions", "_id", keys)]
        return {meta.id: meta for meta in metas}

    async def session_by_key(self, space: str, key: str) -> SessionMeta | None:
        found = await self._find_one("sessions", {"creationKey": f"{space}/{key}"})
        return None if found is None else codec.decode_session(found)

    async def session_page(
        self,
        space: str,
        selection: SessionFilter,
        order: SessionOrder,
        after: tuple[Instant, str] | None,
        limit: int,
    ) -> list[SessionMeta]:
        field = "updatedAt" if order is SessionOrder.UPDATED_DESC else "createdAt"
        direction, beyond = (ASCENDING, "$gt") if order is SessionOrder.CREATED_ASC else (DESCENDING, "$lt")
        between: Document = {}
        ties: list[Document] = []
        if after is not None:
            time = date(after[0])
            between = {field: {"$gte": time} if direction == ASCENDING else {"$lt": date(after[0] + 1)}}
            ties = [{"$match": {"$or": [{field: {beyond: time}}, {"id": {beyond: after[1]}}]}}]
        stages: list[Document] = [*ties, {"$sort": {field: direction, "id": direction}}, {"$limit": limit}]
        found = await self._selected(space, selection, stages, between)
        return [codec.decode_session(document) for document in found]

    async def _selected(
        self, space: str, selection: SessionFilter, stages: list[Document], between: Document | None = None
    ) -> list[Document]:
        """The sessions of a selection, within a range of times, through further stages; by one command."""
        stages = [*_conditions(selection), *stages]
        if selection.ids is not None:
            keys = list(dict.fromkeys(key(space, id) for id in selection.ids))
            if not keys:
                return []
            stages = [{"$match": between or {}}, *stages]
            if selection.under is not None:
                stages = [*_only_under(selection.under), *stages]
            if self._session is not None:
                return await self._aggregate("sessions", [{"$match": {"_id": {"$in": keys}}}, *stages])
            return await self._aggregate(None, [_documents(keys), *_joined("sessions", "_id", "_id"), *stages])
        if selection.under is not None:
            start: Document = {"$match": {"space": space, "lineage": codec.possible(selection.under)}}
            joined = [start, *_joined("sessions", "_id", "_id"), {"$match": between or {}}]
            return await self._aggregate("nodes", [*joined, *stages])
        return await self._aggregate("sessions", [{"$match": {"space": space, **(between or {})}}, *stages])

    async def count_sessions(self, space: str, selection: SessionFilter) -> int:
        found = await self._selected(space, selection, [COUNT])
        return int(found[0]["count"]) if found else 0

    async def sessions_in(self, space: str, under: str | None) -> list[SessionMeta]:
        found = await self._selected(space, SessionFilter(under=under), [])
        return [codec.decode_session(document) for document in found]

    async def heads(self, space: str, under: str | None = None) -> list[Head]:
        fields = {"$project": {"_id": 0, "id": 1, "log": 1, "head": 1, "ownStart": 1}}
        found = await self._selected(space, SessionFilter(under=under), [fields])
        return [Head(row["id"], row["log"], int(row["head"]), int(row["ownStart"])) for row in found]

    async def slots(self, space: str, ids: Collection[str], max_bytes: int | None = None) -> dict[str, Slots]:
        keys = [key(space, id) for id in ids]
        if self._session is None:
            async with aclosing(self._matching("slots", "_id", keys)) as found:
                return {slots.id: slots for slots in await pages.bounded_slots(found, max_bytes)}
        documents = {document["id"]: document async for document in self._matching("slots", "_id", keys)}
        ordered = _replayed(documents[id] for id in ids if id in documents)
        return {slots.id: slots for slots in await pages.bounded_slots(ordered, max_bytes)}

    async def slots_between(self, space: str, first: SessionMeta, last: SessionMeta, max_bytes: int) -> list[Slots]:
        await self._ready()
        times = {"$gte": date(first.created_at), "$lt": date(last.created_at + 1)}
        cursor = self._database["slots"].find({"space": space, "createdAt": times}, session=self._session)
        ordered = cursor.sort([("createdAt", ASCENDING), ("id", ASCENDING)])
        low, high = (first.created_at, first.id), (last.created_at, last.id)
        async with aclosing(_iterate(ordered)) as found:
            inside = (row async for row in found if low <= (int(row["createdAt"]), row["id"]) <= high)
            return await pages.bounded_slots(inside, max_bytes)

    async def slot_marks(self, space: str, id: str | None) -> list[Slots]:
        where: Document = {"space": space} if id is None else {"_id": key(space, id)}
        return [codec.decode_slots(found) for found in await self._find("slots", where, NO_CONTENT)]

    async def node(self, space: str, id: str) -> NodeDocument | None:
        found = await self._find_one("nodes", {"_id": key(space, id)})
        return None if found is None else codec.decode_node(found)

    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, NodeDocument]:
        return {node.id: node for node in await self._nodes("_id", space, ids)}

    async def children(self, space: str, parents: Collection[str]) -> list[NodeDocument]:
        return await self._nodes("parentKey", space, parents)

    async def referrers(self, space: str, ids: Collection[str]) -> list[NodeDocument]:
        return list({node.id: node for node in await self._nodes("refKeys", space, ids)}.values())

    async def _nodes(self, field: str, space: str, ids: Collection[str]) -> list[NodeDocument]:
        keys = [key(space, id) for id in ids]
        return [codec.decode_node(found) async for found in self._matching("nodes", field, keys)]

    async def roots(self, space: str) -> list[NodeDocument]:
        # A root's parentKey is the key of "", which no node has: like an orphan's, its parent is missing.
        pipeline: list[Document] = [
            {"$match": {"parentKey": {"$gte": f"{space}/", "$lt": f"{space}0"}}},
            {"$group": {"_id": "$parentKey"}},
            {"$lookup": {"from": "nodes", "localField": "_id", "foreignField": "_id", "as": "parent"}},
            {"$match": {"parent": []}},
            *_joined("nodes", "_id", "parentKey"),
        ]
        return [codec.decode_node(found) for found in await self._aggregate("nodes", pipeline)]

    async def subtree(self, space: str, root: str | None, limit: int | None = None) -> list[NodeDocument]:
        await self._ready()
        where = {"space": space} if root is None else {"space": space, "lineage": codec.possible(root)}
        cursor = self._database["nodes"].find(where, limit=limit or 0, session=self._session)
        return [codec.decode_node(found) for found in await cursor.to_list(None)]

    async def commits(
        self,
        log: str,
        start: int,
        stop: int,
        *,
        newest_first: bool = False,
        types: Collection[str] | None = None,
        max_events: int,
        max_bytes: int,
    ) -> list[Commit]:
        await self._ready()
        page = pages.CommitPage(max_events, max_bytes, typed=types is not None)
        for low, high in page.windows(start, stop, newest_first):
            direction = DESCENDING if newest_first else ASCENDING
            pipeline: list[Document] = [
                {"$match": {"log": log, "first": {"$gte": low, "$lt": high}}},
                *([] if types is None else [{"$match": {"types": {"$in": list(types)}}}]),
                {"$sort": {"first": direction}},
                {"$limit": page.events},
            ]
            async with aclosing(
                _iterate(self._database["commits"].aggregate(pipeline, session=self._session))
            ) as found:
                await page.fill(found)
        return page.commits

    async def commit_before(self, log: str, seq: int, within: int) -> Commit | None:
        await self._ready()
        for reach in (NEAR, within) if within > NEAR else (within,):
            where = {"log": log, "first": {"$gt": seq - reach, "$lt": seq + 1}}
            found = await self._database["commits"].find_one(where, sort=[("first", DESCENDING)], session=self._session)
            if found is not None:
                return codec.decode_commit(found)
        return None

    async def commit_by_key(self, log: str, key: str) -> Commit | None:
        found = await self._find_one("commits", {"key": f"{log}/{key}"})
        return None if found is None else codec.decode_commit(found)

    async def turn_starts(self, marks: Collection[str]) -> list[tuple[str, int]]:
        return await self._starts("turns", "turnSeqs", set(marks))

    async def step_starts(self, marks: Collection[str]) -> list[tuple[str, int]]:
        return await self._starts("steps", "stepSeqs", set(marks))

    async def card_seqs(self, spans: Collection[tuple[str, int, int]]) -> list[tuple[str, int]]:
        by_mark: dict[str, list[tuple[int, int]]] = {}
        for mark, start, stop in spans:
            by_mark.setdefault(mark, []).append((start, stop))
        found = await self._starts("cards", "cardSeqs", set(by_mark))
        return [(mark, seq) for mark, seq in found if any(start <= seq < stop for start, stop in by_mark[mark])]

    async def _starts(self, names: str, seqs: str, marks: set[str]) -> list[tuple[str, int]]:
        starts: set[tuple[str, int]] = set()
        async for found in self._matching("commits", names, marks, {"_id": 0, names: 1, seqs: 1}):
            pairs = zip(found[names], map(int, found[seqs]), strict=True)
            starts.update(pair for pair in pairs if pair[0] in marks)
        return sorted(starts)

    async def forms(self, space: str, ids: Collection[str] | None) -> list[FormDefinition]:
        if ids is None:
            found = await self._find("forms", {"space": space})
        else:
            found = [document async for document in self._matching("forms", "_id", [f"{space}/{id}" for id in ids])]
        return sorted(map(codec.decode_form, found), key=lambda form: form.form_id)

    async def run_rows(self, space: str, session: str, turns: Collection[str] | None) -> dict[str, RunRow]:
        if turns is None:
            where = {"space": space, "sessionId": codec.possible(session)}
            rows = [codec.decode_run(found) for found in await self._find("runs", where)]
        else:
            keys = [codec.run_key(space, session, turn) for turn in turns]
            rows = [codec.decode_run(found) async for found in self._matching("runs", "_id", keys)]
        return {row.turn_id: row for row in rows}

    async def run_page(
        self, space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int
    ) -> list[RunRow]:
        stages: list[Document] = [{"$match": {"space": space, **_run_fields(selection)}}]
        if after is not None:
            earlier: list[Document] = [{"startedAt": {"$lt": date(after[0])}}]
            tied = {"startedAt": date(after[0]), "place": {"$lt": after[1]}}
            stages += [{"$match": {"startedAt": {"$lte": date(after[0])}}}, {"$match": {"$or": [*earlier, tied]}}]
        stages += [{"$sort": {"startedAt": DESCENDING, "place": DESCENDING}}, {"$limit": limit}]
        return [codec.decode_run(found) for found in await self._aggregate("runs", stages)]

    async def run_sessions(self, space: str) -> set[str]:
        stages = [{"$match": {"space": space}}, {"$group": {"_id": "$sessionId"}}]
        return {row["_id"] for row in await self._aggregate("runs", stages)}

    async def holders(self, log: str) -> Holders:
        fields = {"_id": 0, "segments": {"$elemMatch": {"log": log}}}
        found = await self._find("sessions", {"segments.log": log}, fields)
        cuts = [int(segment["to"]) for row in found for segment in row["segments"] if "to" in segment]
        return Holders(len(cuts) < len(found), max(cuts, default=0))

    async def all_logs(self) -> list[str]:
        return [row["_id"] for row in await self._aggregate("commits", [{"$group": {"_id": "$log"}}])]

    async def unowned_logs(self) -> list[str]:
        logs = await self.all_logs()
        # Read after the logs: a log that is made meanwhile has its owner from its first commit on.
        owned = {row["_id"] for row in await self._aggregate("sessions", [{"$group": {"_id": "$log"}}])}
        return [log for log in logs if log not in owned]

    async def all_spaces(self) -> list[str]:
        spaces = {"$group": {"_id": "$space"}}
        found = [row for name in ("sessions", "nodes", "runs") for row in await self._aggregate(name, [spaces])]
        return sorted({row["_id"] for row in found})

    async def access_keys(self, ids: Collection[str]) -> dict[str, AccessKey]:
        wanted = [codec.possible(id) for id in ids]
        found = [codec.decode_access_key(document) async for document in self._matching("keys", "_id", wanted)]
        return {key.id: key for key in found}

    async def access_keys_in(self, space: str | None) -> list[AccessKey]:
        where = {} if space is None else {"space": space}
        return [codec.decode_access_key(found) for found in await self._find("keys", where)]

    async def access_keys_exist(self) -> bool:
        return await self._find_one("keys", {}, {"_id": 1}) is not None

    async def as_of(self) -> Instant:
        hello = await self._database.command("hello", codec_options=codec.OPTIONS)
        return int(hello["localTime"]) - LAG_MS


async def _iterate(cursor: Any) -> AsyncGenerator[Document, None]:
    try:
        async for document in cursor:
            yield document
    finally:
        await cursor.close()


async def _replayed(documents: Iterable[Document]) -> AsyncGenerator[Document, None]:
    for document in documents:
        yield document


def _documents(keys: Sequence[str]) -> Document:
    return {"$documents": [{"_id": key} for key in keys]}


def _joined(collection: str, local: str, foreign: str) -> list[Document]:
    """Stages that put in each document's place those of another collection that go with it."""
    lookup = {"from": collection, "localField": local, "foreignField": foreign, "as": "found"}
    return [{"$lookup": lookup}, {"$unwind": "$found"}, {"$replaceWith": "$found"}]


def _only_under(root: str) -> list[Document]:
    lookup = {"from": "nodes", "localField": "_id", "foreignField": "_id", "as": "node"}
    return [{"$lookup": lookup}, {"$match": {"node.lineage": codec.possible(root)}}, {"$unset": "node"}]


def chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Values in parts for one `$in` each."""
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]


def _conditions(selection: SessionFilter) -> list[Document]:
    """Stages that let pass what fulfils them."""
    fields: Document = {}
    if selection.status is not None:
        fields["status"] = selection.status.value
    if selection.updated_since is not None:
        fields["updatedAt"] = {"$gte": date(selection.updated_since)}
    if selection.appended_since is not None:
        fields["lastEventAt"] = {"$gte": date(selection.appended_since)}
    if selection.behind is not None:
        fields["behind"] = selection.behind
    stages: list[Document] = [{"$match": fields}] if fields else []
    if selection.label_contains:
        folded = {"$literal": selection.label_contains.casefold()}
        stages.append({"$match": {"$expr": {"$gte": [{"$indexOfCP": ["$labelFold", folded]}, 0]}}})
    return stages


def _run_fields(selection: RunFilter) -> Document:
    fields: Document = {
        "sessionId": selection.session_id and codec.possible(selection.session_id),
        "status": selection.status and selection.status.value,
        "agentFlow": selection.agent_flow,
        "agentNames": selection.agent_name,
        "toolNames": selection.tool_name,
        "feedback": selection.feedback,
        "durationMs": None if selection.min_duration_ms is None else {"$gte": selection.min_duration_ms},
    }
    started: Document = {}
    if selection.started_after is not None:
        started["$gte"] = date(selection.started_after)
    if selection.started_before is not None:
        started["$lt"] = date(selection.started_before)
    return {name: value for name, value in {**fields, "startedAt": started or None}.items() if value is not None}
