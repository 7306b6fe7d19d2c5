"""The live events of many sessions: a whole space, or the subtree under one node, whatever moves in or out."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

from storage import errors
from storage.database import Head, Queries
from storage.events import Event
from storage.live.feed import FIRST_RETRY_SECONDS, Feed
from storage.live.hub import Pending, Subscription
from storage.session import Segment, SessionMeta
from storage.topology import NodeDocument


@dataclass(slots=True)
class _Place:
    log: str
    next: int


class SpaceTail:
    """Where a reader is in each session of its scope. Holds no events.

    A session in scope at registration counts from its head then, a later one from its own first event, one that is
    moved in from its head at that time; one that is moved out stops.
    """

    def __init__(self, feed: Feed, subscription: Subscription, root_id: str | None) -> None:
        self._feed = feed
        self._subscription = subscription
        self._space = subscription.space
        self._root_id = root_id
        self._places: dict[str, _Place] = {}
        self._outside: set[str] = set()
        self._behind: list[str] = []

    async def register(self, positions: Mapping[str, int]) -> None:
        """Takes the heads from which to count. Raises NotFound or BadInput for bad positions or an unknown root."""
        heads, inside = await self._feed.database.read(self._snapshot)
        if inside is not None and self._root_id not in inside:
            raise errors.NotFound(f"rootId: no session {self._root_id!r}")
        for head in heads:
            if inside is None or head.id in inside:
                self._places[head.id] = _Place(head.log, head.head)
            else:
                self._outside.add(head.id)
        by_id = {head.id: head for head in heads}
        for id, from_seq in positions.items():
            if id not in self._places:
                raise errors.NotFound(f"positions: no session {id!r} in this scope")
            if not 0 <= from_seq <= by_id[id].head:
                raise errors.BadInput(
                    f"positions: fromSeq of {id} must be 0 to the head {by_id[id].head}, is {from_seq}"
                )
            self._places[id].next = max(from_seq, by_id[id].own_start)
            self._behind.append(id)

    async def _snapshot(self, queries: Queries) -> tuple[list[Head], set[str] | None]:
        inside = None
        if self._root_id is not None:
            inside = {head.id for head in await queries.heads(self._space, self._root_id)}
        return await queries.heads(self._space), inside

    async def events(self) -> AsyncGenerator[Event, None]:
        """Everything from the registration on. Ends when the root is deleted."""
        try:
            for id in self._behind:
                async for event in self._drain(id, self._places[id], None):
                    yield event
            while True:
                pending, lost = self._subscription.take()
                if self._subscription.closed:
                    return
                if lost:
                    pending = await self._all_changed(pending)
                for id, change in pending.items():
                    leaves = False
                    if change.session or change.node or id not in self._places:
                        leaves = await self._place(id, change)
                        if id == self._root_id and id not in self._places:
                            return
                    if (place := self._places.get(id)) is not None:
                        async for event in self._drain(id, place, change):
                            if leaves and event.seq > change.last:
                                break
                            yield event
                    if leaves:
                        self._leave(id)
                await self._subscription.wait()
        finally:
            self._feed.hub.unsubscribe(self._subscription)

    async def _all_changed(self, pending: dict[str, Pending]) -> dict[str, Pending]:
        """Pending marks for each session whose head or scope is not as this reader last knew it."""
        heads, inside = await self._feed.read(self._subscription, self._snapshot)
        now = {head.id: head for head in heads}
        for id, head in now.items():
            place = self._places.get(id)
            known = place is not None and place.log == head.log and place.next == head.head
            if inside is not None and (id in inside) == (place is None):
                known = False
            if not known and not (inside is not None and id not in inside and id in self._outside):
                pending.setdefault(id, Pending()).session = True
        for id in self._places.keys() - now.keys():
            pending.setdefault(id, Pending()).session = True
        return pending

    async def _place(self, id: str, change: Pending) -> bool:
        """Looks again whether a session is in scope and, if it has come in, where to start.

        True if it has left: what was appended before the move is still to be told. A session that was moved out and
        back in between two looks is told whole: nothing that belongs here may be lost.
        """

        async def query(queries: Queries) -> tuple[SessionMeta | None, NodeDocument | None]:
            return await queries.session(self._space, id), await queries.node(self._space, id)

        meta, node = await self._feed.read(self._subscription, query)
        if meta is None or node is None:
            self._places.pop(id, None)
            self._outside.discard(id)
            return False
        place = self._places.get(id)
        stayed = place is not None and place.log == meta.log
        if not self._in_scope(id, node.ancestors):
            if stayed and node.moved_at_head is not None:
                change.last = node.moved_at_head - 1
                return True
            self._leave(id)
            return False
        change.last = max(change.last, meta.head - 1)
        if not stayed:
            came = node.moved_at_head if id in self._outside or not self._in_scope(id, node.moved_from) else None
            self._outside.discard(id)
            self._places[id] = _Place(meta.log, max(meta.own_start, came or 0))
        return False

    def _in_scope(self, id: str, ancestors: Sequence[str]) -> bool:
        return self._root_id is None or id == self._root_id or self._root_id in ancestors

    def _leave(self, id: str) -> None:
        self._places.pop(id, None)
        self._outside.add(id)

    async def _drain(self, id: str, place: _Place, change: Pending | None) -> AsyncGenerator[Event, None]:
        """The session's own events from its place on, to the end of what was reported."""
        segments = (Segment(log=place.log),)
        while change is None or place.next <= change.last:
            events = await self._feed.next_events(self._subscription, segments, place.next)
            if not events:
                if change is None or not await self._is_current(id, place):
                    return
                await asyncio.sleep(FIRST_RETRY_SECONDS)
            for event in events:
                yield event
                place.next = event.seq + 1

    async def _is_current(self, id: str, place: _Place) -> bool:
        meta = await self._feed.read(self._subscription, lambda queries: queries.session(self._space, id))
        return meta is not None and meta.log == place.log


async def space_events(
    feed: Feed, space: str, root_id: str | None, positions: Mapping[str, int]
) -> AsyncGenerator[Event, None]:
    """Own events of all sessions in scope, each once and in order per session; `positions` first catch up.

    Raises NotFound or BadInput at once.
    """
    async with feed.registered(space) as subscription:
        tail = SpaceTail(feed, subscription, root_id)
        await tail.register(positions)
        return tail.events()
