"""Writing the context slots of a session: system prompt, insight and memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from storage import errors
from storage.database import Transaction
from storage.events import InsightDelivered
from storage.log import append
from storage.log.admission import Admission, visible_turns
from storage.log.commit import Commit, read_commit
from storage.session import MAX_SLOT_BYTES, SessionMeta, Slot, SlotName, Slots, present


class InsightMode(StrEnum):
    """Whether an insight replaces a pending one or is appended to it."""

    REPLACE = "REPLACE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class SlotWrite:
    """One write. `at_seq` is the head that the content reflects (default: the current one).

    `if_version` is the expected version; 0 means never written.
    """

    session_id: str
    name: SlotName
    content: str
    mode: InsightMode = InsightMode.REPLACE
    if_version: int | None = None
    at_seq: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenSlot:
    """A slot after an operation, and its session."""

    slot: Slot | None
    session: SessionMeta


@dataclass(frozen=True, slots=True)
class ConsumedInsight:
    """The insight taken (None: the inbox was empty), the commit that records it, and the session."""

    insight: Slot | None
    commit: Commit | None
    session: SessionMeta

    @property
    def event(self) -> InsightDelivered | None:
        """The event that records the delivery."""
        if self.commit is None:
            return None
        event = read_commit(self.commit)[0]
        assert isinstance(event, InsightDelivered)
        return event


def check_size(content: str, path: str) -> None:
    """Raises PayloadTooLarge for more than 1 MiB of UTF-8."""
    size = len(content.encode("utf-8", "replace"))
    if size > MAX_SLOT_BYTES:
        raise errors.PayloadTooLarge(f"{path}: takes {MAX_SLOT_BYTES} bytes, this has {size}")


def after_write(slot: Slot | None, write: SlotWrite, meta: SessionMeta) -> Slot:
    """The slot after a write to it. Raises Archived, Conflict, BadInput or PayloadTooLarge."""
    append.check_writable(meta)
    version = slot.version if slot is not None else 0
    if write.if_version is not None and write.if_version != version:
        raise errors.Conflict(f"ifVersion: the version is {version}, not {write.if_version}", version=version)
    at_seq = meta.head if write.at_seq is None else write.at_seq
    if not 0 <= at_seq <= meta.head:
        raise errors.BadInput(f"atSeq: must be 0 to the head {meta.head}, is {at_seq}")
    content = write.content
    pending = present(slot)
    if write.mode is InsightMode.APPEND and pending is not None:
        content = f"{pending.content}\n\n{content}"
    check_size(content, "content")
    return Slot(content=content, version=version + 1, updated_at=0, at_seq=at_seq)


async def put(tx: Transaction, space: str, write: SlotWrite) -> WrittenSlot:
    """Writes one slot. Raises NotFound, Archived, Conflict, BadInput or PayloadTooLarge."""
    meta, slots = await load(tx, space, write.session_id)
    slots, meta = await store(tx, meta, slots, write)
    return WrittenSlot(slots.named(write.name), meta)


async def load(tx: Transaction, space: str, id: str) -> tuple[SessionMeta, Slots]:
    """A session and its slots. Raises NotFound."""
    meta = await tx.session(space, id)
    if meta is None:
        raise errors.no_session("sessionId", id)
    return meta, (await tx.slots(space, [id])).get(id) or empty(meta)


def empty(meta: SessionMeta) -> Slots:
    """The slots of a session before any write."""
    return Slots(space=meta.space, id=meta.id, log=meta.log, created_at=meta.created_at)


async def store(tx: Transaction, meta: SessionMeta, slots: Slots, write: SlotWrite) -> tuple[Slots, SessionMeta]:
    """Stores a write in the slots and the session document."""
    slot = after_write(slots.named(write.name), write, meta)
    changes: dict[str, Any] = {}
    if write.name is SlotName.MEMORY:
        changes = {"memory_at_seq": slot.at_seq, "behind": meta.head > slot.at_seq}
    slots = await tx.change_slots(slots, {write.name.value.lower(): slot})
    return slots, await tx.change_session(meta, changes)


async def put_all(tx: Transaction, space: str, writes: Sequence[SlotWrite]) -> list[WrittenSlot]:
    """Writes many slots, all or none. Raises an error of the first refusal's type that names every refused id."""
    ids = {write.session_id for write in writes}
    metas = await tx.sessions(space, ids)
    slots = await tx.slots(space, ids)
    results: list[WrittenSlot] = []
    refused: list[tuple[str, errors.SapwoodError]] = []
    for write in writes:
        meta = metas.get(write.session_id)
        try:
            if meta is None:
                raise errors.NotFound("no such session")
            current = slots.get(meta.id) or empty(meta)
            slots[meta.id], metas[meta.id] = await store(tx, meta, current, write)
        except errors.SapwoodError as error:
            refused.append((write.session_id, error))
        else:
            results.append(WrittenSlot(slots[meta.id].named(write.name), metas[meta.id]))
    if refused:
        named = "; ".join(f"{id}: {error.message}" for id, error in refused)
        rows = [{"sessionId": id, "code": error.code, "message": error.message} for id, error in refused]
        raise type(refused[0][1])(f"inputs: nothing written, {len(refused)} refused: {named}", refusals=rows)
    return results


async def clear_insight(tx: Transaction, space: str, id: str, version: int | None) -> WrittenSlot:
    """Clears the insight. Raises Conflict if `version` is given and not the current one."""
    meta, slots = await load(tx, space, id)
    append.check_writable(meta)
    _check_version(slots.insight, version)
    if present(slots.insight) is None:
        return WrittenSlot(None, meta)
    await _clear(tx, slots)
    return WrittenSlot(None, await tx.change_session(meta, {}))


def _check_version(slot: Slot | None, version: int | None) -> None:
    current = slot.version if slot is not None else 0
    if version is not None and version != current:
        raise errors.Conflict(f"version: the insight's version is {current}, not {version}", version=current)


async def _clear(tx: Transaction, slots: Slots) -> None:
    if slots.insight is not None:
        await tx.change_slots(slots, {"insight": slots.insight.model_copy(update={"content": None, "cleared": True})})


async def consume_insight(
    tx: Transaction, space: str, id: str, version: int | None, turn_id: str | None, key: str | None
) -> ConsumedInsight:
    """Takes the insight and records it as an insight/delivered event. A repeated key gets the same insight again."""
    meta, slots = await load(tx, space, id)
    digest = append.digest_of("consume", [version, turn_id])
    if key is not None and (repeated := await append.repeat_of(tx, meta, key, digest)) is not None:
        return ConsumedInsight(repeated.insight, repeated, meta)
    append.check_writable(meta)
    _check_version(slots.insight, version)
    insight = present(slots.insight)
    if insight is None or insight.content is None:
        return ConsumedInsight(None, None, meta)
    draft = InsightDelivered(content=insight.content, version=insight.version, turn_id=turn_id)
    admission = Admission(meta.state, await visible_turns(tx, meta, [draft]), append.now())
    event = admission.admit(draft, "consumeInsight")
    commit = append.build_commit(meta, [event], admission, key=key, digest=digest).model_copy(
        update={"insight": insight}
    )
    await append.record(tx, meta, commit)
    await _clear(tx, slots)
    changes = {"head": commit.last + 1, "open": commit.open, "totals": commit.totals, "behind": True}
    return ConsumedInsight(insight, commit, await tx.change_session(meta, changes, appended=True))
