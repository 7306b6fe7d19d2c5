"""A document on its way into a space, record by record."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from storage import errors, events, formats
from storage.formats.foreign import ForeignSession, Logged, Losses, Step
from storage.formats.records import Broken, Record, records
from storage.importing.engine import Import, NotYet
from storage.importing.log import COMMIT_WEIGHT
from storage.importing.places import Imported
from storage.importing.target import Target

LOOK_WEIGHT = 64 * 1024
"""Characters of events that are read before it is looked whether what came before them is taken."""


def _unheard(_: str) -> None:
    pass


def never() -> bool:
    """What a source that nobody stops is asked."""
    return False


async def import_stream(
    target: Target,
    name: str,
    stream: BinaryIO,
    format: str | None = None,
    *,
    defer: bool = False,
    on_format: Callable[[str], None] = _unheard,
    stopped: Callable[[], bool] = never,
) -> tuple[str, Imported]:
    """Brings in what a document says, in bounded memory; its format and what came of it.

    What is there already is gone on with. Of a record that is broken, only that is left out; of a session that is
    refused, what came before is kept. `on_format` hears early what the document is. Once `stopped` is true, the
    document is taken as if it ended there.

    Raises BadInput for a document of no known format, Unavailable, and NotYet if `defer` and a session of another
    document is needed first; what this document has made until then is deleted again.
    """
    head, found = formats.head_of(records(name, stream))
    feed = formats.feed(name, head, format, lenient=True)
    del head
    on_format(feed.format)
    run = Import(target, feed.format, Losses(), again=True, defer=defer)
    try:
        await _take_all(run, feed, found, stopped)
    except NotYet:
        await run.undo()
        raise
    done = await run.finish()
    # Reading goes ahead of writing by no fixed distance, so what each has lost is told one after the other.
    feed.losses.include(done.losses)
    done.losses = feed.losses
    done.warnings = feed.losses.warnings()
    return feed.format, done


async def _take_all(
    run: Import, feed: formats.Feed, found: Iterator[Record | Broken], stopped: Callable[[], bool]
) -> None:
    ahead = _Ahead(run)
    try:
        for steps in map(feed.add, found):  # which keeps no record longer than it is read
            await ahead.add(steps)
            if stopped():
                break
        if not feed.accepted and feed.losses.first_broken:
            raise errors.BadInput(feed.losses.first_broken)
        await ahead.add(feed.end())
        await ahead.finish()
    except BaseException:
        await ahead.stop()
        raise


class _Ahead:
    """Hands steps to an import, in order; while it writes, up to about a commit's worth of them are read ahead.

    What taking steps raises, the next call raises.
    """

    def __init__(self, run: Import) -> None:
        self._run = run
        self._steps: list[Step] = []
        self._weight = 0
        self._looked_at = 0
        self._taking: asyncio.Task[None] | None = None

    async def add(self, steps: Sequence[Step]) -> None:
        """Has steps taken, at once or later."""
        self._steps += steps
        self._weight += sum(map(_weight, steps))
        if self._weight - self._looked_at < LOOK_WEIGHT:
            return
        self._looked_at = self._weight
        await asyncio.sleep(0)
        if self._taking is None or self._taking.done() or self._weight > COMMIT_WEIGHT:
            is_large = self._weight > 2 * COMMIT_WEIGHT
            await self._hand_over()
            if is_large and self._taking is not None:
                await self._taking

    async def finish(self) -> None:
        """Returns when all steps are taken."""
        await self._hand_over()
        await self._hand_over()

    async def stop(self) -> None:
        """Returns when nothing is being taken any more, nor will be."""
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)

    async def _hand_over(self) -> None:
        if self._taking is not None:
            await self._taking
        self._taking = asyncio.create_task(self._run.take(self._steps))
        self._steps, self._weight, self._looked_at = [], 0, 0


def _weight(step: Step) -> int:
    match step:
        case Logged():
            return events.weight(step.event)
        case ForeignSession():
            return sum(map(events.weight, step.events))
    return 0
