"""The live events of one session: first what is stored, then what is appended, without a gap."""

import asyncio
from collections.abc import AsyncGenerator, Collection

from storage import errors
from storage.events import Event
from storage.live.feed import FIRST_RETRY_SECONDS, Feed
from storage.live.hub import Subscription
from storage.session import SessionMeta


async def session_events(
    feed: Feed, space: str, id: str, from_seq: int | None = None, types: Collection[str] | None = None
) -> AsyncGenerator[Event, None]:
    """Each event with seq >= from_seq (default: the head now), in order and exactly once, of these wire types.

    Ends when the session is deleted. Raises NotFound or BadInput at once.
    """
    async with feed.registered(space, id) as subscription:
        tail = _SessionTail(feed, subscription, types)
        return tail.events(*await tail.start(id, from_seq))


class _SessionTail:
    """One reader of a session."""

    def __init__(self, feed: Feed, subscription: Subscription, types: Collection[str] | None) -> None:
        self._feed = feed
        self._subscription = subscription
        self._types = types

    async def start(self, id: str, from_seq: int | None) -> tuple[SessionMeta, int]:
        """The session as it is now, and the seq to start from."""
        meta = await self._feed.database.read(lambda queries: queries.session(self._subscription.space, id))
        if meta is None:
            raise errors.NotFound(f"sessionId: no session {id!r}")
        if from_seq is None:
            return meta, meta.head
        if not 0 <= from_seq <= meta.head:
            raise errors.BadInput(f"fromSeq: must be 0 to the head {meta.head}, is {from_seq}")
        return meta, from_seq

    async def events(self, meta: SessionMeta, seq: int) -> AsyncGenerator[Event, None]:
        """The events from `seq` on. Ends when the session is deleted."""
        target = meta.head - 1
        try:
            while True:
                pending, lost = self._subscription.take()
                change = pending.get(meta.id)
                if self._subscription.closed:
                    return
                if lost or (change is not None and change.session):
                    now = await self._current(meta)
                    if now is None:
                        return
                    target = max(target, now.head - 1)
                if change is not None:
                    target = max(target, change.last)
                while seq <= target:
                    events = await self._feed.next_events(self._subscription, meta.segments, seq)
                    if not events:
                        break
                    for event in events:
                        if self._types is None or event.type in self._types:
                            yield event
                        seq = event.seq + 1
                if seq <= target:
                    if await self._current(meta) is None:
                        return
                    await asyncio.sleep(FIRST_RETRY_SECONDS)
                    continue
                await self._subscription.wait()
        finally:
            self._feed.hub.unsubscribe(self._subscription)

    async def _current(self, meta: SessionMeta) -> SessionMeta | None:
        """The session as it is now; None if it was deleted, even if its id was used again."""
        now = await self._feed.read(self._subscription, lambda queries: queries.session(meta.space, meta.id))
        return now if now is not None and now.log == meta.log else None
