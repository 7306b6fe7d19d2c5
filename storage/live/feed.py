"""What all live feeds share: registering, following the changes of other processes, and reading.

A reader is registered first and reads then. It holds only its next seq, and reads from the cache of recent commits as
long as that goes on without a gap, else from the database. While the database is away it waits.
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
from storage.log.commit import Commit
from storage.log.recent import RecentCommits
from storage.session import Segment

T = TypeVar("T")
logger = logging.getLogger("sapwood.feed")

READ_EVENTS = 100
READ_BYTES = 128 * 1024
"""How much a reader that is behind reads at once, and holds for as long as its client does not read."""
BEYOND = 2**31
"""A seq beyond any head."""
FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 2.0
CONNECT_SECONDS = 5.0
"""How long a new subscription waits for a database that is away."""


class Feed:
    """Notifications and reads for the live readers of one process."""

    def __init__(self, database: Database, recent: RecentCommits) -> None:
        self.database = database
        self.hub = Hub()
        self.recent = recent
        self._loading: dict[tuple[str, int], asyncio.Task[Any]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        database.watch(self._committed)

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

    @contextlib.asynccontextmanager
    async def registered(self, space: str, id: str | None = None) -> AsyncGenerator[Subscription, None]:
        """Registers a reader of a session or a space, once the changes of other processes are being followed.

        Removes it again if the block raises. Raises Unavailable.
        """
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        try:
            # Not wait_for, which loses a cancellation that arrives together with what it waits for.
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

    async def next_events(self, subscription: Subscription, segments: Sequence[Segment], seq: int) -> Sequence[Event]:
        """Some events from `seq` on; empty at the end of the log."""
        own = segments[-1]
        if seq >= own.start and (cached := self.recent.after(own.log, seq)):
            return cached

        async def query(queries: Queries) -> list[Event]:
            found = await reading.read(queries, segments, seq, BEYOND, READ_EVENTS, max_bytes=READ_BYTES)
            return found.events

        # A shared read may have begun before the commit that this reader was notified of.
        return await self.read(subscription, query, shared=(own.log, seq)) or await self.read(subscription, query)

    async def read(
        self,
        subscription: Subscription,
        query: Callable[[Queries], Awaitable[T]],
        shared: tuple[str, int] | None = None,
    ) -> T:
        """Runs a query, waiting while the database is out of reach. Readers with equal `shared` share one read."""
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                return await (self.database.read(query) if shared is None else self._shared(query, shared))
            except errors.Unavailable:
                if subscription.closed:
                    raise
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_RETRY_SECONDS)

    async def _shared(self, query: Callable[[Queries], Awaitable[T]], key: tuple[str, int]) -> T:
        task = self._loading.get(key)
        if task is None:
            task = asyncio.ensure_future(self.database.read(query))
            self._loading[key] = task
            task.add_done_callback(lambda _: self._loading.pop(key, None))
        result: T = await asyncio.shield(task)
        return result

    def _committed(self, notifications: Sequence[Notification], commits: Sequence[Commit]) -> None:
        """Handles this process's own commits, which are durable."""
        for commit in commits:
            self.recent.add(commit)
        self.hub.publish(notifications)

    async def _listen(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                async for notifications in self.database.changes():
                    if not self._connected.is_set():
                        # What was committed before the stream was open again went unnoticed.
                        self.hub.publish([LOST])
                        self._connected.set()
                        delay = FIRST_RETRY_SECONDS
                    self.hub.publish(notifications)
            except errors.Unavailable as error:
                logger.warning("changes of other processes can't be followed now: %s", error)
            except Exception:
                # Whatever went wrong, readers depend on this task to learn of other processes' commits.
                logger.exception("following the changes of other processes failed")
            self._connected.clear()
            await asyncio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY_SECONDS)
