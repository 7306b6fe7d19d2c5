"""Reading rows of runs."""

from collections.abc import Collection

from pymongo import DESCENDING
from typing_extensions import override

from storage.database.runs import RunQueries
from storage.events import Instant
from storage.mongo import codec
from storage.mongo.codec import Document, date
from storage.mongo.queries.base import MongoReader
from storage.run_filter import RunFilter
from storage.views.run_rows import RunRow


class MongoRunQueries(MongoReader, RunQueries):
    """Reads the collection runs. Its field `place` is a row's sort key."""

    @override
    async def run_rows(self, space: str, session: str, turns: Collection[str] | None) -> dict[str, RunRow]:
        if turns is None:
            where = {"space": space, "sessionId": codec.possible(session)}
            rows = [codec.decode_run(found) for found in await self._find("runs", where)]
        else:
            keys = [codec.run_key(space, session, turn) for turn in turns]
            rows = [codec.decode_run(found) async for found in self._matching("runs", "_id", keys)]
        return {row.turn_id: row for row in rows}

    @override
    async def run_page(
        self, space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int
    ) -> list[RunRow]:
        stages: list[Document] = [{"$match": {"space": space, **_conditions(selection)}}]
        if after is not None:
            earlier: list[Document] = [{"startedAt": {"$lt": date(after[0])}}]
            tied = {"startedAt": date(after[0]), "place": {"$lt": after[1]}}
            stages += [{"$match": {"startedAt": {"$lte": date(after[0])}}}, {"$match": {"$or": [*earlier, tied]}}]
        stages += [{"$sort": {"startedAt": DESCENDING, "place": DESCENDING}}, {"$limit": limit}]
        return [codec.decode_run(found) for found in await self._aggregate("runs", stages)]

    @override
    async def run_sessions(self, space: str) -> set[str]:
        stages = [{"$match": {"space": space}}, {"$group": {"_id": "$sessionId"}}]
        return {row["_id"] for row in await self._aggregate("runs", stages)}


def _conditions(selection: RunFilter) -> Document:
    """The filter's conditions on fields of a row."""
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
