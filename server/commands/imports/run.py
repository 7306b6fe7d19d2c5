"""Importing many files into a space: in which order, and what is reported of each."""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from server.commands.imports.inputs import Input
from server.commands.imports.report import Report
from server.commands.terminal import progress
from storage import errors
from storage.transfer.formats.shared.foreign import ForeignSession, Step
from storage.transfer.importing import MissingSessions, Target, missing_sessions
from storage.transfer.importing.stream import import_source
from storage.transfer.parsing.frames import ParseRequest
from storage.transfer.parsing.parser import Parser, ParserLost, ParserSource
from storage.transfer.parsing.serving import BUFFER_BYTES
from storage.transfer.parsing.source import DocumentSource, LocalSource


async def import_all(
    target: Target, files: Sequence[Input], format: str | None, report: Report, parser: Parser | None = None
) -> None:
    """Imports the files one by one. A file that needs sessions of others is tried again after them.

    Files that can be read only once come last. A `parser` parses the next files while one is imported.
    """
    waiting = sorted(files, key=lambda each: each.size() is None)
    with progress("Importing", sum(each.size() or 0 for each in waiting), of_bytes=True) as advance:
        run = _Run(target, format, report, advance, parser)
        while waiting:
            run.parse_ahead(waiting)
            deferred = [each for each in waiting if not await run.import_file(each)]
            waiting = run.reorder(deferred, stuck=len(deferred) == len(waiting))


class _Run:
    def __init__(
        self,
        target: Target,
        format: str | None,
        report: Report,
        advance: Callable[[int], None],
        parser: Parser | None,
    ) -> None:
        self._target = target
        self._format = format
        self._report = report
        self._advance = advance
        self._parser = parser
        self._requested: set[Input] = set()
        self._ids_ahead: set[str] = set()
        self._missing: dict[Input, MissingSessions] = {}
        self._last_tries: set[Input] = set()

    def parse_ahead(self, files: Sequence[Input]) -> None:
        """Requests those of the files that can be read again from the parser, in this order."""
        self._ids_ahead.clear()
        if self._parser is not None and not self._parser.is_lost:
            ahead = [each for each in files if each.path is not None and each.size() is not None]
            # In a dry run, inspecting copies sessions, which must not happen while a file is imported.
            deferrable = {each for each in ahead if not self._report.dry and self._may_defer(each)}
            requests = [ParseRequest(each.name, str(each.path), self._format, each in deferrable) for each in ahead]
            self._parser.request(requests, self._inspect)
            self._requested = set(ahead)

    async def _inspect(self, steps: Sequence[Step]) -> MissingSessions | None:
        """The sessions that a file with these first steps needs, unless the files before it bring them."""
        sessions = [step for step in steps if isinstance(step, ForeignSession)]
        self._ids_ahead.update(session.id for session in sessions if session.id is not None)
        with contextlib.suppress(errors.SapwoodError):  # importing the file will raise it again
            for session in sessions:
                missing = await missing_sessions(self._target, session)
                if missing is not None and missing.needed - self._ids_ahead:
                    return missing
        return None

    def _may_defer(self, file: Input) -> bool:
        """Whether a file may wait for a session that it needs."""
        return file.size() is not None and file not in self._last_tries

    def reorder(self, deferred: Sequence[Input], *, stuck: bool) -> list[Input]:
        """Orders the deferred files for the next round.

        If the round before was stuck, that is, imported nothing, the files that need sessions which none of the others
        holds come first and are not deferred again. If there are none of these, they all need each other, and no file
        is deferred again.
        """
        self._last_tries.clear()
        if stuck:
            ids = {self._missing[each].id for each in deferred}
            self._last_tries.update([each for each in deferred if not self._missing[each].needed & ids] or deferred)
        return sorted(deferred, key=lambda each: each not in self._last_tries)

    async def import_file(self, file: Input) -> bool:
        """Imports a file. Returns False if it was deferred."""
        if file.problem is not None:
            self._report.reject(file.name, file.problem, expected=file.expected)
            return True
        read = 0

        def on_read(count: int) -> None:
            nonlocal read
            read += count
            self._advance(count)

        format = self._format

        def on_format(name: str) -> None:
            nonlocal format
            format = name

        try:
            with self._source(file, on_read) as source:
                defer = self._may_defer(file)
                format, result = await import_source(self._target, source, defer=defer, on_format=on_format)
                self._report.add(format, file.name, result)
        except MissingSessions as error:
            self._advance(-read)
            self._missing[file] = error
            return False
        except OSError as error:
            self._report.fail(file.name, f"can't be read: {error.strerror}")
        except ParserLost:
            self._report.fail(file.name, "the parsing process ended before it had read the file")
        except errors.Unavailable:
            raise
        except errors.SapwoodError as error:
            self._report.reject(file.name, error.message, expected=file.expected or format is not None)
        return True

    @contextlib.contextmanager
    def _source(self, file: Input, on_read: Callable[[int], None]) -> Iterator[DocumentSource]:
        if self._parser is not None and not self._parser.is_lost and file in self._requested:
            yield ParserSource(self._parser, on_read)
            return
        raw = _CountingFile(0 if file.path is None else str(file.path), on_read)
        with io.BufferedReader(raw, BUFFER_BYTES) as stream:
            yield LocalSource(file.name, stream, self._format)


class _CountingFile(io.FileIO):
    """A file that reports how many bytes were read."""

    def __init__(self, file: str | int, on_read: Callable[[int], None]) -> None:
        super().__init__(file, closefd=not isinstance(file, int))
        self._on_read = on_read

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._on_read(count)
        return count
