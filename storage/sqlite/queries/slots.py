"""Reading slots and form definitions."""

from collections.abc import Collection, Iterable

from typing_extensions import override

from storage.cards.definition import FormDefinition
from storage.database.slots import SlotQueries
from storage.session import SessionMeta, Slots
from storage.sqlite.queries.base import SqliteReader, documents
from storage.sqlite.queries.statement import id_array


class SqliteSlotQueries(SqliteReader, SlotQueries):
    """Reads the tables slots and forms."""

    @override
    async def slots(self, space: str, ids: Collection[str], max_bytes: int | None = None) -> dict[str, Slots]:
        sql = """SELECT slots.doc FROM json_each(:ids) JOIN slots ON slots.space = :space AND slots.id = value
            ORDER BY json_each.key"""
        return {slots.id: slots for slots in _bounded(self._rows(sql, space=space, ids=id_array(ids)), max_bytes)}

    @override
    async def slots_between(self, space: str, first: SessionMeta, last: SessionMeta, max_bytes: int) -> list[Slots]:
        sql = """SELECT doc FROM slots WHERE space = :space
            AND (created_at, id) >= (:since, :first) AND (created_at, id) <= (:until, :last) ORDER BY created_at, id"""
        values = {"since": first.created_at, "first": first.id, "until": last.created_at, "last": last.id}
        return _bounded(self._rows(sql, space=space, **values), max_bytes)

    @override
    async def slot_marks(self, space: str, id: str | None) -> list[Slots]:
        sql = """SELECT json_remove(doc, '$.systemPrompt.content', '$.insight.content', '$.memory.content')
            FROM slots WHERE space = :space AND (:id IS NULL OR id = :id)"""
        return documents(Slots, self._rows(sql, space=space, id=id))

    @override
    async def forms(self, space: str, ids: Collection[str] | None) -> list[FormDefinition]:
        if ids is None:
            rows = self._rows("SELECT doc FROM forms WHERE space = :space ORDER BY id", space=space).fetchall()
        else:
            sql = "SELECT doc FROM forms WHERE space = :space AND id = :form"
            rows = [row for form in sorted(ids) for row in self._rows(sql, space=space, form=form)]
        return documents(FormDefinition, rows)


def _bounded(rows: Iterable[tuple[str]], max_bytes: int | None) -> list[Slots]:
    """Slots until the next document would pass `max_bytes`; at least one if there is any."""
    found: list[Slots] = []
    left = max_bytes
    for (doc,) in rows:
        if left is not None:
            left -= len(doc) if doc.isascii() else len(doc.encode())
            if left < 0 and found:
                break
        found.append(Slots.model_validate_json(doc))
    return found
