"""Reading commits and their marks."""

from collections.abc import Collection, Iterable

import orjson
from typing_extensions import override

from storage.database import Holders, MarkKind, MarkSpan
from storage.database.log import LogQueries
from storage.events import WIRE_TYPES
from storage.log.commit import Commit
from storage.sqlite.queries.base import SqliteReader
from storage.sqlite.queries.statement import batches, placeholders

HIDES = 1 << WIRE_TYPES.index("surface/hide")
"""The bit of the commits that have an index of their own."""


def mask(types: Iterable[str]) -> int:
    """A bit for each wire type."""
    return sum(1 << WIRE_TYPES.index(name) for name in set(types))


class SqliteLogQueries(SqliteReader, LogQueries):
    """Reads the tables commits, starts and segments."""

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
        direction = "DESC" if newest_first else "ASC"
        held = "" if types is None else "AND types & :types"
        if mask(types or ()) == HIDES:
            held = f"AND types & {HIDES}"  # exactly as the index says it, which SQLite uses for nothing else
        rows = self._rows(
            f"""SELECT doc, size, last - first + 1 FROM commits
            WHERE log = :log AND first >= :start AND first < :stop {held} ORDER BY first {direction}""",
            log=log,
            start=start,
            stop=stop,
            types=mask(types or ()),
        )
        found: list[Commit] = []
        for doc, size, events in rows:
            found.append(Commit.model_validate_json(doc))
            max_events -= events if types is None else 1
            max_bytes -= size
            if max_events <= 0 or max_bytes <= 0:
                break
        return found

    @override
    async def commit_before(self, log: str, seq: int, within: int) -> Commit | None:
        sql = """SELECT doc FROM commits WHERE log = :log AND first <= :seq AND first > :low
            ORDER BY first DESC LIMIT 1"""
        return self._document(Commit, sql, log=log, seq=seq, low=seq - within)

    @override
    async def commit_by_key(self, log: str, key: str) -> Commit | None:
        return self._document(Commit, "SELECT doc FROM commits WHERE idempotency_key = :key", key=f"{log}/{key}")

    @override
    async def mark_seqs(self, kind: MarkKind, spans: Collection[MarkSpan]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for batch in batches([span.mark for span in spans if span.stop is None]):
            sql = f"SELECT mark, seq FROM starts WHERE kind = ? AND mark IN ({placeholders(batch)})"
            found += self._connection.execute(sql, [kind.value, *batch])
        bounded = [span for span in spans if span.stop is not None]
        return found + self._ends(kind, bounded) if bounded else found

    def _ends(self, kind: MarkKind, spans: Collection[MarkSpan]) -> list[tuple[str, int]]:
        """The first and the last seq in each span, by one statement: long logs have many versions of a card."""
        inside = """FROM starts WHERE kind = :kind AND mark = json_extract(span.value, '$[0]')
            AND seq >= json_extract(span.value, '$[1]') AND seq < json_extract(span.value, '$[2]')"""
        sql = f"""SELECT json_extract(span.value, '$[0]'), (SELECT min(seq) {inside}), (SELECT max(seq) {inside})
            FROM json_each(:spans) AS span"""
        rows = self._rows(sql, kind=kind.value, spans=orjson.dumps(list(map(tuple, spans))).decode())
        return [(mark, seq) for mark, *ends in rows for seq in ends if seq is not None]

    @override
    async def holders(self, log: str) -> Holders:
        rows = self._rows("SELECT upto FROM segments WHERE log = :log", log=log).fetchall()
        cuts = [upto for (upto,) in rows if upto is not None]
        return Holders(len(cuts) < len(rows), max(cuts, default=0))

    @override
    async def all_logs(self) -> list[str]:
        return [log for (log,) in self._rows("SELECT DISTINCT log FROM commits")]

    @override
    async def unowned_logs(self) -> list[str]:
        sql = "SELECT DISTINCT log FROM commits EXCEPT SELECT log FROM segments WHERE upto IS NULL"
        return [log for (log,) in self._rows(sql)]
