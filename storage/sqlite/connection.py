"""Connections to the file, and running coroutines that never wait."""

import sqlite3
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from storage import errors

T = TypeVar("T")

CACHE_KIBIBYTES = 4_096
"""Page cache of one connection. The system caches the file as well."""
BUSY_SECONDS = 10.0
"""How long a writer waits for another process's transaction."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode. WAL lets readers run beside the writer; each commit is synced to disk."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = {-CACHE_KIBIBYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises Unavailable for SQLite's own errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise errors.Unavailable(f"the database {path} can't be used now ({error}); try again") from error


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that awaits nothing but this store's queries and writes, none of which waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("work in a transaction may await only the transaction's own methods")
