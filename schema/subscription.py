"""Subscriptions: what changes, as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, TypeAlias

import strawberry
from strawberry import UNSET

from schema import event
from schema.context import Context, Info
from schema.enums import EventType
from schema.event import SessionEvent
from schema.inputs import given
from schema.session import wire_names
from schema.slot import Slot
from schema.topology import Forest, TopologyNode
from storage import events, session_tree
from storage.live import forest_changes, slot_changes
from storage.session import SessionStatus, SlotName


@strawberry.input
class SessionPosition:
    """Where to start in one session."""

    session_id: strawberry.ID
    from_seq: int


@strawberry.type
class ForestSnapshot:
    """The forest to begin with."""

    forest: Forest


@strawberry.type
class ForestDelta:
    """What has changed in the forest since the item before."""

    upserted: list[TopologyNode]
    removed_ids: list[strawberry.ID]


ForestChange: TypeAlias = Annotated[ForestSnapshot | ForestDelta, strawberry.union("ForestChange")]


@strawberry.type
class SlotChange:
    """A slot's newest state; null once it was cleared."""

    session_id: strawberry.ID
    name: SlotName
    slot: Slot | None


@strawberry.type
class Subscription:
    """The live feeds."""

    @strawberry.subscription(
        description="Every event with seq >= fromSeq, in order, each exactly once: first what is stored, then live.\n"
        "Without fromSeq: only what is appended from now on. Completes when the session is deleted.\n"
        "Resume with the last seq seen + 1."
    )
    async def session_events(
        self,
        info: Info,
        session_id: strawberry.ID,
        from_seq: int | None = UNSET,
        types: list[EventType] | None = UNSET,
    ) -> AsyncGenerator[SessionEvent, None]:
        """Events of one session; the context follows where the feed is."""
        context = info.context
        source = await context.store.live.session_events(context.space, session_id, given(from_seq), wire_names(types))
        return _events(source, context)

    @strawberry.subscription(
        description="Live events of all sessions of the space, or of the subtree under rootId, sessions created later "
        "included.\nOrdered and exactly once per session. Sessions named in `positions` first catch up from there. "
        "Own events only:\nwhat a fork inherits is not sent again."
    )
    async def space_events(
        self,
        info: Info,
        root_id: strawberry.ID | None = UNSET,
        positions: list[SessionPosition] | None = UNSET,
        types: list[EventType] | None = UNSET,
    ) -> AsyncGenerator[SessionEvent, None]:
        """Events of a space or a subtree."""
        starts = [(position.session_id, position.from_seq) for position in given(positions) or ()]
        context = info.context
        return _events(await context.store.live.space_events(context.space, given(root_id), starts, wire_names(types)))

    @strawberry.subscription(
        description="A snapshot, then deltas, at most four a second, each with the latest state of every node that "
        "changed. A node that leaves the filter is removed."
    )
    async def forest_changes(
        self,
        info: Info,
        root_id: strawberry.ID | None = UNSET,
        max_depth: int | None = UNSET,
        status: SessionStatus | None = UNSET,
    ) -> AsyncGenerator[ForestChange, None]:
        """Changes of the forest or a subtree."""
        context = info.context
        return _forest_changes(
            await context.store.live.forest_changes(context.space, given(root_id), given(max_depth), given(status))
        )

    @strawberry.subscription(description="The newest version of each slot that changed, none twice.")
    async def slot_changes(
        self,
        info: Info,
        session_id: strawberry.ID | None = UNSET,
        root_id: strawberry.ID | None = UNSET,
        names: list[SlotName] | None = UNSET,
    ) -> AsyncGenerator[SlotChange, None]:
        """Changes of slots of a session, a subtree or the space."""
        context = info.context
        return _slot_changes(
            await context.store.live.slot_changes(context.space, given(session_id), given(root_id), given(names))
        )


async def _events(
    source: AsyncGenerator[events.Event, None], context: Context | None = None
) -> AsyncGenerator[SessionEvent, None]:
    """Converts events. Sets `resume_seq` of the context, for a feed of one session, to the event being sent."""
    try:
        async for item in source:
            if context is not None:
                context.resume_seq = item.seq
            yield event.from_domain(item)
    finally:
        await source.aclose()


async def _forest_changes(
    source: AsyncGenerator[session_tree.Forest | forest_changes.ForestDelta, None],
) -> AsyncGenerator[ForestChange, None]:
    try:
        async for change in source:
            if isinstance(change, session_tree.Forest):
                yield ForestSnapshot(forest=Forest.from_domain(change))
            else:
                yield ForestDelta(
                    upserted=[TopologyNode.from_domain(node) for node in change.upserted],
                    removed_ids=[strawberry.ID(id) for id in change.removed_ids],
                )
    finally:
        await source.aclose()


async def _slot_changes(source: AsyncGenerator[slot_changes.SlotChange, None]) -> AsyncGenerator[SlotChange, None]:
    try:
        async for change in source:
            yield SlotChange(
                session_id=strawberry.ID(change.session_id), name=change.name, slot=Slot.from_domain(change.slot)
            )
    finally:
        await source.aclose()
