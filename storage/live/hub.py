"""Notifications within this process: who waits for what, and what was reported to each since it last checked.

A subscription holds no events, only which sessions to read again; so a slow reader costs nothing.
"""

import asyncio
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass

from storage.database import Notification


@dataclass(slots=True)
class Pending:
    """What was reported of one session since the reader last checked. Its new commits reach to seq `last`."""

    log: bool = False
    session: bool = False
    node: bool = False
    slots: bool = False
    last: int = -1

    def add(self, notification: Notification) -> None:
        """Merges a notification."""
        if notification.kind == "log":
            self.log = True
            self.last = max(self.last, notification.last)
        elif notification.kind == "node":
            self.node = True
        elif notification.kind == "slots":
            self.slots = True
        else:
            self.session = True


class Subscription:
    """One reader of one session, or with `id` None of a whole space."""

    def __init__(self, space: str, id: str | None) -> None:
        self.space = space
        self.id = id
        self.pending: dict[str, Pending] = {}
        self.lost = False
        self.closed = False
        self.behind_since: float | None = None
        """When the oldest notification that the reader has not taken arrived (time.monotonic)."""
        self._event = asyncio.Event()

    def notify(self, notification: Notification) -> None:
        """Records a notification and wakes the reader."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        if notification.lost:
            self.lost = True
        else:
            self.pending.setdefault(notification.id, Pending()).add(notification)
        self._event.set()

    def close(self) -> None:
        """Wakes the reader so that it ends."""
        self.closed = True
        self._event.set()

    async def wait(self) -> None:
        """Returns once something was reported since the last `take`."""
        await self._event.wait()

    def take(self) -> tuple[dict[str, Pending], bool]:
        """Returns and clears what is pending, by session id, and whether changes may have been lost."""
        pending, lost = self.pending, self.lost
        self.pending, self.lost = {}, False
        self.behind_since = None
        if not self.closed:
            self._event.clear()
        return pending, lost


class Hub:
    """All subscriptions of this process. It holds them weakly: a subscription ends with its reader."""

    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str | None], weakref.WeakSet[Subscription]] = {}

    @property
    def count(self) -> int:
        """How many subscriptions there are."""
        return sum(len(group) for group in self._subscriptions.values())

    @property
    def lag(self) -> float:
        """Seconds for which the slowest reader has left a notification untaken."""
        waiting = [each.behind_since for group in self._subscriptions.values() for each in group]
        return max((time.monotonic() - since for since in waiting if since is not None), default=0.0)

    def subscribe(self, space: str, id: str | None = None) -> Subscription:
        """Registers a reader of one session, or of the whole space."""
        subscription = Subscription(space, id)
        # Weak references call back newest first: the set, added to below, drops the subscription before this tidies.
        weakref.finalize(subscription, self._tidy, (space, id)).atexit = False
        self._subscriptions.setdefault((space, id), weakref.WeakSet()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Removes a reader."""
        key = (subscription.space, subscription.id)
        if (group := self._subscriptions.get(key)) is not None:
            group.discard(subscription)
        self._tidy(key)

    def _tidy(self, key: tuple[str, str | None]) -> None:
        if key in self._subscriptions and not self._subscriptions[key]:
            del self._subscriptions[key]

    def publish(self, notifications: Iterable[Notification]) -> None:
        """Passes notifications to the subscriptions that they concern."""
        for notification in notifications:
            if notification.lost:
                keys = list(self._subscriptions)
            else:
                keys = [(notification.space, notification.id), (notification.space, None)]
            for key in keys:
                for subscription in list(self._subscriptions.get(key, ())):
                    subscription.notify(notification)

    def close(self) -> None:
        """Ends all readers."""
        for group in self._subscriptions.values():
            for subscription in group:
                subscription.close()
