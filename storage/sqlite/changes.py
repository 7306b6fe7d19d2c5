"""What processes commit to the file, by the rows that its triggers leave."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from storage.database import LOST, Notification
from storage.sqlite.connection import connect, translated

MAX_CHANGES = 10_000


class Follower:
    """Reads the rows of `changes` that are new since it last looked, on a thread and a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "sapwood-changes")
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._seen = 0

    async def begin(self) -> None:
        """Whatever is committed after this is found by `look`. Raises Unavailable."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._begin)

    async def look(self) -> list[Notification]:
        """Up to 10,000 new wake-ups in order; first LOST if rows are gone that were not seen. Raises Unavailable."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._look)

    def close(self) -> None:
        """Lets the thread end, when it has done what it is at, and closes the connection."""
        if self._connection is not None:
            self._thread.submit(self._connection.close)
        self._thread.shutdown(wait=False)

    def _begin(self) -> None:
        with translated(self._path):
            self._connection = connect(self._path)
            self._version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            sql = "SELECT seq FROM sqlite_sequence WHERE name = 'changes'"
            found = self._connection.execute(sql).fetchone()
            self._seen = 0 if found is None else int(found[0])

    def _look(self) -> list[Notification]:
        assert self._connection is not None
        with translated(self._path):
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return []
            sql = (
                "SELECT number, kind, space, id, log, first, last FROM changes WHERE number > ? ORDER BY number LIMIT ?"
            )
            rows = self._connection.execute(sql, (self._seen, MAX_CHANGES)).fetchall()
            wakes = [Notification(*row[1:]) for row in rows]
            if rows and rows[0][0] != self._seen + 1:
                wakes.insert(0, LOST)
            self._seen = rows[-1][0] if rows else self._seen
            # A full list may not be all: the version counts as seen only when nothing is left.
            if len(rows) < MAX_CHANGES:
                self._version = version
            return wakes
