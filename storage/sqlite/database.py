"""The embedded store: one writer, several readers, and what other processes write to the file."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from storage import errors
from storage.database import LOST, Database, Listener, Notification, Queries, Transaction, Work
from storage.log.commit import Commit
from storage.sqlite import schema
from storage.sqlite.changes import MAX_CHANGES, Follower
from storage.sqlite.connection import connect, drive, translated
from storage.sqlite.queries import SqliteQueries
from storage.sqlite.transaction import SqliteTransaction
from storage.sqlite.writer import Writer

T = TypeVar("T")

FILE = "sapwood.db"
READERS = 3
POLL_SECONDS = 0.02
"""Time between two polls for other processes' commits. A poll is one pragma that reads shared memory."""
DROPPED_AT_ONCE = 5_000
"""Commits that the collector deletes in one transaction, so that appends don't wait for long."""


class SqliteDatabase(Database):
    """A file opened by `open_file`."""

    def __init__(self, path: Path) -> None:
        self.name = f"SQLite file {path}"
        self._path = path
        self._listeners: list[Listener] = []
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._immediate: sqlite3.Connection | None = None
        self._readers = ThreadPoolExecutor(READERS, "sapwood-reader")
        self._writer = Writer(path, self._announce)

    @override
    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        if quick:
            # A hop to another thread and back costs several times a lookup by key. Reads that would block on the lock
            # use the pool.
            with contextlib.suppress(sqlite3.OperationalError):
                return _run(query, self._nonblocking())
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, query)

    def _read(self, query: Callable[[Queries], Awaitable[T]]) -> T:
        with translated(self._path):
            return _read(query, self._reader())

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
        return connection

    def _nonblocking(self) -> sqlite3.Connection:
        """The connection of the event loop's own thread, which never waits for a lock."""
        if self._immediate is None:
            self._immediate = self._connect()
            self._immediate.execute("PRAGMA busy_timeout = 0")
        return self._immediate

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self._path)
        connection.execute("PRAGMA query_only = ON")
        self._connections.append(connection)
        return connection

    @override
    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        # The writer is one queue for all work.
        result: T = await self._writer.submit(work)
        return result

    @override
    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        return await self._writer.submit_each(works)

    @override
    async def collect(self, log: str, cut: int) -> int:
        async def work(transaction: Any) -> int:
            assert isinstance(transaction, SqliteTransaction)
            return transaction.drop_commits(log, cut, DROPPED_AT_ONCE)

        total = 0
        while (dropped := await self.transact(work)) > 0:
            total += dropped
        return total

    @override
    async def changes(self) -> AsyncIterator[Sequence[Notification]]:
        # On a thread of its own: a poll waits while another process holds the file's locks.
        with contextlib.closing(Follower(self._path)) as follower:
            await follower.begin()
            yield []
            while True:
                try:
                    found = await follower.poll()
                except errors.Unavailable:
                    found = [LOST]
                if found:
                    yield found
                if len(found) < MAX_CHANGES:
                    await asyncio.sleep(POLL_SECONDS)

    @override
    def watch(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def _announce(self, notifications: Sequence[Notification], commits: Sequence[Commit]) -> None:
        for listener in self._listeners:
            listener(notifications, commits)

    @override
    async def ping(self) -> None:
        async def nothing(_: Transaction) -> None:
            """Empty, but the transaction still has to get the lock and reach the disk."""

        await self.transact(nothing)

    @override
    async def close(self) -> None:
        await self._writer.close()
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._connections:
            connection.close()


def _read(query: Callable[[Queries], Awaitable[T]], connection: sqlite3.Connection) -> T:
    """Runs a query in one snapshot."""
    connection.execute("BEGIN")
    try:
        return _run(query, connection)
    finally:
        connection.execute("ROLLBACK")


def _run(query: Callable[[Queries], Awaitable[T]], connection: sqlite3.Connection) -> T:
    return drive(query(SqliteQueries(connection)))  # type: ignore[arg-type]  # as in the writer


async def open_file(folder: Path, name: str = FILE) -> SqliteDatabase:
    """The store in a file of a folder, both created if need be. Raises StartupError, which says what to do."""
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(connect(path)) as connection:
            schema.prepare(connection, str(path))
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except (OSError, sqlite3.Error) as error:
        if "not a database" in str(error):
            raise errors.StartupError(
                f"{path} is not an SQLite file: move it away, or name another folder with SAPWOOD_DATA_DIR"
            ) from error
        raise errors.StartupError(
            f"can't write the data folder {folder} ({error}): make it writable, "
            "or name another one with SAPWOOD_DATA_DIR"
        ) from error
    return SqliteDatabase(path)
