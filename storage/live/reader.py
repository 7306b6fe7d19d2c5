"""All live feeds of a store."""

from collections.abc import AsyncGenerator, Collection, Iterable

from storage.events import Event
from storage.live.feed import Feed
from storage.live.forest_changes import ForestDelta, forest_changes
from storage.live.session_events import session_events
from storage.live.slot_changes import SlotChange, slot_changes
from storage.live.space_events import space_events
from storage.session import SessionStatus, SlotName
from storage.session_tree import Forest


class LiveReader(Feed):
    """Opens live feeds.

    A refusal is raised at once, not at the first item: NotFound for unknown sessions, BadInput for bad arguments,
    Unavailable while the database's changes can't be followed.
    """

    async def session_events(
        self, space: str, id: str, from_seq: int | None = None, types: Collection[str] | None = None
    ) -> AsyncGenerator[Event, None]:
        """Each event of a session with seq >= from_seq, as `storage.live.session_events.session_events`."""
        return await session_events(self, space, id, from_seq, types)

    async def space_events(
        self,
        space: str,
        root_id: str | None = None,
        positions: Iterable[tuple[str, int]] = (),
        types: Collection[str] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Own events of all sessions in scope, as `storage.live.space_events.space_events`."""
        return await space_events(self, space, root_id, positions, types)

    async def slot_changes(
        self,
        space: str,
        session_id: str | None = None,
        root_id: str | None = None,
        names: Collection[SlotName] | None = None,
    ) -> AsyncGenerator[SlotChange, None]:
        """The newest version of each slot that changes, as `storage.live.slot_changes.slot_changes`."""
        return await slot_changes(self, space, session_id, root_id, names)

    async def forest_changes(
        self,
        space: str,
        root_id: str | None = None,
        max_depth: int | None = None,
        status: SessionStatus | None = None,
    ) -> AsyncGenerator[Forest | ForestDelta, None]:
        """A snapshot of the forest, then deltas, as `storage.live.forest_changes.forest_changes`."""
        return await forest_changes(self, space, root_id, max_depth, status)
