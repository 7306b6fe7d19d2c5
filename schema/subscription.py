"""What clients are told live."""

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
from storage import errors, events, session_tree
from storage.live import forest_changes as forest_feed
from storage.live import slot_changes as slot_feed
from storage.live import space_events as space_feed
from storage.session import SessionStatus, SlotName


@strawberry.input
class SessionPosition:
    session_id: strawberry.ID
    from_seq: int


@strawberry.type
class ForestSnapshot:
    forest: Forest


@strawberry.type
class ForestDelta:
    upserted: list[TopologyNode]
    removed_ids: list[strawberry.ID]


ForestChange: TypeAlias = Annotated[ForestSnapshot | ForestDelta, strawberry.union("ForestChange")]


@strawberry.type
class SlotChange:
    session_id: strawberry.ID
    name: SlotName
    slot: Slot | None


@strawberry.type
class Subscription:
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
        context = info.context
        source = await context.store.feed.session_events(context.space, session_id, given(from_seq))
        return _published(source, wire_names(types), context)

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
        places: dict[str, int] = {}
        for place in given(positions) or ():
            if places.setdefault(place.session_id, place.from_seq) != place.from_seq:
                raise errors.BadInput(f"positions: {place.session_id} is named twice, with different fromSeq")
        found = await space_feed.space_events(info.context.store.feed, info.context.space, given(root_id), places)
        return _published(found, wire_names(types))

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
        return _forest(
            await forest_feed.forest_changes(
                info.context.store.feed, info.context.space, given(root_id), given(max_depth), given(status)
            )
        )

    @strawberry.subscription(description="The newest version of each slot that changed, none twice.")
    async def slot_changes(
        self,
        info: Info,
        session_id: strawberry.ID | None = UNSET,
        root_id: strawberry.ID | None = UNSET,
        names: list[SlotName] | None = UNSET,
    ) -> AsyncGenerator[SlotChange, None]:
        wanted = given(names)
        return _slots(
            await slot_feed.slot_changes(
                info.context.store.feed,
                info.context.space,
                given(session_id),
                given(root_id),
                set(SlotName if wanted is None else wanted),
            )
        )


async def _published(
    source: AsyncGenerator[events.Event, None], types: list[str] | None, told: Context | None = None
) -> AsyncGenerator[SessionEvent, None]:
    """The events of these types. `told`, of a feed of one session, learns which event is being told."""
    try:
        async for item in source:
            if told is not None:
                told.next_seq = item.seq
            if types is None or item.type in types:
                yield event.from_domain(item)
    finally:
        await source.aclose()


async def _forest(
    source: AsyncGenerator[session_tree.Forest | forest_feed.ForestDelta, None],
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


async def _slots(source: AsyncGenerator[slot_feed.SlotChange, None]) -> AsyncGenerator[SlotChange, None]:
    try:
        async for change in source:
            yield SlotChange(
                session_id=strawberry.ID(change.session_id), name=change.name, slot=Slot.from_domain(change.slot)
            )
    finally:
        await source.aclose()
