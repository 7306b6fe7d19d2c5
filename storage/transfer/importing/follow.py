"""Logs that grow while they are read."""

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from storage import errors
from storage.transfer.formats import registry
from storage.transfer.formats.shared import records
from storage.transfer.formats.shared.records import MAX_RECORD_BYTES, BrokenRecord, Line, Record
from storage.transfer.importing.engine import Import, NotYet
from storage.transfer.importing.held import Kept
from storage.transfer.importing.resolver import Imported
from storage.transfer.importing.stream import import_stream
from storage.transfer.importing.target import Target
from storage.transfer.parsing.document import never

_REMEMBERED = 4096
"""Bytes of the last line, by which a file that was written anew is told."""

_TURN_BYTES = 64 * 1024
"""Bytes of lines after which it is looked whether to go on, and others get their turn."""


class Follower:
    """A file that an agent is writing. Lines are read on from where they ended; a document that is no lines, or that
    was written anew, is read again when it changes.

    `format` is None until it is given or told. `results` are what came of it: of lines one for each time that they
    were read from their start, of other documents one for all times. `problem` is why it can't be read now. Once
    `stopped` is true, reading ends between two records; `is_behind` tells whether there may be more.

    A file of lines that was renamed is read to its end first, if it still is among those `kept` open.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        path: Path,
        format: str | None = None,
        *,
        kept: Kept | None = None,
        stopped: Callable[[], bool] = never,
    ) -> None:
        self.format = format
        self.results: list[Imported] = []
        self.problem: str | None = None
        self.is_behind = True
        self._kept = kept or Kept()
        self._stopped = stopped
        self._target = target
        self._name = name
        self._path = path
        self._given = format
        self._seen: tuple[int, int, int] | None = None
        self._is_whole = False
        self._start_over()

    def _start_over(self) -> None:
        self._kept.drop(self)
        self._inode: int | None = None
        self._last = b""
        self._position = 0
        self._number = 0
        self._passes_over = False
        self._feed: registry.DocumentReader | None = None
        self._run: Import | None = None

    async def advance(self, *, defer: bool) -> bool:
        """Brings in what is new; whether there was anything. What goes wrong becomes its `problem`.

        Raises NotYet if `defer` and a session of another file is needed first.
        """
        try:
            progressed = await self._advance(defer=defer)
        except NotYet:
            if self._run is not None:
                await self._run.undo()
            self._start_over()
            self._seen = None
            raise
        except OSError as error:
            self.problem = f"can't be read: {error.strerror}"
        except errors.SapwoodError as error:
            self.problem = error.message
            # What of it has come in is seen by reading it again.
            self._start_over()
            if isinstance(error, errors.Unavailable):
                self._seen = None
        else:
            self.problem = None if progressed else self.problem
            return progressed
        return False

    async def _advance(self, *, defer: bool) -> bool:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            await self._read_renamed()
            raise
        if not stat.S_ISREG(status.st_mode):
            raise errors.BadInput(f"{self._name}: only a file can be followed")
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return False
        with self._path.open("rb") as stream:
            if self._run is not None and not self._goes_on(stream):
                await self._take_rest()
                await self._finish_run()
            self._seen = seen
            if self._run is None and not self._has_lines(stream, defer=defer):
                await self._read_whole(stream, defer=defer)
                self.is_behind = self._stopped()
            else:
                self.is_behind = not await self._read_lines(stream, self._stopped)
                self._kept.keep(self, stream)
        if self.is_behind:
            self._seen = None
        return True

    def _goes_on(self, stream: BinaryIO) -> bool:
        """Whether the file still is the one of which lines were read, and not another or the same written anew."""
        if os.fstat(stream.fileno()).st_ino != self._inode:
            return False
        stream.seek(self._position - len(self._last))
        return stream.read(len(self._last)) == self._last

    async def _read_renamed(self) -> None:
        """Takes what a file without its name says more; one without any is not kept."""
        stream = self._kept.open(self)
        if stream is not None:
            with stream:
                if self._goes_on(stream):
                    await self._read_lines(stream, never)
                if not os.fstat(stream.fileno()).st_nlink:
                    self._kept.drop(self)

    async def finish(self) -> None:
        """Takes what came since the last look, a last line without its end too, unless reading was stopped; then ends
        what is open. What goes wrong becomes its `problem`."""
        try:
            if not self.is_behind:
                await self._take_last()
            await self._finish_run()
        except errors.SapwoodError as error:
            self.problem = error.message

    async def _take_last(self) -> None:
        try:
            await self._take_rest()
            self._path.stat()
        except OSError as error:
            self.problem = f"can't be read: {error.strerror}"

    async def _take_rest(self) -> None:
        """Takes what lines came since the last look, and a last one without its end."""
        if self._run is None or self._feed is None:
            return
        with self._kept.open(self) or self._path.open("rb") as stream:
            if not self._goes_on(stream):
                return
            await self._read_lines(stream, never)
            stream.seek(self._position)
            rest = stream.read(MAX_RECORD_BYTES + 1)
        if rest.strip() and not self._passes_over:
            await self._run.take(
                self._feed.add(records.parse_line(self._name, Line(self._number + 1, rest, whole=False)))
            )

    async def _finish_run(self) -> None:
        if self._run is not None and self._feed is not None:
            await self._run.take(self._feed.end())
            self.results.append(await self._run.finish())
        self._start_over()

    def _has_lines(self, stream: BinaryIO, *, defer: bool) -> bool:
        """Whether the file is JSON lines; then it is told by the first of them."""
        head: list[Record | BrokenRecord] = []
        stream.seek(0)
        while len(head) < registry.HEAD and (line := self._line(stream)) is not None:
            head.append(records.parse_line(self._name, line))
        self._start_over()
        if not head or not records.is_json_lines(head[0]):
            return False
        self._feed = registry.reader_for(self._name, head, self._given, lenient=True)
        self.format = self._feed.format
        self._run = Import(self._target, self.format, self._feed.warnings, again=True, defer=defer)
        self._inode = os.fstat(stream.fileno()).st_ino
        self._is_whole = False
        return True

    async def _read_whole(self, stream: BinaryIO, *, defer: bool) -> None:
        stream.seek(0)
        if os.fstat(stream.fileno()).st_size:
            self.format, done = await import_stream(
                self._target, self._name, stream, self._given, defer=defer, stopped=self._stopped
            )
            if self._is_whole:
                done = _together(self.results.pop(), done)
            self._is_whole = True
            self.results.append(done)

    async def _read_lines(self, stream: BinaryIO, stopped: Callable[[], bool]) -> bool:
        """Takes the lines that are complete; whether it was not stopped before the last one."""
        if self._run is None or self._feed is None:
            return True
        stream.seek(self._position)
        turn = self._position
        went_on = True
        while went_on and (line := self._line(stream)) is not None:
            await self._run.take(self._feed.add(records.parse_line(self._name, line)))
            if self._position - turn >= _TURN_BYTES:
                turn = self._position
                await asyncio.sleep(0)
                went_on = not stopped()
        await self._run.settle()
        return went_on

    def _line(self, stream: BinaryIO) -> Line | None:
        """The next line that has its end, or is too long, and is not blank."""
        while content := stream.readline(MAX_RECORD_BYTES + 1):
            ended = content.endswith(b"\n")
            if not ended and not self._passes_over and len(content) <= MAX_RECORD_BYTES:
                return None
            self._position += len(content)
            self._last = content[-_REMEMBERED:]
            continues, self._passes_over = self._passes_over, not ended
            if continues:
                continue
            self._number += 1
            if self._number == 1:
                content = content.removeprefix(records.MARK)
            if content.strip():
                return Line(self._number, content, whole=ended)
        return None


def _together(before: Imported, after: Imported) -> Imported:
    """What came of a document that was read twice; its losses are those that it has now."""
    made = {name: getattr(before, name) + getattr(after, name) for name in ("sessions", "forks", "nodes", "events")}
    return replace(after, **made, ids={**before.ids, **after.ids}, known=before.known)
