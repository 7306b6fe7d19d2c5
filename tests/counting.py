"""Counts the queries that a store sends to its database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pymongo.monitoring

from storage.database import Queries
from storage.sqlite.database import READERS, SqliteDatabase
from storage.store import Store


class Count:
    """The number of queries since counting began."""

    def __init__(self) -> None:
        self.queries = 0

    def add(self, statement: str) -> None:
        """Counts the statement if it reads."""
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            self.queries += 1


class _Commands(pymongo.monitoring.CommandListener):
    """Counts the reading commands of every client that is created after it is registered."""

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


async def _any_query(queries: Queries) -> None:
    await queries.as_of()


@contextlib.asynccontextmanager
async def counted(store: Store) -> AsyncIterator[Count]:
    """Counts what the store reads inside the block. Import this module before opening a MongoDB store."""
    count = Count()
    if isinstance(store.database, SqliteDatabase):
        # Each reader thread, and the event loop's, connects on its first query. Only open connections can be counted.
        await store.database.read(_any_query, quick=True)
        while len(store.database._connections) < READERS + 1:
            await asyncio.gather(*(store.database.read(_any_query) for _ in range(4 * READERS)))
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
