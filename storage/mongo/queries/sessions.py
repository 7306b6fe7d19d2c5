"""Reading sessions."""

from collections.abc import Collection

from pymongo import ASCENDING, DESCENDING
from typing_extensions import override

from storage.database import Head
from storage.database.sessions import SessionQueries
from storage.events import Instant
from storage.mongo import codec
from storage.mongo.codec import Document, date, key
from storage.mongo.queries.base import MongoReader, joined, keyed_documents
from storage.session import SessionFilter, SessionMeta, SessionOrder

COUNT: Document = {"$group": {"_id": None, "count": {"$sum": 1}}}


class MongoSessionQueries(MongoReader, SessionQueries):
    """Reads the collection sessions."""

    @override
    async def session(self, space: str, id: str) -> SessionMeta | None:
        found = await self._find_one("sessions", {"_id": key(space, id)})
        return None if found is None else codec.decode_session(found)

    @override
    async def sessions(self, space: str, ids: Collection[str]) -> dict[str, SessionMeta]:
        keys = [key(space, id) for id in ids]
        metas = [codec.decode_session(found) async for found in self._matching("sessions", "_id", keys)]
        return {meta.id: meta for meta in metas}

    @override
    async def session_by_key(self, space: str, key: str) -> SessionMeta | None:
        found = await self._find_one("sessions", {"creationKey": f"{space}/{key}"})
        return None if found is None else codec.decode_session(found)

    @override
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

    @override
    async def count_sessions(self, space: str, selection: SessionFilter) -> int:
        found = await self._selected(space, selection, [COUNT])
        return int(found[0]["count"]) if found else 0

    @override
    async def sessions_in(self, space: str, under: str | None) -> list[SessionMeta]:
        found = await self._selected(space, SessionFilter(under=under), [])
        return [codec.decode_session(document) for document in found]

    @override
    async def heads(self, space: str, under: str | None = None) -> list[Head]:
        fields = {"$project": {"_id": 0, "id": 1, "log": 1, "head": 1, "ownStart": 1}}
        found = await self._selected(space, SessionFilter(under=under), [fields])
        return [Head(row["id"], row["log"], int(row["head"]), int(row["ownStart"])) for row in found]

    async def _selected(
        self, space: str, selection: SessionFilter, stages: list[Document], between: Document | None = None
    ) -> list[Document]:
        """The sessions that match a filter, within a range of times, through further stages; by one command."""
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
            return await self._aggregate(None, [keyed_documents(keys), *joined("sessions", "_id", "_id"), *stages])
        if selection.under is not None:
            start: Document = {"$match": {"space": space, "lineage": codec.possible(selection.under)}}
            descendants = [start, *joined("sessions", "_id", "_id"), {"$match": between or {}}]
            return await self._aggregate("nodes", [*descendants, *stages])
        return await self._aggregate("sessions", [{"$match": {"space": space, **(between or {})}}, *stages])


def _only_under(root: str) -> list[Document]:
    """Stages that pass only sessions whose node is the root or below it."""
    lookup = {"from": "nodes", "localField": "_id", "foreignField": "_id", "as": "node"}
    return [{"$lookup": lookup}, {"$match": {"node.lineage": codec.possible(root)}}, {"$unset": "node"}]


def _conditions(selection: SessionFilter) -> list[Document]:
    """Stages that pass only sessions that meet the filter's conditions, other than `ids` and `under`."""
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
