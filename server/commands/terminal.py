"""Output of commands, and the store that they work on."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import orjson
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from server.settings import Settings
from storage.store import Store


def fail(message: str) -> None:
    """Prints an error message as one line on stderr."""
    print(f"sapwood: {' '.join(message.split())}", file=sys.stderr, flush=True)


def print_json(document: Any) -> None:
    """Prints one JSON document on stdout."""
    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def progress(what: str, total: int | None, *, of_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on stderr if that is a terminal. Yields a function that advances it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    count = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), count, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda count: bars.advance(task, count)


@contextlib.asynccontextmanager
async def opened(settings: Settings, *, existing: bool = False) -> AsyncIterator[Store]:
    """Opens the store that the settings name, for the length of a command. With `existing`, it must already exist."""
    from server.stores import check_existing, open_store

    if existing:
        check_existing(settings)
    store = await open_store(settings)
    try:
        yield store
    finally:
        await store.close()
