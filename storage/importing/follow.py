"""Logs that grow while they are read."""

import os
from pathlib import Path
from typing import BinaryIO

from storage import errors, formats
from storage.formats import records
from storage.formats.records import MAX_RECORD_BYTES, Broken, Line, Record
from storage.importing.engine import Import, Imported, NotYet
from storage.importing.stream import import_stream
from storage.importing.target import Target


class Follower:
    """A file that an agent is writing. Lines are read on from where they ended; a document that is no lines, or that
    became shorter, is read again when it changes.

    `format` is None until it is given or told. `results` are what came of it, one for each time that it was read from
    its start; `problem` is why it can't be read now.
    """

    def __init__(self, target: Target, name: str, path: Path, format: str | None = None) -> None:
        self.format = format
        self.results: list[Imported] = []
        self.problem: str | None = None
        self._target = target
        self._name = name
        self._path = path
        self._given = format
        self._seen: tuple[int, int, int] | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._position = 0
        self._number = 0
        self._feed: formats.Feed | None = None
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
        stat = self._path.stat()
        seen = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if seen == self._seen:
            return False
        if self._seen is not None and (self._seen[0] != stat.st_ino or stat.st_size < self._position):
            await self._finish_run()
        with self._path.open("rb") as stream:
            if self._run is None and not self._has_lines(stream, defer=defer):
                self._seen = seen
                await self._read_whole(stream, defer=defer)
            else:
                await self._read_lines(stream)
        self._seen = seen
        return True

    async def finish(self) -> None:
        """Takes a last line without its end, and ends what is open."""
        if self._run is not None and self._feed is not None:
            with self._path.open("rb") as stream:
                stream.seek(self._position)
                rest = stream.read(MAX_RECORD_BYTES + 1)
            if rest.strip():
                line = Line(self._number + 1, rest, whole=False)
                await self._run.take(self._feed.add(records.line(self._name, line)))
        await self._finish_run()

    async def _finish_run(self) -> None:
        if self._run is not None and self._feed is not None:
            await self._run.take(self._feed.end())
            self.results.append(await self._run.finish())
        self._start_over()

    def _has_lines(self, stream: BinaryIO, *, defer: bool) -> bool:
        """Whether the file is JSON lines; then it is told by the first of them."""
        head: list[Record | Broken] = []
        while len(head) < formats.HEAD and (line := self._line(stream)) is not None:
            head.append(records.line(self._name, line))
        stream.seek(0)
        self._number = self._position = 0
        if not head or not records.is_line(head[0]):
            return False
        self._feed = formats.feed(self._name, head, self._given, lenient=True)
        self.format = self._feed.format
        self._run = Import(self._target, self.format, self._feed.losses, again=True, defer=defer)
        return True

    async def _read_whole(self, stream: BinaryIO, *, defer: bool) -> None:
        stream.seek(0)
        if os.fstat(stream.fileno()).st_size:
            self.format, done = await import_stream(self._target, self._name, stream, self._given, defer=defer)
            self.results.append(done)

    async def _read_lines(self, stream: BinaryIO) -> None:
        if self._run is None or self._feed is None:
            return
        stream.seek(self._position)
        while (line := self._line(stream)) is not None:
            await self._run.take(self._feed.add(records.line(self._name, line)))
        await self._run.settle()

    def _line(self, stream: BinaryIO) -> Line | None:
        """The next line that has its end and is not blank."""
        while content := stream.readline():
            if not content.endswith(b"\n"):
                return None
            self._position += len(content)
            self._number += 1
            if self._number == 1:
                content = content.removeprefix(records.MARK)
            if content.strip():
                return Line(self._number, content)
        return None
