"""Connections to the file, and running a store's coroutines on a thread that must not wait for anything else."""

import sqlite3
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from storage import errors

T = TypeVar("T")

CACHE_KIBIBYTES = 4_096
"""Of pages, per connection; the system's own cache of the file is there for the rest."""
BUSY_SECONDS = 10.0
"""How long a writer waits for another process's transaction."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode: WAL, each commit synced to disk, readers beside one writer."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = {-CACHE_KIBIBYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Has SQLite's own errors raised as Unavailable."""
    try:
        yield
    except sqlite3.Error as error:
        raise errors.Unavailable(f"the database {path} can't be used now ({error}); try again") from error


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that awaits only what is ready at once, as the methods of this store's transactions are."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("work in a transaction may await only the transaction's own methods")
