"""Following what any process commits to the file, by the rows that its triggers write."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from storage.database import LOST, Notification
from storage.sqlite.connection import connect, translated

MAX_CHANGES = 10_000
"""Rows read by one poll."""


class Follower:
    """Polls the table `changes` for new rows, on a thread and a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "sapwood-changes")
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._seen = 0

    async def begin(self) -> None:
        """Opens the connection: `poll` finds whatever is committed after this. Raises Unavailable."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._begin)

    async def poll(self) -> list[Notification]:
        """Up to 10,000 new notifications in order, LOST first if rows were dropped unread. Raises Unavailable."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._poll)

    def close(self) -> None:
        """Closes the connection and ends the thread once the poll under way is done."""
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

    def _poll(self) -> list[Notification]:
        assert self._connection is not None
        with translated(self._path):
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return []
            sql = (
                "SELECT number, kind, space, id, log, first, last FROM changes WHERE number > ? ORDER BY number LIMIT ?"
            )
            rows = self._connection.execute(sql, (self._seen, MAX_CHANGES)).fetchall()
            notifications = [Notification(*row[1:]) for row in rows]
            if rows and rows[0][0] != self._seen + 1:
                notifications.insert(0, LOST)
            self._seen = rows[-1][0] if rows else self._seen
            # A full page may not be all: the version counts as seen once nothing is left.
            if len(rows) < MAX_CHANGES:
                self._version = version
            return notifications
