"""SessionStorage: sessions as dialogue units, without a word about the tree."""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage import errors, slots, text
from storage.cursor import Cursor, binding, decode, encode
from storage.database import Queries, Transaction
from storage.events import Event, Instant, JsonText
from storage.log import append as log
from storage.log import reading
from storage.log.append import Appended
from storage.log.reading import EventPage
from storage.readers.surfaces import Surfaces
from storage.scope import Scope
from storage.session import (
    MAX_LABEL,
    MAX_SLOT_BYTES,
    Digest,
    SessionFilter,
    SessionMeta,
    SessionOrder,
    SessionStatus,
    Slots,
)
from storage.slots import Consumed, SlotWrite, Written

MAX_PAGE = 200
QUICK_EVENTS = 20
"""Events of a page that is read at once."""
MAX_IDS = 1_000
MAX_BATCH = 100
MAX_DIGESTS = 10_000
MAX_DIGEST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Append:
    """One append. `refusal` says that its events could not even be read as drafts."""

    session_id: str
    drafts: Sequence[Event]
    expected_head: int | None = None
    key: str | None = None
    refusal: errors.BadInput | None = None


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


@dataclass(frozen=True, slots=True)
class DigestPage:
    """Digests by creation, whether more follow, and since when to ask the next time."""

    digests: list[Digest]
    more: bool
    as_of: Instant
    bound: str

    def cursor(self, digest: Digest) -> str:
        """The cursor of one of the digests."""
        return encode(Cursor(digest.session.created_at, digest.session.id, self.as_of), self.bound)


def queue_of(space: str, id: str) -> str:
    """In which queue the writes of a session wait for each other."""
    return f"session {space}/{id}"


def check_label(label: str) -> str:
    """The label, clean. Raises BadInput over 500 characters."""
    if len(label) > MAX_LABEL:
        raise errors.BadInput(f"label: takes {MAX_LABEL} characters, this has {len(label)}")
    return text.clean(label)


def check_document(value: JsonText | None, place: str) -> JsonText | None:
    """JSON text of at most 1 MiB. Raises PayloadTooLarge."""
    if value is not None and len(value.encode()) > MAX_SLOT_BYTES:
        raise errors.PayloadTooLarge(f"{place}: takes {MAX_SLOT_BYTES} bytes as JSON, this has {len(value.encode())}")
    return value


def check_count(value: int, limit: int, name: str) -> int:
    """A page size. Raises BadInput outside of 0 to `limit`."""
    if not 0 <= value <= limit:
        raise errors.BadInput(f"{name}: must be 0 to {limit}, is {value}")
    return value


class SessionStorage:
    """Sessions, their logs, slots and digests."""

    def __init__(self, scope: Scope, surfaces: Surfaces) -> None:
        self._scope = scope
        self._surfaces = surfaces

    async def get(self, space: str, id: str) -> SessionMeta | None:
        """The session, or None when the space has none of that id."""
        return await self._scope.read(lambda queries: queries.session(space, id), quick=True)

    async def get_many(self, space: str, ids: Sequence[str]) -> list[SessionMeta | None]:
        """In the order asked, None for each unknown id. Raises PayloadTooLarge for more than 1,000."""
        if len(ids) > MAX_IDS:
            raise errors.PayloadTooLarge(f"ids: at most {MAX_IDS}, got {len(ids)}")
        found = await self._scope.read(lambda queries: queries.sessions(space, set(ids)))
        return [found.get(id) for id in ids]

    async def page(
        self, space: str, selection: SessionFilter, order: SessionOrder, first: int, after: str | None
    ) -> SessionPage | None:
        """One page of sessions; None when the node to look under is unknown."""
        check_count(first, MAX_PAGE, "first")
        selection = _clean(selection)
        bound = binding("sessions", space, order, selection)
        cursor = decode(after, bound)

        async def query(queries: Queries) -> SessionPage | None:
            if selection.under is not None and await queries.node(space, selection.under) is None:
                return None
            place = (cursor.time, cursor.id) if cursor else None
            found = await queries.session_page(space, selection, order, place, first + 1) if first else []
            return SessionPage(found[:first], len(found) > first, order, bound)

        return await self._scope.read(query)

    async def count(self, space: str, selection: SessionFilter) -> int:
        """How many sessions there are of that selection."""
        return await self._scope.read(lambda queries: queries.count_sessions(space, _clean(selection)))

    async def digests(self, space: str, selection: SessionFilter, first: int, after: str | None) -> DigestPage | None:
        """One page of digests, of up to 16 MiB but at least one; None when the node to look under is unknown."""
        check_count(first, MAX_DIGESTS, "first")
        if selection.ids is not None and len(selection.ids) > MAX_DIGESTS:
            raise errors.PayloadTooLarge(f"ids: at most {MAX_DIGESTS}, got {len(selection.ids)}")
        bound = binding("digests", space, selection)
        cursor = decode(after, bound)

        async def query(queries: Queries) -> DigestPage | None:
            as_of = cursor.as_of if cursor and cursor.as_of is not None else await queries.as_of()
            if selection.under is not None and await queries.node(space, selection.under) is None:
                return None
            place = (cursor.time, cursor.id) if cursor else None
            found = await queries.session_page(space, selection, SessionOrder.CREATED_ASC, place, first + 1)
            rows = found[:first]
            read = await _slots_of(queries, space, selection, rows)
            if (cut := _first_missing(rows, read)) is not None:
                rows = rows[: max(cut, 1)]
            digests = [Digest.of(meta, read.get(meta.id)) for meta in rows]
            return DigestPage(digests, len(found) > len(rows) > 0, as_of, bound)

        return await self._scope.read(query)

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
        key = None if key is None else text.identifier(key, "idempotencyKey")
        if log.replaces(drafts):
            await self._surfaces.prepare(self._scope, space, id)
        appended = await self._scope.transact(
            lambda tx: log.append(tx, space, id, drafts, surfaces=self._surfaces, expected_head=expected_head, key=key),
            queue=[queue_of(space, id)],
        )
        if self._scope.committed and appended.admitted is not None:
            self._surfaces.follow(appended.commit, appended.admitted)
        return appended

    async def append_one(self, space: str, wanted: Append) -> Appended:
        """One append as it was asked for. Raises its refusal."""
        if wanted.refusal is not None:
            raise wanted.refusal
        return await self.append(
            space, wanted.session_id, wanted.drafts, expected_head=wanted.expected_head, key=wanted.key
        )

    async def append_batch(self, space: str, appends: Sequence[Append]) -> list[Appended | errors.SapwoodError]:
        """Up to 100 appends, each on its own, those to one session in the order given; or why it was refused."""
        if len(appends) > MAX_BATCH:
            raise errors.PayloadTooLarge(f"inputs: at most {MAX_BATCH}, got {len(appends)}")

        # What replaces nodes reads the surface before it queues: whatever follows in its session would overtake it.
        turns = {wanted.session_id: asyncio.Lock() for wanted in appends if log.replaces(wanted.drafts)}

        async def attempt(wanted: Append) -> Appended | errors.SapwoodError:
            async with turns.get(wanted.session_id) or contextlib.nullcontext():
                try:
                    return await self.append_one(space, wanted)
                except errors.SapwoodError as error:
                    return error

        return await asyncio.gather(*map(attempt, appends))

    async def update(self, space: str, id: str, changes: dict[str, Any]) -> SessionMeta:
        """Sets label, workflow_mode or metadata (JSON text), those that are given. Raises NotFound."""
        if "label" in changes:
            if changes["label"] is None:
                raise errors.BadInput("label: can't be null")
            changes["label"] = check_label(changes["label"])
        changes = {name: text.clean_any(value) for name, value in changes.items()}
        check_document(changes.get("metadata"), "metadata")
        return await self._change(space, id, changes)

    async def set_status(self, space: str, id: str, status: SessionStatus) -> SessionMeta:
        """Archives or restores one session; its children stay as they are. Raises NotFound."""
        return await self._change(space, id, {"status": status})

    async def _change(self, space: str, id: str, changes: dict[str, Any]) -> SessionMeta:
        async def work(tx: Transaction) -> SessionMeta:
            meta = await tx.session(space, id)
            if meta is None:
                raise errors.NotFound(f"id: no session {id!r}")
            different = {name: value for name, value in changes.items() if getattr(meta, name) != value}
            return await tx.change_session(meta, different) if different else meta

        return await self._scope.transact(work, queue=[queue_of(space, id)])

    async def put_slot(self, space: str, write: SlotWrite) -> Written:
        """Writes one slot. Raises NotFound, Archived, Conflict (with the version), BadInput, PayloadTooLarge."""
        return await self._scope.transact(
            lambda tx: slots.put(tx, space, write), queue=[queue_of(space, write.session_id)]
        )

    async def put_slots(
        self, space: str, writes: Sequence[SlotWrite], *, atomic: bool = True
    ) -> list[Written | errors.SapwoodError]:
        """Writes up to 1,000 slots: `atomic`, all or none, a refusal naming every bad id; else each on its own.

        In the order given; where one was refused on its own, its error.
        """
        if len(writes) > MAX_IDS:
            raise errors.PayloadTooLarge(f"inputs: at most {MAX_IDS}, got {len(writes)}")
        if not atomic:
            return [await self._attempt(space, write) for write in writes]
        queue = {queue_of(space, write.session_id) for write in writes}
        return list(await self._scope.transact(lambda tx: slots.put_all(tx, space, writes), queue=queue))

    async def _attempt(self, space: str, write: SlotWrite) -> Written | errors.SapwoodError:
        try:
            return await self.put_slot(space, write)
        except errors.SapwoodError as error:
            return error

    async def clear_insight(self, space: str, id: str, version: int | None) -> Written:
        """Clears the insight, only the version named if one is. Raises Conflict when it is another."""
        return await self._scope.transact(
            lambda tx: slots.clear_insight(tx, space, id, version), queue=[queue_of(space, id)]
        )

    async def consume_insight(
        self, space: str, id: str, version: int | None, turn_id: str | None, key: str | None
    ) -> Consumed:
        """Takes the insight and records it in the log, in one transaction; a retry with the key gets the same one."""
        key = None if key is None else text.identifier(key, "idempotencyKey")
        turn_id = None if turn_id is None else text.identifier(turn_id, "turnId")
        return await self._scope.transact(
            lambda tx: slots.consume_insight(tx, space, id, version, turn_id, key), queue=[queue_of(space, id)]
        )


def _clean(selection: SessionFilter) -> SessionFilter:
    wanted = selection.label_contains
    return selection if wanted is None else replace(selection, label_contains=text.clean(wanted))


async def _slots_of(
    queries: Queries, space: str, selection: SessionFilter, rows: Sequence[SessionMeta]
) -> dict[str, Slots]:
    """The slots of a page's sessions. Those of an unfiltered page are one range, which is cheaper than its ids."""
    if not rows:
        return {}
    if selection == SessionFilter():
        between = await queries.slots_between(space, rows[0], rows[-1], MAX_DIGEST_BYTES)
        return {slots.id: slots for slots in between}
    return await queries.slots(space, [meta.id for meta in rows], MAX_DIGEST_BYTES)


def _first_missing(rows: Sequence[SessionMeta], read: dict[str, Slots]) -> int | None:
    """Where the slots end because the page's bytes did. A session deleted meanwhile has none and does not count."""
    last_read = max((place for place, meta in enumerate(rows) if meta.id in read), default=-1)
    return last_read + 1 if last_read + 1 < len(rows) else None
