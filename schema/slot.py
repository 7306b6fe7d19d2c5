"""Slots, and the mutations that write and clear them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import strawberry
from strawberry import UNSET

from schema import event
from schema.context import Info
from schema.event import InsightDelivered
from schema.inputs import given
from schema.scalars import DateTime
from storage import errors, session
from storage.session import SlotName
from storage.session_storage import SessionStorage
from storage.slots import InsightMode, SlotWrite, WrittenSlot

if TYPE_CHECKING:
    from schema.session import Session

LazySession = Annotated["Session", strawberry.lazy("schema.session")]


@strawberry.type(description="Versions count up from 1 and never restart, not even after a clear.")
class Slot:
    """The content of a slot."""

    content: str
    version: int
    updated_at: DateTime
    at_seq: int = strawberry.field(description="The session's head that the content reflects.")

    @classmethod
    def from_domain(cls, slot: session.Slot | None) -> Slot | None:
        """Convert a slot; null when it was never written or was cleared."""
        if slot is None or slot.content is None:
            return None
        return cls(content=slot.content, version=slot.version, updated_at=DateTime(slot.updated_at), at_seq=slot.at_seq)


@strawberry.input
class InsightInput:
    """An insight to write."""

    session_id: strawberry.ID
    content: str
    mode: InsightMode = InsightMode.REPLACE
    if_version: int | None = UNSET

    def to_domain(self) -> SlotWrite:
        """Convert to a write."""
        return SlotWrite(self.session_id, SlotName.INSIGHT, self.content, self.mode, given(self.if_version))


@strawberry.input
class MemoryInput:
    """A memory to write."""

    session_id: strawberry.ID
    content: str
    at_seq: int | None = strawberry.field(
        default=UNSET, description="The head that it reflects. Default: the head now."
    )
    if_version: int | None = UNSET

    def to_domain(self) -> SlotWrite:
        """Convert to a write."""
        return SlotWrite(
            self.session_id,
            SlotName.MEMORY,
            self.content,
            if_version=given(self.if_version),
            at_seq=given(self.at_seq),
        )


@strawberry.type
class SlotPayload:
    """A slot after a mutation, and its session."""

    session_id: strawberry.ID
    slot: Slot | None
    session: LazySession

    @classmethod
    def from_domain(cls, written: WrittenSlot) -> SlotPayload:
        """Convert a written slot and its session."""
        from schema.session import Session

        return cls(
            session_id=strawberry.ID(written.session.id),
            slot=Slot.from_domain(written.slot),
            session=Session.from_domain(written.session),
        )


@strawberry.type
class SlotResult:
    """One write's slot, or why it was refused."""

    session_id: strawberry.ID
    slot: Slot | None = None
    code: str | None = None
    message: str | None = None


@strawberry.type
class SlotsPayload:
    """The results of many writes, in their order."""

    results: list[SlotResult]


@strawberry.type
class ConsumeInsightPayload:
    """The insight that was taken."""

    insight: Slot | None = strawberry.field(description="null when the inbox was empty.")
    event: InsightDelivered | None = strawberry.field(description="The insight/delivered event that records it.")
    session: LazySession


@strawberry.type
class SlotMutation:
    """Mutations of slots."""

    @strawberry.mutation(description="`ifVersion` 0: only if never written. CONFLICT carries the version.")
    async def put_system_prompt(
        self, info: Info, session_id: strawberry.ID, content: str, if_version: int | None = UNSET
    ) -> SlotPayload:
        """Write the system prompt."""
        write = SlotWrite(session_id, SlotName.SYSTEM_PROMPT, content, if_version=given(if_version))
        return SlotPayload.from_domain(await _sessions(info).put_slot(info.context.space, write))

    @strawberry.mutation
    async def put_memory(self, info: Info, input: MemoryInput) -> SlotPayload:
        """Write the memory."""
        return SlotPayload.from_domain(await _sessions(info).put_slot(info.context.space, input.to_domain()))

    @strawberry.mutation
    async def put_insight(self, info: Info, input: InsightInput) -> SlotPayload:
        """Write the insight."""
        return SlotPayload.from_domain(await _sessions(info).put_slot(info.context.space, input.to_domain()))

    @strawberry.mutation(
        description="At most 1,000. atomic: all or none, the refusal naming every bad id; "
        "else each on its own, with its code."
    )
    async def put_memories(self, info: Info, inputs: list[MemoryInput], atomic: bool = True) -> SlotsPayload:
        """Write the memories of many sessions."""
        return await _put_all(info, [item.to_domain() for item in inputs], atomic)

    @strawberry.mutation(
        description="At most 1,000. atomic: all or none, the refusal naming every bad id; "
        "else each on its own, with its code."
    )
    async def put_insights(self, info: Info, inputs: list[InsightInput], atomic: bool = True) -> SlotsPayload:
        """Write the insights of many sessions."""
        return await _put_all(info, [item.to_domain() for item in inputs], atomic)

    @strawberry.mutation(description="Clears only the version named, so that a newer insight survives.")
    async def clear_insight(self, info: Info, session_id: strawberry.ID, version: int | None = UNSET) -> SlotPayload:
        """Clear the insight."""
        cleared = await _sessions(info).clear_insight(info.context.space, session_id, given(version))
        return SlotPayload.from_domain(cleared)

    @strawberry.mutation(
        description="Takes the insight (only the version named, if one is) and records it as an insight/delivered "
        "event, in one transaction. A retry with the same key returns the same insight."
    )
    async def consume_insight(
        self,
        info: Info,
        session_id: strawberry.ID,
        version: int | None = UNSET,
        turn_id: strawberry.ID | None = UNSET,
        idempotency_key: str | None = UNSET,
    ) -> ConsumeInsightPayload:
        """Take the insight and record its delivery."""
        from schema.session import Session

        consumed = await _sessions(info).consume_insight(
            info.context.space, session_id, given(version), given(turn_id), given(idempotency_key)
        )
        recorded = None if consumed.event is None else cast(InsightDelivered, event.from_domain(consumed.event))
        return ConsumeInsightPayload(
            insight=Slot.from_domain(consumed.insight), event=recorded, session=Session.from_domain(consumed.session)
        )


def _sessions(info: Info) -> SessionStorage:
    return info.context.store.sessions


async def _put_all(info: Info, writes: Sequence[SlotWrite], atomic: bool) -> SlotsPayload:
    results = await _sessions(info).put_slots(info.context.space, writes, atomic=atomic)
    return SlotsPayload(results=[_result(write, result) for write, result in zip(writes, results, strict=True)])


def _result(write: SlotWrite, result: WrittenSlot | errors.SapwoodError) -> SlotResult:
    id = strawberry.ID(write.session_id)
    if isinstance(result, errors.SapwoodError):
        return SlotResult(session_id=id, code=result.code, message=result.message)
    return SlotResult(session_id=id, slot=Slot.from_domain(result.slot))
