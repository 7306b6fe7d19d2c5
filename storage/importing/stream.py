"""A document on its way into a space, record by record."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from storage import errors, formats
from storage.formats.records import Broken, Record, records
from storage.importing.engine import Import, NotYet
from storage.importing.places import Imported
from storage.importing.target import Target


def _unheard(_: str) -> None:
    pass


async def import_stream(
    target: Target,
    name: str,
    stream: BinaryIO,
    format: str | None = None,
    *,
    defer: bool = False,
    on_format: Callable[[str], None] = _unheard,
) -> tuple[str, Imported]:
    """Brings in what a document says, in bounded memory; its format and what came of it.

    What is there already is gone on with. Of a record that is broken, only that is left out; of a session that is
    refused, what came before is kept. `on_format` hears early what the document is.

    Raises BadInput for a document of no known format, Unavailable, and NotYet if `defer` and a session of another
    document is needed first; what this document has made until then is deleted again.
    """
    head, found = formats.head_of(records(name, stream))
    feed = formats.feed(name, head, format, lenient=True)
    on_format(feed.format)
    run = Import(target, feed.format, feed.losses, again=True, defer=defer)
    try:
        await _take_all(run, feed, found)
    except NotYet:
        await run.undo()
        raise
    return feed.format, await run.finish()


async def _take_all(run: Import, feed: formats.Feed, found: Iterator[Record | Broken]) -> None:
    for record in found:
        await run.take(feed.add(record))
    if not feed.accepted and feed.losses.first_broken:
        raise errors.BadInput(feed.losses.first_broken)
    await run.take(feed.end())
