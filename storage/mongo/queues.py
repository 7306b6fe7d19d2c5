"""Queues in which works of one process run one after the other, first come, first served."""

import asyncio
from collections.abc import Collection


class Queues:
    """A lock for each key, dropped when nobody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    async def enter(self, keys: Collection[str]) -> list[str]:
        """Waits until it is first in the queues of all keys. Pass the result to `leave`."""
        entered: list[str] = []
        try:
            for key in sorted(set(keys)):
                await self._enter(key)
                entered.append(key)
        except BaseException:
            self.leave(entered)
            raise
        return entered

    async def _enter(self, key: str) -> None:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self._users.get(key, 0) + 1
        try:
            await lock.acquire()
        except BaseException:
            self._drop(key)
            raise

    def leave(self, entered: Collection[str]) -> None:
        """Lets the next work in each queue run."""
        for key in entered:
            self._locks[key].release()
            self._drop(key)

    def _drop(self, key: str) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._locks[key]
