"""Importing files that grow while they are read."""

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from storage import errors
from storage.transfer.formats import registry
from storage.transfer.formats.shared import limits, records
from storage.transfer.formats.shared.lines import MARK, Line, parse_line
from storage.transfer.formats.shared.record import BrokenRecord, Record
from storage.transfer.importing.engine import Import, MissingSessions
from storage.transfer.importing.held import HeldFiles
from storage.transfer.importing.result import ImportResult
from storage.transfer.importing.stream import import_stream
from storage.transfer.importing.target import Target
from storage.transfer.parsing.document import never

_TAIL_BYTES = 4096
"""How much of the last line is remembered, to recognize a file that was rewritten."""

_TURN_BYTES = 64 * 1024
"""How much is read before other tasks get a turn and `stopped` is checked again."""


class Follower:
    """Imports a file that an agent is writing.

    JSON lines are read on from where they ended. Any other document, and a file that was rewritten, is read again from
    its start when it changes. A file of lines that was renamed is first read to its end, if it is still one of the
    `held` files.

    `format` is None until it is given or detected. `results` has one entry for each time that lines were read from
    their start, and one in all for other documents. `problem` says why the file can't be read now. Once `stopped` is
    true, reading ends between two records; `is_behind` says whether there may be more to read.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        path: Path,
        format: str | None = None,
        *,
        held: HeldFiles | None = None,
        stopped: Callable[[], bool] = never,
    ) -> None:
        self.format = format
        self.results: list[ImportResult] = []
        self.problem: str | None = None
        self.is_behind = True
        self._held = held or HeldFiles()
        self._stopped = stopped
        self._target = target
        self._name = name
        self._path = path
        self._given_format = format
        self._seen: tuple[int, int, int] | None = None
        self._was_read_whole = False
        self._start_over()

    def _start_over(self) -> None:
        self._held.release(self)
        self._inode: int | None = None
        self._tail = b""
        self._position = 0
        self._number = 0
        self._skips_line = False
        self._feed: registry.DocumentReader | None = None
        self._import: Import | None = None

    async def advance(self, *, defer: bool) -> bool:
        """Imports what is new. Returns whether there was anything. An error becomes the `problem`.

        Raises MissingSessions if `defer` and a session of another file must be imported first.
        """
        try:
            progressed = await self._advance(defer=defer)
        except MissingSessions:
            if self._import is not None:
                await self._import.undo()
            self._start_over()
            self._seen = None
            raise
        except OSError as error:
            self.problem = f"can't be read: {error.strerror}"
        except errors.SapwoodError as error:
            self.problem = error.message
            # Reading the file again shows how much of it was imported.
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
            raise errors.BadInput(f"{self._name}: only regular files can be followed")
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return False
        with self._path.open("rb") as stream:
            if self._import is not None and not self._is_continued(stream):
                await self._read_rest()
                await self._finish_import()
            self._seen = seen
            if self._import is None and not self._begin_lines(stream, defer=defer):
                await self._read_whole(stream, defer=defer)
                self.is_behind = self._stopped()
            else:
                self.is_behind = not await self._read_lines(stream, self._stopped)
                self._held.hold(self, stream)
        if self.is_behind:
            self._seen = None
        return True

    def _is_continued(self, stream: BinaryIO) -> bool:
        """Whether this is still the file whose lines were read, neither replaced nor rewritten."""
        if os.fstat(stream.fileno()).st_ino != self._inode:
            return False
        stream.seek(self._position - len(self._tail))
        return stream.read(len(self._tail)) == self._tail

    async def _read_renamed(self) -> None:
        """Reads on in a file that was renamed. Releases it if it has no name left, that is, was deleted."""
        stream = self._held.open(self)
        if stream is not None:
            with stream:
                if self._is_continued(stream):
                    await self._read_lines(stream, never)
                if not os.fstat(stream.fileno()).st_nlink:
                    self._held.release(self)

    async def finish(self) -> None:
        """Imports what was written since, then ends the import. An error becomes the `problem`.

        Includes a last line that lacks its end. If reading was stopped, imports nothing more.
        """
        try:
            if not self.is_behind:
                await self._read_last()
            await self._finish_import()
        except errors.SapwoodError as error:
            self.problem = error.message

    async def _read_last(self) -> None:
        try:
            await self._read_rest()
            self._path.stat()
        except OSError as error:
            self.problem = f"can't be read: {error.strerror}"

    async def _read_rest(self) -> None:
        """Imports the lines written since, and a last one that lacks its end."""
        if self._import is None or self._feed is None:
            return
        with self._held.open(self) or self._path.open("rb") as stream:
            if not self._is_continued(stream):
                return
            await self._read_lines(stream, never)
            stream.seek(self._position)
            rest = stream.read(limits.MAX_RECORD_BYTES + 1)
        if rest.strip() and not self._skips_line:
            await self._read_line(self._import, self._feed, Line(self._number + 1, rest, whole=False))

    async def _finish_import(self) -> None:
        if self._import is not None and self._feed is not None:
            await self._import.apply(self._feed.end())
            self.results.append(await self._import.finish())
        self._start_over()

    def _begin_lines(self, stream: BinaryIO, *, defer: bool) -> bool:
        """Whether the file is JSON lines. If so, detects the format by the first ones and starts an import."""
        head: list[Record | BrokenRecord] = []
        stream.seek(0)
        while len(head) < registry.HEAD and (line := self._line(stream)) is not None:
            head += parse_line(self._name, line)
        self._start_over()
        if not head or not records.is_json_lines(head[0]):
            return False
        self._feed = registry.reader_for(self._name, head, self._given_format, lenient=True)
        self.format = self._feed.format
        self._import = Import(self._target, self.format, self._feed.warnings, merge=True, defer=defer)
        self._inode = os.fstat(stream.fileno()).st_ino
        self._was_read_whole = False
        return True

    async def _read_whole(self, stream: BinaryIO, *, defer: bool) -> None:
        stream.seek(0)
        if os.fstat(stream.fileno()).st_size:
            self.format, result = await import_stream(
                self._target, self._name, stream, self._given_format, defer=defer, stopped=self._stopped
            )
            if self._was_read_whole:
                result = _combined(self.results.pop(), result)
            self._was_read_whole = True
            self.results.append(result)

    async def _read_lines(self, stream: BinaryIO, stopped: Callable[[], bool]) -> bool:
        """Imports the complete lines. Returns False if it was stopped before the last one."""
        if self._import is None or self._feed is None:
            return True
        stream.seek(self._position)
        turn = self._position
        continued = True
        while continued and (line := self._line(stream)) is not None:
            await self._read_line(self._import, self._feed, line)
            if self._position - turn >= _TURN_BYTES:
                turn = self._position
                await asyncio.sleep(0)
                continued = not stopped()
        await self._import.flush()
        return continued

    async def _read_line(self, run: Import, feed: registry.DocumentReader, line: Line) -> None:
        for record in parse_line(self._name, line):
            await run.apply(feed.add(record))

    def _line(self, stream: BinaryIO) -> Line | None:
        """The next line that is not blank, and is complete or too long; None if there is none yet."""
        while content := stream.readline(limits.MAX_RECORD_BYTES + 1):
            ended = content.endswith(b"\n")
            if not ended and not self._skips_line and len(content) <= limits.MAX_RECORD_BYTES:
                return None
            self._position += len(content)
            self._tail = content[-_TAIL_BYTES:]
            continues, self._skips_line = self._skips_line, not ended
            if continues:
                continue
            self._number += 1
            if self._number == 1:
                content = content.removeprefix(MARK)
            if content.strip():
                return Line(self._number, content, whole=ended)
        return None


def _combined(first: ImportResult, second: ImportResult) -> ImportResult:
    """The result of a document that was read twice, with the warnings of the second time."""
    sums = {name: getattr(first, name) + getattr(second, name) for name in ("sessions", "forks", "nodes", "events")}
    return replace(second, **sums, ids={**first.ids, **second.ids}, known=first.known)
