"""A document on its way into a space, record by record."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import BinaryIO, Protocol

from storage.transfer.formats.shared.foreign import ImportWarnings, Step
from storage.transfer.importing.engine import Import, NotYet
from storage.transfer.importing.log import COMMIT_WEIGHT
from storage.transfer.importing.resolver import Imported
from storage.transfer.importing.target import Target
from storage.transfer.parsing.document import Document, Part, never

LOOK_WEIGHT = 64 * 1024
"""Characters of events that are read before it is looked whether what came before them is taken."""


def _unheard(_: str) -> None:
    pass


class Source(Protocol):
    """A document that is parsed somewhere: `begin` it, then take its parts. `losses` are complete after those."""

    losses: ImportWarnings

    async def begin(self) -> str:
        """The name of its format. Raises BadInput where that is not known."""

    def parts(self) -> AsyncGenerator[Part, None]:
        """Its steps, in order. Raises BadInput at the end of a document of which no record fits."""


class Here:
    """A document that is parsed between two commits; once `stopped` is true, it is taken as if it ended there."""

    def __init__(
        self, name: str, stream: BinaryIO, format: str | None = None, stopped: Callable[[], bool] = never
    ) -> None:
        self._given = (name, stream, format)
        self._stopped = stopped
        self.losses = ImportWarnings()

    async def begin(self) -> str:
        self._document = Document(*self._given)
        self.losses = self._document.losses
        return self._document.format

    async def parts(self) -> AsyncGenerator[Part, None]:
        for part in self._document.parts(self._stopped):
            yield part


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
    """`import_document` of a stream. Once `stopped` is true, the document is taken as if it ended there."""
    return await import_document(target, Here(name, stream, format, stopped), defer=defer, on_format=on_format)


async def import_document(
    target: Target, source: Source, *, defer: bool = False, on_format: Callable[[str], None] = _unheard
) -> tuple[str, Imported]:
    """Brings in what a document says, in bounded memory; its format and what came of it.

    What is there already is gone on with. Of a record that is broken, only that is left out; of a session that is
    refused, what came before is kept. `on_format` hears early what the document is.

    Raises what the source raises, Unavailable, and NotYet if `defer` and a session of another document is needed
    first; what this document has made until then is deleted again.
    """
    format = await source.begin()
    on_format(format)
    run = Import(target, format, ImportWarnings(), again=True, defer=defer)
    try:
        await _take_all(run, source)
    except NotYet:
        await run.undo()
        raise
    done = await run.finish()
    # Reading goes ahead of writing by no fixed distance, so what each has lost is told one after the other.
    losses = source.losses
    losses.include(done.losses)
    done.losses = losses
    done.warnings = losses.messages()
    return format, done


async def _take_all(run: Import, source: Source) -> None:
    ahead = _Ahead(run)
    try:
        async with contextlib.aclosing(source.parts()) as parts:
            async for part in parts:
                await ahead.add(part)
                del part  # which may be a large part of the memory, until the next one is there
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

    async def add(self, part: Part) -> None:
        """Has steps taken, at once or later."""
        self._steps += part.steps
        self._weight += part.weight
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
