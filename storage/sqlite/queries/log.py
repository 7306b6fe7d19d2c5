"""Reading documents of the file. Nothing here waits: a coroutine over these methods runs to its end at once."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson

from storage import text
from storage.access_key import AccessKey
from storage.cards.definition import FormDefinition
from storage.database import Head, Holders
from storage.events import WIRE_TYPES, Instant
from storage.log.commit import Commit
from storage.run_filter import RunFilter
from storage.session import SessionFilter, SessionMeta, SessionOrder, Slots
from storage.sqlite import run_page
from storage.topology import NodeDocument
from storage.views.run_rows import RunRow

SUBTREE = """
WITH RECURSIVE subtree (id) AS (
    SELECT id FROM nodes WHERE space = :space AND id = :root
    UNION SELECT nodes.id FROM nodes JOIN subtree ON nodes.space = :space AND nodes.parent = subtree.id
)
"""
IN_IDS = "IN (SELECT value FROM json_each(:ids))"
AT_ONCE = 1_000


HIDES = 1 << WIRE_TYPES.index("surface/hide")
"""The bit by which an index holds the commits with hides."""


def mask(types: Iterable[str]) -> int:
    """A bit for each wire type."""
    return sum(1 << WIRE_TYPES.index(name) for name in set(types))


def listed(ids: Iterable[str]) -> str:
    """Ids of sessions or keys as the JSON array that `json_each` reads: one parameter however many there are.

    Left out are texts that can't be ids.
    """
    return orjson.dumps([id for id in ids if text.SESSION_ID.match(id)]).decode()


def parts(texts: Collection[str]) -> Iterator[Sequence[str]]:
    """Texts of any kind in parts that fit into a statement, each as a parameter of its own.

    They may hold what writers call their turns, NUL included, and `json_each` reads no further than that.
    """
    listed = list(texts)
    for start in range(0, len(listed), AT_ONCE):
        yield listed[start : start + AT_ONCE]


def placeholders(part: Sequence[str]) -> str:
    """The parameters of a part, for a statement."""
    return ",".join("?" * len(part))


class SqliteQueries:
    """`storage.database.Queries` over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _rows(self, sql: str, **values: Any) -> sqlite3.Cursor:
        return self._connection.execute(sql, values)

    def _document(self, sql: str, **values: Any) -> str | None:
        """The one document asked for; None also for an id that can't be one."""
        if not text.possible_id(values.get("id", "")):
            return None
        row = self._connection.execute(sql, values).fetchone()
        return None if row is None else row[0]

    async def session(self, space: str, id: str) -> SessionMeta | None:
        found = self._document("SELECT doc FROM sessions WHERE space = :space AND id = :id", space=space, id=id)
        return None if found is None else SessionMeta.model_validate_json(found)

    async def sessions(self, space: str, ids: Collection[str]) -> dict[str, SessionMeta]:
        rows = self._rows(
            f"SELECT doc FROM sessions WHERE space = :space AND id {IN_IDS}", space=space, ids=listed(ids)
        )
        return {meta.id: meta for (doc,) in rows if (meta := SessionMeta.model_validate_json(doc))}

    async def session_by_key(self, space: str, key: str) -> SessionMeta | None:
        sql = "SELECT doc FROM sessions WHERE space = :space AND creation_key = :key"
        found = self._document(sql, space=space, key=key)
        return None if found is None else SessionMeta.model_validate_json(found)

    async def session_page(
        self,
        space: str,
        selection: SessionFilter,
        order: SessionOrder,
        after: tuple[Instant, str] | None,
        limit: int,
    ) -> list[SessionMeta]:
        prefix, where, values = _conditions(space, selection)
        column = "updated_at" if order is SessionOrder.UPDATED_DESC else "created_at"
        direction, beyond = ("ASC", ">") if order is SessionOrder.CREATED_ASC else ("DESC", "<")
        if after is not None:
            where += f" AND ({column}, id) {beyond} (:time, :after)"
            values |= {"time": after[0], "after": after[1]}
        sql = f"{prefix} SELECT doc FROM sessions WHERE {where} ORDER BY {column} {direction}, id {direction}"
        rows = self._rows(f"{sql} LIMIT :limit", **values, limit=limit)
        return [SessionMeta.model_validate_json(doc) for (doc,) in rows]

    async def count_sessions(self, space: str, selection: SessionFilter) -> int:
        prefix, where, values = _conditions(space, selection)
        count: int = self._rows(f"{prefix} SELECT count(*) FROM sessions WHERE {where}", **values).fetchone()[0]
        return count

    async def sessions_in(self, space: str, under: str | None) -> list[SessionMeta]:
        prefix, where, values = _conditions(space, SessionFilter(under=under))
        rows = self._rows(f"{prefix} SELECT doc FROM sessions WHERE {where}", **values)
        return [SessionMeta.model_validate_json(doc) for (doc,) in rows]

    async def heads(self, space: str, under: str | None = None) -> list[Head]:
        prefix, where, values = _conditions(space, SessionFilter(under=under))
        rows = self._rows(f"{prefix} SELECT id, log, head, own_start FROM sessions WHERE {where}", **values)
        return [Head(*row) for row in rows]

    async def slots(self, space: str, ids: Collection[str], max_bytes: int | None = None) -> dict[str, Slots]:
        sql = """SELECT slots.doc FROM json_each(:ids) JOIN slots ON slots.space = :space AND slots.id = value
            ORDER BY json_each.key"""
        return {slots.id: slots for slots in _bounded(self._rows(sql, space=space, ids=listed(ids)), max_bytes)}

    async def slots_between(self, space: str, first: SessionMeta, last: SessionMeta, max_bytes: int) -> list[Slots]:
        sql = """SELECT doc FROM slots WHERE space = :space
            AND (created_at, id) >= (:since, :first) AND (created_at, id) <= (:until, :last) ORDER BY created_at, id"""
        values = {"since": first.created_at, "first": first.id, "until": last.created_at, "last": last.id}
        return _bounded(self._rows(sql, space=space, **values), max_bytes)

    async def slot_marks(self, space: str, id: str | None) -> list[Slots]:
        sql = """SELECT json_remove(doc, '$.systemPrompt.content', '$.insight.content', '$.memory.content')
            FROM slots WHERE space = :space AND (:id IS NULL OR id = :id)"""
        return _bounded(self._rows(sql, space=space, id=id), None)

    async def node(self, space: str, id: str) -> NodeDocument | None:
        found = self._document("SELECT doc FROM nodes WHERE space = :space AND id = :id", space=space, id=id)
        return None if found is None else NodeDocument.model_validate_json(found)

    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, NodeDocument]:
        rows = self._rows(f"SELECT doc FROM nodes WHERE space = :space AND id {IN_IDS}", space=space, ids=listed(ids))
        return {node.id: node for node in _nodes(rows)}

    async def children(self, space: str, parents: Collection[str]) -> list[NodeDocument]:
        sql = f"SELECT doc FROM nodes WHERE space = :space AND parent {IN_IDS}"
        return _nodes(self._rows(sql, space=space, ids=listed(parents)))

    async def roots(self, space: str) -> list[NodeDocument]:
        sql = """SELECT doc FROM nodes WHERE space = :space AND parent IS NULL UNION ALL
            SELECT doc FROM nodes AS orphan WHERE space = :space AND parent IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM nodes WHERE space = :space AND id = orphan.parent)"""
        return _nodes(self._rows(sql, space=space))

    async def subtree(self, space: str, root: str | None, limit: int | None = None) -> list[NodeDocument]:
        prefix, where, values = _conditions(space, SessionFilter(under=root))
        rows = self._rows(f"{prefix} SELECT doc FROM nodes WHERE {where} LIMIT :limit", **values, limit=limit or -1)
        return _nodes(rows)

    async def referrers(self, space: str, ids: Collection[str]) -> list[NodeDocument]:
        sql = f"""SELECT doc FROM nodes WHERE space = :space AND id IN
            (SELECT source FROM refs WHERE space = :space AND target {IN_IDS})"""
        return _nodes(self._rows(sql, space=space, ids=listed(ids)))

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
            held = f"AND types & {HIDES}"  # in the very words of the index, which is used for no others
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

    async def commit_before(self, log: str, seq: int, within: int) -> Commit | None:
        sql = """SELECT doc FROM commits WHERE log = :log AND first <= :seq AND first > :low
            ORDER BY first DESC LIMIT 1"""
        found = self._document(sql, log=log, seq=seq, low=seq - within)
        return None if found is None else Commit.model_validate_json(found)

    async def commit_by_key(self, log: str, key: str) -> Commit | None:
        found = self._document("SELECT doc FROM commits WHERE idempotency_key = :key", key=f"{log}/{key}")
        return None if found is None else Commit.model_validate_json(found)

    async def turn_starts(self, marks: Collection[str]) -> list[tuple[str, int]]:
        return self._starts("turn", marks)

    async def step_starts(self, marks: Collection[str]) -> list[tuple[str, int]]:
        return self._starts("step", marks)

    async def card_seqs(self, spans: Collection[tuple[str, int, int]]) -> list[tuple[str, int]]:
        inside = """FROM starts WHERE kind = 'card' AND mark = json_extract(span.value, '$[0]')
            AND seq >= json_extract(span.value, '$[1]') AND seq < json_extract(span.value, '$[2]')"""
        sql = f"""SELECT json_extract(span.value, '$[0]'), (SELECT min(seq) {inside}), (SELECT max(seq) {inside})
            FROM json_each(:spans) AS span"""
        rows = self._rows(sql, spans=orjson.dumps(list(spans)).decode())
        return [(mark, seq) for mark, *ends in rows for seq in ends if seq is not None]

    def _starts(self, kind: str, marks: Collection[str]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for part in parts(marks):
            sql = f"SELECT mark, seq FROM starts WHERE kind = ? AND mark IN ({placeholders(part)})"
            found += self._connection.execute(sql, [kind, *part])
        return found

    async def forms(self, space: str, ids: Collection[str] | None) -> list[FormDefinition]:
        if ids is None:
            rows = self._rows("SELECT doc FROM forms WHERE space = :space ORDER BY id", space=space).fetchall()
        else:
            sql = "SELECT doc FROM forms WHERE space = :space AND id = :form"
            rows = [row for form in sorted(ids) for row in self._rows(sql, space=space, form=form)]
        return [FormDefinition.model_validate_json(doc) for (doc,) in rows]

    async def run_rows(self, space: str, session: str, turns: Collection[str] | None) -> dict[str, RunRow]:
        sql = "SELECT doc FROM runs WHERE space = ? AND session = ?"
        if turns is None:
            return {row.turn_id: row for row in _runs(self._connection.execute(sql, (space, session)))}
        found: dict[str, RunRow] = {}
        for part in parts(turns):
            rows = self._connection.execute(f"{sql} AND turn IN ({placeholders(part)})", [space, session, *part])
            found |= {row.turn_id: row for row in _runs(rows)}
        return found

    async def run_page(
        self, space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int
    ) -> list[RunRow]:
        return _runs(self._connection.execute(*run_page.page(space, selection, after, limit)))

    async def run_sessions(self, space: str) -> set[str]:
        return {
            session for (session,) in self._rows("SELECT DISTINCT session FROM runs WHERE space = :space", space=space)
        }

    async def holders(self, log: str) -> Holders:
        rows = self._rows("SELECT upto FROM segments WHERE log = :log", log=log).fetchall()
        cuts = [upto for (upto,) in rows if upto is not None]
        return Holders(len(cuts) < len(rows), max(cuts, default=0))

    async def all_logs(self) -> list[str]:
        return [log for (log,) in self._rows("SELECT DISTINCT log FROM commits")]

    async def unowned_logs(self) -> list[str]:
        sql = "SELECT DISTINCT log FROM commits EXCEPT SELECT log FROM segments WHERE upto IS NULL"
        return [log for (log,) in self._rows(sql)]

    async def all_spaces(self) -> list[str]:
        return [
            space
            for (space,) in self._rows(
                "SELECT DISTINCT space FROM sessions UNION SELECT space FROM nodes UNION SELECT space FROM runs"
            )
        ]

    async def access_keys(self, ids: Collection[str]) -> dict[str, AccessKey]:
        rows = self._rows(f"SELECT doc FROM keys WHERE id {IN_IDS}", ids=listed(ids))
        return {key.id: key for key in _access_keys(rows)}

    async def access_keys_in(self, space: str | None) -> list[AccessKey]:
        return _access_keys(self._rows("SELECT doc FROM keys WHERE :space IS NULL OR space = :space", space=space))

    async def access_keys_exist(self) -> bool:
        return self._rows("SELECT 1 FROM keys LIMIT 1").fetchone() is not None

    async def as_of(self) -> Instant:
        clock: int = self._rows("SELECT value FROM meta WHERE name = 'clock'").fetchone()[0]
        return clock


def _access_keys(rows: Iterable[tuple[str]]) -> list[AccessKey]:
    return [AccessKey.model_validate_json(doc) for (doc,) in rows]


def _nodes(rows: Iterable[tuple[str]]) -> list[NodeDocument]:
    return [NodeDocument.model_validate_json(doc) for (doc,) in rows]


def _runs(rows: Iterable[tuple[str]]) -> list[RunRow]:
    return [RunRow.model_validate_json(doc) for (doc,) in rows]


def _bounded(rows: Iterable[tuple[str]], max_bytes: int | None) -> list[Slots]:
    found: list[Slots] = []
    left = max_bytes
    for (doc,) in rows:
        if left is not None:
            left -= len(doc) if doc.isascii() else len(doc.encode())
            if left < 0 and found:
                break
        found.append(Slots.model_validate_json(doc))
    return found


def _conditions(space: str, selection: SessionFilter) -> tuple[str, str, dict[str, Any]]:
    """A common table expression, the conditions and their values."""
    prefix, where, values = "", ["space = :space"], {"space": space}
    conditions: Sequence[tuple[str, str, Any]] = (
        ("status", "status = :status", selection.status),
        ("since", "updated_at >= :since", selection.updated_since),
        ("appended", "last_event_at >= :appended", selection.appended_since),
        ("behind", "behind = :behind", selection.behind),
        ("label", "instr(label, :label)", selection.label_contains and selection.label_contains.casefold()),
        ("ids", f"id {IN_IDS}", None if selection.ids is None else listed(selection.ids)),
    )
    for name, condition, value in conditions:
        if value is not None:
            where.append(condition)
            values[name] = value
    if selection.under is not None:
        prefix = SUBTREE
        where.append("id IN (SELECT id FROM subtree)")
        values["root"] = selection.under if text.possible_id(selection.under) else ""
    return prefix, " AND ".join(where), values
