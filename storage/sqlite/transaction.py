"""Writing documents to the file, inside the writer's transaction."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from typing_extensions import override

from storage import errors
from storage.access_key import AccessKey
from storage.cards.definition import FormDefinition
from storage.database import MOVED_FIELDS, Notification, Transaction
from storage.events import Instant, Model
from storage.log.commit import Commit
from storage.session import SessionMeta, Slot, Slots
from storage.sqlite.queries import SqliteQueries
from storage.sqlite.queries.log import mask
from storage.sqlite.queries.statement import batches, placeholders
from storage.topology import NodeDocument
from storage.views.run_rows import RunRow


def document(model: Model) -> str:
    """The JSON of a model as stored."""
    return model.model_dump_json(by_alias=True, exclude_none=True)


def _commit_document(commit: Commit) -> bytes:
    """The same of a commit. Its events are plain JSON, which orjson writes several times faster than pydantic."""
    rest = commit.model_dump_json(by_alias=True, exclude_none=True, exclude={"events"})
    return b'%b,"events":%b}' % (rest[:-1].encode(), orjson.dumps(commit.events))


class SqliteTransaction(SqliteQueries, Transaction):
    """One work's part of the writer's transaction. `now` (ms) never runs backwards in the file.

    `known` are sessions as the file holds them, by (space, id). `changed` are the sessions that this transaction has
    changed, None for a deleted one. `written` says whether it has written anything.
    """

    def __init__(
        self, connection: sqlite3.Connection, now: Instant, known: Mapping[tuple[str, str], SessionMeta]
    ) -> None:
        super().__init__(connection)
        self.now = now
        self.notifications: list[Notification] = []
        self.commits_made: list[Commit] = []
        self.changed: dict[tuple[str, str], SessionMeta | None] = {}
        self.written = False
        self._known = known

    def _write(self, sql: str, **values: Any) -> sqlite3.Cursor:
        self.written = True
        return self._connection.execute(sql, values)

    @override
    async def session(self, space: str, id: str) -> SessionMeta | None:
        key = (space, id)
        if key in self.changed:
            return self.changed[key]
        return self._known.get(key) or await super().session(space, id)

    @override
    async def next_root(self, space: str) -> tuple[int, Instant]:
        sql = "INSERT INTO spaces VALUES (:space, 1) ON CONFLICT DO UPDATE SET roots = roots + 1 RETURNING roots"
        count: int = self._write(sql, space=space).fetchone()[0]
        return count - 1, self.now

    @override
    async def insert_session(self, meta: SessionMeta) -> None:
        try:
            cursor = self._write(
                """INSERT INTO sessions (space, id, created_at, updated_at, last_event_at, status, behind, label,
                head, log, own_start, creation_key, doc) VALUES (:space, :id, :created_at, :updated_at,
                :last_event_at, :status, :behind, :label, :head, :log, :own_start, :creation_key, :doc)""",
                created_at=meta.created_at,
                creation_key=meta.creation_key,
                log=meta.log,
                own_start=meta.own_start,
                **_session_columns(meta),
            )
        except sqlite3.IntegrityError as error:
            raise errors.DuplicateId(f"id: {meta.id!r} is taken") from error
        self._connection.executemany(
            "INSERT INTO segments VALUES (?, ?, ?)",
            [(segment.log, cursor.lastrowid, segment.to) for segment in meta.segments],
        )
        self.changed[meta.space, meta.id] = meta
        self._notify("session", meta.space, meta.id)

    @override
    async def insert_node(self, node: NodeDocument) -> None:
        sql = "INSERT INTO nodes (space, id, parent, place, doc) VALUES (:space, :id, :parent, :place, :doc)"
        self._write(sql, **_node_columns(node))
        self._notify("node", node.space, node.id)

    @override
    async def insert_slots(self, slots: Slots) -> None:
        sql = "INSERT INTO slots (space, id, created_at, doc) VALUES (:space, :id, :created_at, :doc)"
        self._write(sql, space=slots.space, id=slots.id, created_at=slots.created_at, doc=document(slots))
        self._notify("slots", slots.space, slots.id)

    @override
    async def insert_commit(self, commit: Commit) -> None:
        self._write(
            """INSERT INTO commits (log, first, last, types, size, idempotency_key, space, session, doc)
            VALUES (:log, :first, :last, :types, :size, :key, :space, :session, CAST(:doc AS TEXT))""",
            log=commit.log,
            first=commit.first,
            last=commit.last,
            types=mask(commit.types),
            size=commit.size,
            key=commit.key,
            space=commit.space,
            session=commit.session,
            doc=_commit_document(commit),
        )
        marks = [
            (kind, mark, commit.log, seq)
            for kind, names, seqs in (
                ("turn", commit.turns, commit.turn_seqs),
                ("step", commit.steps, commit.step_seqs),
                ("card", commit.cards, commit.card_seqs),
            )
            for mark, seq in zip(names, seqs, strict=True)
        ]
        if marks:
            self._connection.executemany("INSERT INTO starts VALUES (?, ?, ?, ?)", marks)
        self.commits_made.append(commit)
        self.notifications.append(
            Notification("log", commit.space, commit.session, commit.log, commit.first, commit.last)
        )

    @override
    async def change_session(
        self, meta: SessionMeta, changes: dict[str, Any], *, appended: bool = False
    ) -> SessionMeta:
        times = {"updated_at": self.now, "last_event_at": self.now} if appended else {"updated_at": self.now}
        changed = meta.model_copy(update={**changes, **times})
        self._write(
            """UPDATE sessions SET updated_at = :updated_at, last_event_at = :last_event_at, status = :status,
            behind = :behind, label = :label, head = :head, doc = :doc WHERE space = :space AND id = :id""",
            **_session_columns(changed),
        )
        self.changed[meta.space, meta.id] = changed
        if not appended:
            self._notify("session", meta.space, meta.id)
        return changed

    @override
    async def rely_on(self, space: str, *, sessions: Collection[str] = (), nodes: Collection[str] = ()) -> None:
        """Does nothing: the file has one writer at a time."""

    @override
    async def change_node(self, node: NodeDocument, changes: dict[str, Any]) -> NodeDocument:
        changed = node.model_copy(update={**changes, "updated_at": self.now})
        sql = "UPDATE nodes SET parent = :parent, place = :place, doc = :doc WHERE space = :space AND id = :id"
        self._write(sql, **_node_columns(changed))
        if changed.refs != node.refs:
            self._write("DELETE FROM refs WHERE space = :space AND source = :id", space=node.space, id=node.id)
            rows = [(node.space, target, node.id) for target in changed.refs]
            self._connection.executemany("INSERT INTO refs VALUES (?, ?, ?)", rows)
        self._notify("node", node.space, node.id)
        return changed

    @override
    async def move_nodes(self, nodes: Sequence[NodeDocument]) -> None:
        current = await self.nodes(nodes[0].space, [node.id for node in nodes]) if nodes else {}
        for node in nodes:
            await self.change_node(current[node.id], {name: getattr(node, name) for name in MOVED_FIELDS})

    @override
    async def change_slots(self, slots: Slots, changes: dict[str, Any]) -> Slots:
        timed = {
            name: slot.model_copy(update={"updated_at": self.now}) if isinstance(slot, Slot) else slot
            for name, slot in changes.items()
        }
        changed = slots.model_copy(update=timed)
        sql = "UPDATE slots SET doc = :doc WHERE space = :space AND id = :id"
        self._write(sql, space=slots.space, id=slots.id, doc=document(changed))
        self._notify("slots", slots.space, slots.id)
        return changed

    @override
    async def put_form(self, form: FormDefinition) -> FormDefinition:
        written = form.model_copy(update={"updated_at": self.now})
        sql = "INSERT INTO forms VALUES (:space, :form, :doc) ON CONFLICT DO UPDATE SET doc = :doc"
        self._write(sql, space=form.space, form=form.form_id, doc=document(written))
        return written

    @override
    async def put_run_rows(self, rows: Sequence[RunRow]) -> None:
        for row in rows:
            cursor = self._write(
                """INSERT INTO runs (space, session, turn, started_at, place, status, agent_flow, feedback, duration_ms,
                doc) VALUES (:space, :session, :turn, :started_at, :place, :status, :agent_flow, :feedback,
                :duration_ms, :doc) ON CONFLICT DO UPDATE SET status = :status, agent_flow = :agent_flow,
                feedback = :feedback, duration_ms = :duration_ms, doc = :doc RETURNING key""",
                **_run_columns(row),
            )
            [key] = cursor.fetchone()
            named = [("agent", name) for name in row.agent_names] + [("tool", name) for name in row.tool_names]
            self._connection.executemany(
                "INSERT OR IGNORE INTO run_names VALUES (?, ?, ?, ?, ?, ?)",
                [(row.space, kind, name, row.started_at, row.place, key) for kind, name in named],
            )

    @override
    async def drop_run_rows(self, space: str, session: str, turns: Collection[str] | None) -> None:
        self.written = True
        for batch in [()] if turns is None else batches(turns):
            where = "space = ? AND session = ?" + (f" AND turn IN ({placeholders(batch)})" if batch else "")
            for sql in (
                f"DELETE FROM run_names WHERE run IN (SELECT key FROM runs WHERE {where})",
                f"DELETE FROM runs WHERE {where}",
            ):
                self._connection.execute(sql, [space, session, *batch])

    @override
    async def insert_access_key(self, key: AccessKey) -> None:
        self._write(
            "INSERT INTO keys (id, space, doc) VALUES (:id, :space, :doc)",
            id=key.id,
            space=key.space,
            doc=document(key),
        )

    @override
    async def change_access_key(self, key: AccessKey, changes: dict[str, Any]) -> AccessKey:
        changed = key.model_copy(update=changes)
        self._write("UPDATE keys SET doc = :doc WHERE id = :id", id=key.id, doc=document(changed))
        return changed

    @override
    async def delete(self, space: str, ids: Collection[str]) -> None:
        for id in ids:
            self._write(
                "DELETE FROM segments WHERE session = (SELECT key FROM sessions WHERE space = :space AND id = :id)",
                space=space,
                id=id,
            )
            self._write("DELETE FROM refs WHERE space = :space AND source = :id", space=space, id=id)
            await self.drop_run_rows(space, id, None)
            for table in ("sessions", "nodes", "slots"):
                self._write(f"DELETE FROM {table} WHERE space = :space AND id = :id", space=space, id=id)
            self.changed[space, id] = None
            self._notify("session", space, id)
            self._notify("node", space, id)

    def drop_commits(self, log: str, cut: int, limit: int) -> int:
        """Deletes up to `limit` commits of a log with first >= cut, and returns how many."""
        self._write("DELETE FROM starts WHERE log = :log AND seq >= :cut", log=log, cut=cut)
        sql = """DELETE FROM commits WHERE key IN
            (SELECT key FROM commits WHERE log = :log AND first >= :cut LIMIT :limit)"""
        return self._write(sql, log=log, cut=cut, limit=limit).rowcount

    def _notify(self, kind: str, space: str, id: str) -> None:
        self.notifications.append(Notification(kind, space, id))


def _session_columns(meta: SessionMeta) -> dict[str, Any]:
    return {
        "space": meta.space,
        "id": meta.id,
        "updated_at": meta.updated_at,
        "last_event_at": meta.last_event_at,
        "status": meta.status.value,
        "behind": meta.behind,
        "label": meta.label.casefold(),
        "head": meta.head,
        "doc": document(meta),
    }


def _run_columns(row: RunRow) -> dict[str, Any]:
    return {
        "space": row.space,
        "session": row.session_id,
        "turn": row.turn_id,
        "started_at": row.started_at,
        "place": row.place,
        "status": row.status.value,
        "agent_flow": row.agent_flow,
        "feedback": row.feedback,
        "duration_ms": row.duration_ms,
        "doc": document(row),
    }


def _node_columns(node: NodeDocument) -> dict[str, Any]:
    return {
        "space": node.space,
        "id": node.id,
        "parent": node.parent_id,
        "place": node.index,
        "doc": document(node),
    }
