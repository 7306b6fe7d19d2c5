"""Queues in which the work of one process waits for each other, first come first served."""

import asyncio
from collections.abc import Collection


class Queues:
    """A lock for each key; forgotten when nobody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    async def enter(self, keys: Collection[str]) -> list[str]:
        """Waits for its turn in the queues of all keys. Give what it returns to `leave`."""
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
            self._forget(key)
            raise

    def leave(self, entered: Collection[str]) -> None:
        """Lets the next ones go on."""
        for key in entered:
            self._locks[key].release()
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._locks[key]
