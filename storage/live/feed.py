"""The live feed: wake-ups of this and other processes, and one session's gapless tail.

A subscriber is registered first and reads then, holds only its next seq, and reads from the shared buffer as long
as that goes on without a gap, else from the database. While the database is away it waits.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from storage import errors
from storage.database import LOST, Database, Notification, Queries
from storage.events import Event
from storage.live.hub import Hub, Subscription
from storage.log import reading
from storage.log.buffer import CommitBuffer
from storage.log.commit import Commit
from storage.session import Segment, SessionMeta

T = TypeVar("T")
logger = logging.getLogger("sapwood.feed")

AT_ONCE = 100
BYTES_AT_ONCE = 128 * 1024
"""How much a subscriber that is behind holds at a time: it keeps that for as long as its client does not read."""
BEYOND = 2**31
"""A seq beyond any head."""
FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 2.0
CONNECT_SECONDS = 5.0
"""How long a new subscription waits for a database that is away."""


class Feed:
    """All live reading of one process."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.hub = Hub()
        self.buffer = CommitBuffer()
        self._loading: dict[tuple[str, int], asyncio.Task[Any]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        database.watch(self._committed)

    @contextlib.asynccontextmanager
    async def registered(self, space: str, id: str | None = None) -> AsyncGenerator[Subscription, None]:
        """Registers a reader, once the changes of other processes are being followed.

        Forgets it again if what comes before its first read is refused. Raises Unavailable.
        """
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        try:
            # Not wait_for: it loses a cancellation that comes just when what it waits for is there.
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._connected.wait()
        except TimeoutError as error:
            raise errors.Unavailable("the database's changes can't be followed now; try again") from error
        subscription = self.hub.subscribe(space, id)
        try:
            yield subscription
        except BaseException:
            self.hub.unsubscribe(subscription)
            raise

    @property
    def alive(self) -> bool:
        """Whether the changes of other processes are being followed, or nobody has asked for them yet."""
        return self._listening is None or self._connected.is_set()

    async def close(self) -> None:
        """Ends all subscriptions."""
        self.hub.close()
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening

    async def session_events(self, space: str, id: str, from_seq: int | None = None) -> AsyncGenerator[Event, None]:
        """Each event with seq >= from_seq (default: the head now) once and in order, first stored, then live.

        Ends when the session is deleted. Raises NotFound or BadInput at once.
        """
        async with self.registered(space, id) as subscription:
            meta = await self.database.read(lambda queries: queries.session(space, id))
            if meta is None:
                raise errors.NotFound(f"sessionId: no session {id!r}")
            start = check_from_seq(meta, from_seq, "fromSeq")
            return self._tail(subscription, meta, start)

    async def _tail(self, subscription: Subscription, meta: SessionMeta, seq: int) -> AsyncGenerator[Event, None]:
        target = meta.head - 1
        try:
            while True:
                pending, lost = subscription.take()
                change = pending.get(meta.id)
                if subscription.closed:
                    return
                if lost or (change is not None and change.session):
                    now = await self.read(subscription, lambda queries: queries.session(meta.space, meta.id))
                    if now is None or now.log != meta.log:
                        return
                    target = max(target, now.head - 1)
                if change is not None:
                    target = max(target, change.last)
                while seq <= target:
                    events = await self.next_events(subscription, meta.segments, seq)
                    if not events:
                        break
                    for event in events:
                        yield event
                        seq = event.seq + 1
                if seq <= target:
                    if not await self._exists(subscription, meta):
                        return
                    await asyncio.sleep(FIRST_RETRY_SECONDS)
                    continue
                await subscription.wait()
        finally:
            self.hub.unsubscribe(subscription)

    async def _exists(self, subscription: Subscription, meta: SessionMeta) -> bool:
        now = await self.read(subscription, lambda queries: queries.session(meta.space, meta.id))
        return now is not None and now.log == meta.log

    async def next_events(self, subscription: Subscription, segments: Sequence[Segment], seq: int) -> Sequence[Event]:
        """Some events from `seq` on; empty where the log ends."""
        own = segments[-1]
        if seq >= own.start and (held := self.buffer.after(own.log, seq)):
            return held
        found = await self.read(subscription, lambda queries: self._load(queries, segments, seq), shared=(own.log, seq))
        # A read that was joined may have begun before the commit that this reader was woken for.
        return found or await self.read(subscription, lambda queries: self._load(queries, segments, seq))

    async def _load(self, queries: Queries, segments: Sequence[Segment], seq: int) -> list[Event]:
        found = await reading.read(queries, segments, seq, BEYOND, AT_ONCE, max_bytes=BYTES_AT_ONCE)
        return found.events

    async def read(
        self,
        subscription: Subscription,
        query: Callable[[Queries], Awaitable[T]],
        shared: tuple[str, int] | None = None,
    ) -> T:
        """Reads, waiting as long as the database is out of reach. A `shared` read that is under way is joined."""
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                return await (self.database.read(query) if shared is None else self._joined(query, shared))
            except errors.Unavailable:
                if subscription.closed:
                    raise
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_RETRY_SECONDS)

    async def _joined(self, query: Callable[[Queries], Awaitable[T]], key: tuple[str, int]) -> T:
        task = self._loading.get(key)
        if task is None:
            task = asyncio.ensure_future(self.database.read(query))
            self._loading[key] = task
            task.add_done_callback(lambda _: self._loading.pop(key, None))
        result: T = await asyncio.shield(task)
        return result

    def _committed(self, wakes: Sequence[Notification], commits: Sequence[Commit]) -> None:
        for commit in commits:
            if self.hub.listens(commit.space, commit.session):
                self.buffer.add(commit)
        self.hub.publish(wakes)

    async def _listen(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                async for wakes in self.database.changes():
                    if not self._connected.is_set():
                        # What was committed before the stream was open again went unnoticed.
                        self.hub.publish([LOST])
                        self._connected.set()
                        delay = FIRST_RETRY_SECONDS
                    self.hub.publish(wakes)
            except errors.Unavailable as error:
                logger.warning("changes of other processes can't be followed now: %s", error)
            except Exception:
                # Whatever it was, without this task no subscriber hears of other processes any more.
                logger.exception("following the changes of other processes failed")
            self._connected.clear()
            await asyncio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY_SECONDS)


def check_from_seq(meta: SessionMeta, from_seq: int | None, name: str) -> int:
    """Where to start. Raises BadInput for a seq that is negative or beyond the head."""
    if from_seq is None:
        return meta.head
    if not 0 <= from_seq <= meta.head:
        raise errors.BadInput(f"{name}: must be 0 to the head {meta.head}, is {from_seq}")
    return from_seq
