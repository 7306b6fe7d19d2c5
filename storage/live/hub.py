"""Wake-ups within this process: who waits for what, and what has been reported since it last looked.

A subscription holds no events, only which sessions it must look at again; so a slow reader costs nothing.
"""

import asyncio
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass

from storage.database import Notification


@dataclass(slots=True)
class Pending:
    """What was reported of one session since the last look. Its new commits reach to seq `last`."""

    log: bool = False
    session: bool = False
    node: bool = False
    slots: bool = False
    last: int = -1

    def add(self, wake: Notification) -> None:
        """Joins a wake-up."""
        if wake.kind == "log":
            self.log = True
            self.last = max(self.last, wake.last)
        elif wake.kind == "node":
            self.node = True
        elif wake.kind == "slots":
            self.slots = True
        else:
            self.session = True


class Subscription:
    """One reader's place in the hub: of one session, or of a whole space."""

    def __init__(self, space: str, id: str | None) -> None:
        self.space = space
        self.id = id
        self.pending: dict[str, Pending] = {}
        self.lost = False
        self.closed = False
        self.behind_since: float | None = None
        """When the first wake-up came that the reader has not looked at (time.monotonic)."""
        self._event = asyncio.Event()

    def notify(self, wake: Notification) -> None:
        """Notes a wake-up and lets the reader go on."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        if wake.lost:
            self.lost = True
        else:
            self.pending.setdefault(wake.id, Pending()).add(wake)
        self._event.set()

    def close(self) -> None:
        """Lets the reader go on, to its end."""
        self.closed = True
        self._event.set()

    async def wait(self) -> None:
        """Returns once something was reported since `take`."""
        await self._event.wait()

    def take(self) -> tuple[dict[str, Pending], bool]:
        """What is pending, by session, and whether changes may have been lost; forgets both."""
        pending, lost = self.pending, self.lost
        self.pending, self.lost = {}, False
        self.behind_since = None
        if not self.closed:
            self._event.clear()
        return pending, lost


class Hub:
    """All subscriptions of this process. It holds them weakly: one whose reader is gone is gone too."""

    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str | None], weakref.WeakSet[Subscription]] = {}

    @property
    def count(self) -> int:
        """How many subscriptions there are."""
        return sum(len(group) for group in self._subscriptions.values())

    @property
    def lag(self) -> float:
        """Seconds for which the slowest reader has not looked at what it was woken for."""
        waiting = [each.behind_since for group in self._subscriptions.values() for each in group]
        return max((time.monotonic() - since for since in waiting if since is not None), default=0.0)

    def subscribe(self, space: str, id: str | None = None) -> Subscription:
        """Registers a reader of one session, or of all of the space."""
        subscription = Subscription(space, id)
        # Made before the set's own reference, it is called after it, and finds the set without the subscription.
        weakref.finalize(subscription, self._tidy, (space, id)).atexit = False
        self._subscriptions.setdefault((space, id), weakref.WeakSet()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forgets a reader."""
        key = (subscription.space, subscription.id)
        if (group := self._subscriptions.get(key)) is not None:
            group.discard(subscription)
        self._tidy(key)

    def _tidy(self, key: tuple[str, str | None]) -> None:
        if key in self._subscriptions and not self._subscriptions[key]:
            del self._subscriptions[key]

    def listens(self, space: str, id: str) -> bool:
        """Whether anybody waits for this session."""
        return (space, id) in self._subscriptions or (space, None) in self._subscriptions

    def publish(self, wakes: Iterable[Notification]) -> None:
        """Reports wake-ups to those who wait for them."""
        for wake in wakes:
            keys = list(self._subscriptions) if wake.lost else [(wake.space, wake.id), (wake.space, None)]
            for key in keys:
                for subscription in list(self._subscriptions.get(key, ())):
                    subscription.notify(wake)

    def close(self) -> None:
        """Ends all readers."""
        for group in self._subscriptions.values():
            for subscription in group:
                subscription.close()
