"""Counting the queries that a store makes of its database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pymongo.monitoring

from storage.database import Queries
from storage.sqlite.database import READERS, SqliteDatabase
from storage.store import Store


class Count:
    """How many queries were made since it began."""

    def __init__(self) -> None:
        self.queries = 0

    def add(self, statement: str) -> None:
        """Counts a statement that reads."""
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            self.queries += 1


class _Commands(pymongo.monitoring.CommandListener):
    """Counts the commands of all clients made after it was registered."""

    def __init__(self) -> None:
        self.counts: set[Count] = set()

    def started(self, event: pymongo.monitoring.CommandStartedEvent) -> None:
        if event.command_name in ("find", "aggregate", "count", "distinct", "getMore"):
            for count in self.counts:
                count.queries += 1

    def succeeded(self, event: Any) -> None: ...
    def failed(self, event: Any) -> None: ...


COMMANDS = _Commands()
pymongo.monitoring.register(COMMANDS)


async def _look(queries: Queries) -> None:
    await queries.as_of()


@contextlib.asynccontextmanager
async def counted(store: Store) -> AsyncIterator[Count]:
    """Counts what the store reads meanwhile. A MongoDB store must have been opened after this module was imported."""
    count = Count()
    if isinstance(store.database, SqliteDatabase):
        # Each reader, and the loop's own thread, makes its connection at its first query; all must be there to count.
        await store.database.read(_look, quick=True)
        while len(store.database._connections) < READERS + 1:
            await asyncio.gather(*(store.database.read(_look) for _ in range(4 * READERS)))
        connections = list(store.database._connections)
        for connection in connections:
            connection.set_trace_callback(count.add)
        yield count
        for connection in connections:
            connection.set_trace_callback(None)
    else:
        COMMANDS.counts.add(count)
        yield count
        COMMANDS.counts.discard(count)
