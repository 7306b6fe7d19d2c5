"""Importing one document, record by record, in bounded memory."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import BinaryIO

from storage.transfer.formats.shared.foreign import ImportWarnings, Step
from storage.transfer.importing.engine import Import, MissingSessions
from storage.transfer.importing.log import COMMIT_WEIGHT
from storage.transfer.importing.result import ImportResult
from storage.transfer.importing.target import Target
from storage.transfer.parsing.document import StepBatch, never
from storage.transfer.parsing.source import DocumentSource, LocalSource

CHECK_WEIGHT = 64 * 1024
"""How many characters of events are read between two checks whether the steps before them were applied."""


def _ignore(_: str) -> None:
    pass


async def import_stream(
    target: Target,
    name: str,
    stream: BinaryIO,
    format: str | None = None,
    *,
    defer: bool = False,
    on_format: Callable[[str], None] = _ignore,
    stopped: Callable[[], bool] = never,
) -> tuple[str, ImportResult]:
    """Runs `import_source` on a stream. Once `stopped` is true, the document is read as if it ended there."""
    return await import_source(target, LocalSource(name, stream, format, stopped), defer=defer, on_format=on_format)


async def import_source(
    target: Target, source: DocumentSource, *, defer: bool = False, on_format: Callable[[str], None] = _ignore
) -> tuple[str, ImportResult]:
    """Imports a document in bounded memory. Returns the name of its format and the result.

    Sessions that already exist are continued. A broken record costs only itself; of a session that is refused, what was
    imported before is kept. `on_format` is called with the format as soon as that is known.

    Raises what the source raises, Unavailable, and MissingSessions if `defer` and a session of another document must be
    imported first; then what this document has created is deleted again.
    """
    format = await source.begin()
    on_format(format)
    run = Import(target, format, ImportWarnings(), merge=True, defer=defer)
    try:
        await _apply_all(run, source)
    except MissingSessions:
        await run.undo()
        raise
    result = await run.finish()
    # Reading runs ahead of writing by a varying distance. Keeping their warnings apart until now fixes the order.
    warnings = source.warnings
    warnings.include(result.warning_counts)
    result.warning_counts = warnings
    result.warnings = warnings.messages()
    return format, result


async def _apply_all(run: Import, source: DocumentSource) -> None:
    ahead = _ReadAhead(run)
    try:
        async with contextlib.aclosing(source.batches()) as batches:
            async for batch in batches:
                await ahead.add(batch)
                del batch  # frees what may be much memory before the next one is read
        await ahead.finish()
    except BaseException:
        await ahead.stop()
        raise


class _ReadAhead:
    """Applies steps in order. While some are being written, reads about a commit's worth ahead.

    An error from applying steps is raised by the next call.
    """

    def __init__(self, run: Import) -> None:
        self._run = run
        self._steps: list[Step] = []
        self._weight = 0
        self._checked_weight = 0
        self._applying: asyncio.Task[None] | None = None

    async def add(self, batch: StepBatch) -> None:
        """Has the steps applied, at once or later."""
        self._steps += batch.steps
        self._weight += batch.weight
        if self._weight - self._checked_weight < CHECK_WEIGHT:
            return
        self._checked_weight = self._weight
        await asyncio.sleep(0)
        if self._applying is None or self._applying.done() or self._weight > COMMIT_WEIGHT:
            is_large = self._weight > 2 * COMMIT_WEIGHT
            await self._hand_over()
            if is_large and self._applying is not None:
                await self._applying

    async def finish(self) -> None:
        """Returns once all steps are applied."""
        await self._hand_over()
        await self._hand_over()

    async def stop(self) -> None:
        """Cancels what is being applied and drops the rest."""
        if self._applying is not None:
            self._applying.cancel()
            await asyncio.gather(self._applying, return_exceptions=True)

    async def _hand_over(self) -> None:
        if self._applying is not None:
            await self._applying
        self._applying = asyncio.create_task(self._run.apply(self._steps))
        self._steps, self._weight, self._checked_weight = [], 0, 0
