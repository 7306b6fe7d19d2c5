"""SessionStorage: sessions as dialogue units. Nothing here knows the tree."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage import errors, slots, text
from storage.cursor import Cursor, binding, check_count, decode, encode
from storage.database import Queries, Transaction, Work
from storage.digests import DigestPage, read_digests
from storage.events import Event
from storage.log import append, reading
from storage.log.append import Appended, replaces
from storage.log.reading import EventPage
from storage.readers.surfaces import Surfaces
from storage.scope import Scope, session_queue
from storage.session import (
    SessionFilter,
    SessionMeta,
    SessionOrder,
    SessionStatus,
    Slots,
    check_document,
    check_label,
)
from storage.slots import ConsumedInsight, SlotWrite, WrittenSlot

MAX_PAGE = 200
QUICK_EVENTS = 20
"""Largest event page that counts as a quick read."""
MAX_IDS = 1_000
MAX_BATCH = 100


@dataclass(frozen=True, slots=True)
class Append:
    """One append of a batch."""

    session_id: str
    drafts: Sequence[Event]
    expected_head: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Sessions in order, and whether more follow."""

    sessions: list[SessionMeta]
    more: bool
    order: SessionOrder
    bound: str

    def cursor(self, meta: SessionMeta) -> str:
        """The cursor of one of the sessions."""
        updated = self.order is SessionOrder.UPDATED_DESC
        return encode(Cursor(meta.updated_at if updated else meta.created_at, meta.id), self.bound)


def check_batch(appends: int) -> None:
    """Raises PayloadTooLarge for more than 100 appends in one batch."""
    if appends > MAX_BATCH:
        raise errors.PayloadTooLarge(f"inputs: at most {MAX_BATCH}, got {appends}")


class SessionStorage:
    """Sessions, their logs, slots and digests."""

    def __init__(self, scope: Scope, surfaces: Surfaces) -> None:
        self._scope = scope
        self._surfaces = surfaces

    async def get(self, space: str, id: str) -> SessionMeta | None:
        """The session, or None if the space has none with that id."""
        return await self._scope.read(lambda queries: queries.session(space, id), quick=True)

    async def get_many(self, space: str, ids: Sequence[str]) -> list[SessionMeta | None]:
        """Sessions in the order of `ids`, None for each unknown id. Raises PayloadTooLarge for more than 1,000."""
        if len(ids) > MAX_IDS:
            raise errors.PayloadTooLarge(f"ids: at most {MAX_IDS}, got {len(ids)}")
        found = await self._scope.read(lambda queries: queries.sessions(space, set(ids)))
        return [found.get(id) for id in ids]

    async def page(
        self, space: str, selection: SessionFilter, order: SessionOrder, first: int, after: str | None
    ) -> SessionPage | None:
        """One page of sessions; None if the node to look under is unknown. Raises BadInput for a bad size or cursor."""
        check_count(first, MAX_PAGE, "first")
        selection = _clean(selection)
        bound = binding("sessions", space, order, selection)
        cursor = decode(after, bound)

        async def query(queries: Queries) -> SessionPage | None:
            if selection.under is not None and await queries.node(space, selection.under) is None:
                return None
            position = (cursor.time, cursor.id) if cursor else None
            found = await queries.session_page(space, selection, order, position, first + 1)
            return SessionPage(found[:first], len(found) > first, order, bound)

        return await self._scope.read(query)

    async def count(self, space: str, selection: SessionFilter) -> int:
        """How many sessions match the selection."""
        return await self._scope.read(lambda queries: queries.count_sessions(space, _clean(selection)))

    async def digests(self, space: str, selection: SessionFilter, first: int, after: str | None) -> DigestPage | None:
        """One page of digests, as `storage.digests.read_digests`."""
        return await read_digests(self._scope, space, selection, first, after)

    async def slots(self, space: str, ids: Collection[str]) -> dict[str, Slots]:
        """Slots by session id."""
        return await self._scope.read(lambda queries: queries.slots(space, ids))

    async def events(
        self,
        meta: SessionMeta,
        *,
        from_seq: int | None = None,
        before_seq: int | None = None,
        first: int | None = None,
        last: int | None = None,
        types: Collection[str] | None = None,
    ) -> EventPage:
        """A page of the session's visible log, as `storage.log.reading.read_page`."""
        return await self._scope.read(
            lambda queries: reading.read_page(
                queries, meta, from_seq=from_seq, before_seq=before_seq, first=first, last=last, types=types
            ),
            quick=max(first or 0, last or 0) in range(1, QUICK_EVENTS + 1) and types is None,
        )

    async def append(
        self,
        space: str,
        id: str,
        drafts: Sequence[Event],
        *,
        expected_head: int | None = None,
        key: str | None = None,
    ) -> Appended:
        """Writes events at the log's head, all or none, as `storage.log.append.append`."""
        wanted = Append(id, drafts, expected_head, key)
        await self._prepare(space, [wanted])
        work = self._append_work(space, wanted)
        return self._follow(await self._scope.transact(work.run, queue=work.queue))

    async def append_batch(self, space: str, appends: Sequence[Append]) -> list[Appended | errors.SapwoodError]:
        """Up to 100 independent appends, each with its answer or the reason it was refused.

        Appends to one session are made in the order given.
        """
        check_batch(len(appends))
        await self._prepare(space, appends)
        results = await self._scope.transact_each([self._append_work(space, wanted) for wanted in appends])
        return [self._follow(result) if isinstance(result, Appended) else result for result in results]

    async def _prepare(self, space: str, appends: Sequence[Append]) -> None:
        """Reads the surfaces that appends replace parts of, so that transactions don't have to."""
        # One after the other: inside a transaction nothing may run side by side.
        for id in {wanted.session_id: None for wanted in appends if replaces(wanted.drafts)}:
            await self._surfaces.prepare(self._scope, space, id)

    def _append_work(self, space: str, wanted: Append) -> Work:
        async def run(tx: Transaction) -> Appended:
            key = None if wanted.key is None else text.identifier(wanted.key, "idempotencyKey")
            return await append.append(
                tx,
                space,
                wanted.session_id,
                wanted.drafts,
                surfaces=self._surfaces,
                expected_head=wanted.expected_head,
                key=key,
            )

        return Work(run, [session_queue(space, wanted.session_id)])

    def _follow(self, appended: Appended) -> Appended:
        if self._scope.committed and appended.admitted is not None:
            self._surfaces.follow(appended.commit, appended.admitted)
        return appended

    async def update(self, space: str, id: str, changes: dict[str, Any]) -> SessionMeta:
        """Sets those of label, workflow_mode and metadata (JSON text) that are given. Raises NotFound, BadInput."""
        if "label" in changes:
            if changes["label"] is None:
                raise errors.BadInput("label: can't be null")
            changes["label"] = check_label(changes["label"])
        changes = {name: text.clean_any(value) for name, value in changes.items()}
        check_document(changes.get("metadata"), "metadata")
        return await self._change(space, id, changes)

    async def set_status(self, space: str, id: str, status: SessionStatus) -> SessionMeta:
        """Archives or restores one session; its children are unaffected. Raises NotFound."""
        return await self._change(space, id, {"status": status})

    async def _change(self, space: str, id: str, changes: dict[str, Any]) -> SessionMeta:
        async def work(tx: Transaction) -> SessionMeta:
            meta = await tx.session(space, id)
            if meta is None:
                raise errors.no_session("id", id)
            different = {name: value for name, value in changes.items() if getattr(meta, name) != value}
            return await tx.change_session(meta, different) if different else meta

        return await self._scope.transact(work, queue=[session_queue(space, id)])

    async def put_slot(self, space: str, write: SlotWrite) -> WrittenSlot:
        """Writes one slot. Raises NotFound, Archived, Conflict (with the version), BadInput, PayloadTooLarge."""
        work = _slot_work(space, write)
        return await self._scope.transact(work.run, queue=work.queue)

    async def put_slots(
        self, space: str, writes: Sequence[SlotWrite], *, atomic: bool = True
    ) -> list[WrittenSlot | errors.SapwoodError]:
        """Writes up to 1,000 slots and returns the results in the order given.

        `atomic` writes all or none, and its error names every refused id. Otherwise each write is independent, and a
        refused one returns its error.
        """
        if len(writes) > MAX_IDS:
            raise errors.PayloadTooLarge(f"inputs: at most {MAX_IDS}, got {len(writes)}")
        if not atomic:
            return await self._scope.transact_each([_slot_work(space, write) for write in writes])
        queue = {session_queue(space, write.session_id) for write in writes}
        return list(await self._scope.transact(lambda tx: slots.put_all(tx, space, writes), queue=queue))

    async def clear_insight(self, space: str, id: str, version: int | None) -> WrittenSlot:
        """Clears the insight. Raises Conflict if `version` is given and not the current one."""
        return await self._scope.transact(
            lambda tx: slots.clear_insight(tx, space, id, version), queue=[session_queue(space, id)]
        )

    async def consume_insight(
        self, space: str, id: str, version: int | None, turn_id: str | None, key: str | None
    ) -> ConsumedInsight:
        """Takes the insight and records it in the log, as `storage.slots.consume_insight`."""
        key = None if key is None else text.identifier(key, "idempotencyKey")
        turn_id = None if turn_id is None else text.identifier(turn_id, "turnId")
        return await self._scope.transact(
            lambda tx: slots.consume_insight(tx, space, id, version, turn_id, key), queue=[session_queue(space, id)]
        )


def _slot_work(space: str, write: SlotWrite) -> Work:
    return Work(lambda tx: slots.put(tx, space, write), [session_queue(space, write.session_id)])


def _clean(selection: SessionFilter) -> SessionFilter:
    wanted = selection.label_contains
    return selection if wanted is None else replace(selection, label_contains=text.clean(wanted))
