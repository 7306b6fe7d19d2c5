"""Reading commits and their marks."""

from collections.abc import Collection
from contextlib import aclosing

from pymongo import ASCENDING, DESCENDING
from typing_extensions import override

from storage.database import Holders, MarkKind, MarkSpan
from storage.database.log import LogQueries
from storage.log.commit import Commit
from storage.mongo import codec, pages
from storage.mongo.codec import Document
from storage.mongo.queries.base import MongoReader, iterate

NEAR = 16
"""Seqs to go back at first for the commit that holds a seq."""
MARK_FIELDS = {
    MarkKind.TURN: ("turns", "turnSeqs"),
    MarkKind.STEP: ("steps", "stepSeqs"),
    MarkKind.CARD: ("cards", "cardSeqs"),
}
"""Fields of a commit that hold the marks of a kind, and the seq of each."""


class MongoLogQueries(MongoReader, LogQueries):
    """Reads the collection commits, and the segments of sessions."""

    @override
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
            async with aclosing(iterate(self._database["commits"].aggregate(pipeline, session=self._session))) as found:
                await page.fill(found)
        return page.commits

    @override
    async def commit_before(self, log: str, seq: int, within: int) -> Commit | None:
        await self._ready()
        for reach in (NEAR, within) if within > NEAR else (within,):
            where = {"log": log, "first": {"$gt": seq - reach, "$lt": seq + 1}}
            found = await self._database["commits"].find_one(where, sort=[("first", DESCENDING)], session=self._session)
            if found is not None:
                return codec.decode_commit(found)
        return None

    @override
    async def commit_by_key(self, log: str, key: str) -> Commit | None:
        found = await self._find_one("commits", {"key": f"{log}/{key}"})
        return None if found is None else codec.decode_commit(found)

    @override
    async def mark_seqs(self, kind: MarkKind, spans: Collection[MarkSpan]) -> list[tuple[str, int]]:
        names, seqs = MARK_FIELDS[kind]
        wanted: dict[str, list[MarkSpan]] = {}
        for span in spans:
            wanted.setdefault(span.mark, []).append(span)
        inside: set[tuple[str, int]] = set()
        async for found in self._matching("commits", names, wanted, {"_id": 0, names: 1, seqs: 1}):
            for mark, seq in zip(found[names], map(int, found[seqs]), strict=True):
                if any(span.start <= seq and (span.stop is None or seq < span.stop) for span in wanted.get(mark, ())):
                    inside.add((mark, seq))
        return sorted(inside)

    @override
    async def holders(self, log: str) -> Holders:
        fields = {"_id": 0, "segments": {"$elemMatch": {"log": log}}}
        found = await self._find("sessions", {"segments.log": log}, fields)
        cuts = [int(segment["to"]) for row in found for segment in row["segments"] if "to" in segment]
        return Holders(len(cuts) < len(found), max(cuts, default=0))

    @override
    async def all_logs(self) -> list[str]:
        return [row["_id"] for row in await self._aggregate("commits", [{"$group": {"_id": "$log"}}])]

    @override
    async def unowned_logs(self) -> list[str]:
        logs = await self.all_logs()
        # Owners are read after the logs: a log that is created meanwhile has its owner from its first commit on.
        owned = {row["_id"] for row in await self._aggregate("sessions", [{"$group": {"_id": "$log"}}])}
        return [log for log in logs if log not in owned]
