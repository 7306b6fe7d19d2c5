"""Slot changes, live: the newest version of each slot that changes, none twice."""

from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass

from storage import errors
from storage.database import Queries
from storage.live.feed import Feed
from storage.live.hub import Subscription
from storage.session import Slot, SlotName, Slots, present
from storage.topology import NodeDocument


@dataclass(frozen=True, slots=True)
class SlotChange:
    """A slot's newest state; `slot` is None once it was cleared."""

    session_id: str
    name: SlotName
    slot: Slot | None


async def slot_changes(
    feed: Feed,
    space: str,
    session_id: str | None = None,
    root_id: str | None = None,
    names: Collection[SlotName] | None = None,
) -> AsyncGenerator[SlotChange, None]:
    """The newest version of each slot that changes, in one session, a subtree or the space; default: of all names.

    Ends when the session or the root is deleted. Raises NotFound or BadInput at once.
    """
    if session_id is not None and root_id is not None:
        raise errors.BadInput("sessionId and rootId: give one of them")
    async with feed.registered(space, session_id) as subscription:
        tail = _SlotTail(feed, subscription, root_id, tuple(SlotName) if names is None else names)
        await tail.start()
        return tail.changes()


class _SlotTail:
    """The versions of all slots that one reader knows. Holds no contents."""

    def __init__(
        self, feed: Feed, subscription: Subscription, root_id: str | None, names: Collection[SlotName]
    ) -> None:
        self._feed = feed
        self._subscription = subscription
        self._root_id = root_id
        self._names = frozenset(names)
        self._known: dict[tuple[str, SlotName], tuple[str, int, bool]] = {}

    async def start(self) -> None:
        """Reads the versions that count as known."""
        space, id = self._subscription.space, self._subscription.id

        async def query(queries: Queries) -> list[Slots]:
            for argument, wanted in (("sessionId", id), ("rootId", self._root_id)):
                if wanted is not None and await queries.node(space, wanted) is None:
                    raise errors.NotFound(f"{argument}: no session {wanted!r}")
            return await queries.slot_marks(space, id)

        for slots in await self._feed.database.read(query):
            for name in SlotName:
                self._known[slots.id, name] = _version(slots, name)

    async def changes(self) -> AsyncGenerator[SlotChange, None]:
        """The changes from the registration on."""
        ends_with = self._subscription.id or self._root_id
        try:
            while True:
                await self._subscription.wait()
                pending, lost = self._subscription.take()
                if self._subscription.closed:
                    return
                ids = {id for id, change in pending.items() if change.slots or change.session}
                if lost:
                    ids |= await self._compare_all()
                nodes, slots = await self._read(ids)
                for id in ids:
                    if id in slots and id in nodes:
                        for change in self._new(slots[id], nodes[id]):
                            yield change
                    elif id not in nodes:
                        for name in SlotName:
                            self._known.pop((id, name), None)
                        if id == ends_with:
                            return
        finally:
            self._feed.hub.unsubscribe(self._subscription)

    async def _compare_all(self) -> set[str]:
        """The ids of the sessions with slots that this reader does not know, or that are gone."""
        space, id = self._subscription.space, self._subscription.id
        found = await self._feed.read(self._subscription, lambda queries: queries.slot_marks(space, id))
        existing = {slots.id for slots in found}
        gone = {id for id, _ in self._known if id not in existing}
        return gone | {slots.id for slots in found if any(self._has_changed(slots, name) for name in SlotName)}

    async def _read(self, ids: set[str]) -> tuple[dict[str, NodeDocument], dict[str, Slots]]:
        space = self._subscription.space

        async def query(queries: Queries) -> tuple[dict[str, NodeDocument], dict[str, Slots]]:
            return await queries.nodes(space, ids), await queries.slots(space, ids)

        return await self._feed.read(self._subscription, query) if ids else ({}, {})

    def _new(self, slots: Slots, node: NodeDocument) -> list[SlotChange]:
        changes = []
        for name in SlotName:
            has_changed = self._has_changed(slots, name)
            self._known[slots.id, name] = _version(slots, name)
            if has_changed and name in self._names and self._in_scope(node):
                changes.append(SlotChange(slots.id, name, present(slots.named(name))))
        return changes

    def _has_changed(self, slots: Slots, name: SlotName) -> bool:
        known, now = self._known.get((slots.id, name)), _version(slots, name)
        if known is None or known[0] != now[0]:
            return slots.named(name) is not None
        return known != now

    def _in_scope(self, node: NodeDocument) -> bool:
        return self._root_id is None or node.id == self._root_id or self._root_id in node.ancestors


def _version(slots: Slots, name: SlotName) -> tuple[str, int, bool]:
    """Log, version and whether it is cleared. The log tells a session from a later one that reuses its id."""
    slot = slots.named(name)
    return (slots.log, slot.version, slot.cleared) if slot is not None else (slots.log, 0, False)
