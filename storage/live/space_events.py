"""The live events of many sessions: a whole space, or the subtree under one node, whatever moves in or out."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from storage import errors
from storage.database import Head, Queries
from storage.events import Event
from storage.live.feed import FIRST_RETRY_SECONDS, Feed
from storage.live.hub import Pending, Subscription
from storage.session import Segment, SessionMeta
from storage.topology import NodeDocument


async def space_events(
    feed: Feed,
    space: str,
    root_id: str | None = None,
    positions: Iterable[tuple[str, int]] = (),
    types: Collection[str] | None = None,
) -> AsyncGenerator[Event, None]:
    """Own events, of these wire types, of all sessions in scope: each exactly once, in order per session.

    The sessions named in `positions`, (session id, fromSeq), first catch up from there. Ends when the root is deleted.
    Raises NotFound or BadInput at once.
    """
    starts = _starts(positions)
    async with feed.registered(space) as subscription:
        tail = _SpaceTail(feed, subscription, root_id, types)
        return tail.events(await tail.start(starts))


def _starts(positions: Iterable[tuple[str, int]]) -> dict[str, int]:
    starts: dict[str, int] = {}
    for id, from_seq in positions:
        if starts.setdefault(id, from_seq) != from_seq:
            raise errors.BadInput(f"positions: {id} is named twice, with different fromSeq")
    return starts


@dataclass(slots=True)
class _Position:
    """The next seq to read of a session's own log."""

    log: str
    next_seq: int


class _SpaceTail:
    """One reader's position in each session of its scope. Holds no events.

    A session in scope at registration counts from its head then, a later one from its own first event, one that is
    moved in from its head at that time; one that is moved out stops.
    """

    def __init__(
        self, feed: Feed, subscription: Subscription, root_id: str | None, types: Collection[str] | None
    ) -> None:
        self._feed = feed
        self._subscription = subscription
        self._space = subscription.space
        self._root_id = root_id
        self._types = types
        self._positions: dict[str, _Position] = {}
        self._outside: set[str] = set()

    async def start(self, starts: Mapping[str, int]) -> list[str]:
        """Reads the heads to count from. Returns the ids of the sessions that first catch up."""
        heads, inside = await self._feed.database.read(self._heads)
        if inside is not None and self._root_id not in inside:
            raise errors.NotFound(f"rootId: no session {self._root_id!r}")
        for head in heads:
            if inside is None or head.id in inside:
                self._positions[head.id] = _Position(head.log, head.head)
            else:
                self._outside.add(head.id)
        by_id = {head.id: head for head in heads}
        for id, from_seq in starts.items():
            if id not in self._positions:
                raise errors.NotFound(f"positions: no session {id!r} in this scope")
            if not 0 <= from_seq <= by_id[id].head:
                raise errors.BadInput(
                    f"positions: fromSeq of {id} must be 0 to the head {by_id[id].head}, is {from_seq}"
                )
            self._positions[id].next_seq = max(from_seq, by_id[id].own_start)
        return list(starts)

    async def _heads(self, queries: Queries) -> tuple[list[Head], set[str] | None]:
        """The heads of all sessions, and the ids of those under the root, if there is one."""
        inside = None
        if self._root_id is not None:
            inside = {head.id for head in await queries.heads(self._space, self._root_id)}
        return await queries.heads(self._space), inside

    async def events(self, behind: Sequence[str]) -> AsyncGenerator[Event, None]:
        """What the sessions that are behind have stored, then all events from the registration on."""
        try:
            for id in behind:
                async for event in self._drain(id, self._positions[id], None):
                    if self._wants(event):
                        yield event
            while True:
                pending, lost = self._subscription.take()
                if self._subscription.closed:
                    return
                if lost:
                    pending = await self._compare_all(pending)
                for id, change in pending.items():
                    leaves = False
                    if change.session or change.node or id not in self._positions:
                        leaves = await self._update_scope(id, change)
                        if id == self._root_id and id not in self._positions:
                            return
                    if (position := self._positions.get(id)) is not None:
                        async for event in self._drain(id, position, change):
                            if self._wants(event):
                                yield event
                    if leaves:
                        self._leave(id)
                await self._subscription.wait()
        finally:
            self._feed.hub.unsubscribe(self._subscription)

    def _wants(self, event: Event) -> bool:
        return self._types is None or event.type in self._types

    async def _compare_all(self, pending: dict[str, Pending]) -> dict[str, Pending]:
        """Adds each session whose head or scope has changed since this reader last read it."""
        heads, inside = await self._feed.read(self._subscription, self._heads)
        now = {head.id: head for head in heads}
        for id, head in now.items():
            position = self._positions.get(id)
            known = position is not None and position.log == head.log and position.next_seq == head.head
            if inside is not None and (id in inside) == (position is None):
                known = False
            if not known and not (inside is not None and id not in inside and id in self._outside):
                pending.setdefault(id, Pending()).session = True
        for id in self._positions.keys() - now.keys():
            pending.setdefault(id, Pending()).session = True
        return pending

    async def _update_scope(self, id: str, change: Pending) -> bool:
        """Reads whether a session is in scope now and, if it has come in, where to start.

        True if it has left: what was appended before the move, up to `change.last`, is still to be yielded. A session
        that was moved out and back in between two checks is yielded whole: nothing that belongs here may be lost.
        """

        async def query(queries: Queries) -> tuple[SessionMeta | None, NodeDocument | None]:
            return await queries.session(self._space, id), await queries.node(self._space, id)

        meta, node = await self._feed.read(self._subscription, query)
        if meta is None or node is None:
            self._positions.pop(id, None)
            self._outside.discard(id)
            return False
        position = self._positions.get(id)
        stayed = position is not None and position.log == meta.log
        if not self._in_scope(id, node.ancestors):
            if stayed and node.moved_at_head is not None:
                change.last = node.moved_at_head - 1
                return True
            self._leave(id)
            return False
        change.last = max(change.last, meta.head - 1)
        if not stayed:
            was_outside = id in self._outside or not self._in_scope(id, node.moved_from)
            moved_in_at = node.moved_at_head if was_outside else None
            self._outside.discard(id)
            self._positions[id] = _Position(meta.log, max(meta.own_start, moved_in_at or 0))
        return False

    def _in_scope(self, id: str, ancestors: Sequence[str]) -> bool:
        return self._root_id is None or id == self._root_id or self._root_id in ancestors

    def _leave(self, id: str) -> None:
        self._positions.pop(id, None)
        self._outside.add(id)

    async def _drain(self, id: str, position: _Position, change: Pending | None) -> AsyncGenerator[Event, None]:
        """The session's own events from its position to the end of what was reported; without a change, of its log.

        Later events wait for their own notification: before them, the session may have been moved out of the scope.
        """
        segments = (Segment(log=position.log),)
        while change is None or position.next_seq <= change.last:
            events = await self._feed.next_events(self._subscription, segments, position.next_seq)
            if not events:
                if change is None or not await self._is_current(id, position):
                    return
                await asyncio.sleep(FIRST_RETRY_SECONDS)
            for event in events:
                if change is not None and event.seq > change.last:
                    return
                yield event
                position.next_seq = event.seq + 1

    async def _is_current(self, id: str, position: _Position) -> bool:
        meta = await self._feed.read(self._subscription, lambda queries: queries.session(self._space, id))
        return meta is not None and meta.log == position.log
