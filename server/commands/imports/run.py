"""Many files into a space: which of them come when, and what is told of each."""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from server.commands.imports.inputs import Input
from server.commands.imports.report import Report
from server.commands.terminal import progress
from storage import errors
from storage.transfer.formats.shared.foreign import ForeignSession, Step
from storage.transfer.importing import NotYet, Target, has_to_wait
from storage.transfer.importing.stream import Here, Source, import_document
from storage.transfer.parsing.frames import Wanted
from storage.transfer.parsing.parser import Parsed, Parser, ParserLost
from storage.transfer.parsing.serving import BUFFER_BYTES


async def import_all(
    target: Target, given: Sequence[Input], format: str | None, report: Report, parser: Parser | None = None
) -> None:
    """File by file; those that need sessions of others come again after them.

    What can be read only once comes last. With a `parser`, files are parsed there while others are brought in.
    """
    waiting = sorted(given, key=lambda each: each.size() is None)
    with progress("Importing", sum(each.size() or 0 for each in waiting), of_bytes=True) as advance:
        run = _Run(target, format, report, advance, parser)
        while waiting:
            run.expect(waiting)
            later = [each for each in waiting if not await run.take(each)]
            waiting = run.in_turn(later, stuck=len(later) == len(waiting))


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
        self._expected: set[Input] = set()
        self._ahead: set[str] = set()
        self._waits: dict[Input, NotYet] = {}
        self._hopeless: set[Input] = set()

    def expect(self, files: Sequence[Input]) -> None:
        """Has those of the files that can be read again parsed ahead, to be taken in this order."""
        self._ahead.clear()
        if self._parser is not None and not self._parser.is_lost:
            ahead = [each for each in files if each.path is not None and each.size() is not None]
            # A dry run copies what it looks at, which is not to be done while a file is taken.
            waits = {each for each in ahead if not self._report.dry and self._is_patient(each)}
            wanted = [Wanted(each.name, str(each.path), self._format, each in waits) for each in ahead]
            self._parser.want(wanted, self._look)
            self._expected = set(ahead)

    async def _look(self, steps: Sequence[Step]) -> NotYet | None:
        """What a file that begins with these steps has to wait for, as far as it is not in the files before it."""
        told = [step for step in steps if isinstance(step, ForeignSession)]
        self._ahead.update(step.id for step in told if step.id is not None)
        with contextlib.suppress(errors.SapwoodError):  # which whoever takes the file will meet
            for step in told:
                not_yet = await has_to_wait(self._target, step)
                if not_yet is not None and not_yet.needed - self._ahead:
                    return not_yet
        return None

    def _is_patient(self, given: Input) -> bool:
        """Whether a file is to wait for a session that it needs."""
        return given.size() is not None and given not in self._hopeless

    def in_turn(self, later: Sequence[Input], *, stuck: bool) -> list[Input]:
        """Files that had to wait, in the order in which to take them again.

        Where they are stuck, as none came in, those come first that need sessions which no other of them brings, and
        do not wait again; if there are none of these, they all need each other.
        """
        self._hopeless.clear()
        if stuck:
            brought = {self._waits[each].id for each in later}
            self._hopeless.update([each for each in later if not self._waits[each].needed & brought] or later)
        return sorted(later, key=lambda each: each not in self._hopeless)

    async def take(self, given: Input) -> bool:
        """Imports a file; False if it has to wait for others."""
        if given.problem is not None:
            self._report.leave(given.name, given.problem, expected=given.expected)
            return True
        heard = 0

        def on_bytes(count: int) -> None:
            nonlocal heard
            heard += count
            self._advance(count)

        told = self._format

        def on_format(name: str) -> None:
            nonlocal told
            told = name

        try:
            with self._source(given, on_bytes) as source:
                patient = self._is_patient(given)
                told, done = await import_document(self._target, source, defer=patient, on_format=on_format)
                self._report.add(told, given.name, done)
        except NotYet as error:
            self._advance(-heard)
            self._waits[given] = error
            return False
        except OSError as error:
            self._report.fail(given.name, f"can't be read: {error.strerror}")
        except ParserLost:
            self._report.fail(given.name, "the process that parsed it has ended before it")
        except errors.Unavailable:
            raise
        except errors.SapwoodError as error:
            self._report.leave(given.name, error.message, expected=given.expected or told is not None)
        return True

    @contextlib.contextmanager
    def _source(self, given: Input, on_bytes: Callable[[int], None]) -> Iterator[Source]:
        if self._parser is not None and not self._parser.is_lost and given in self._expected:
            yield Parsed(self._parser, on_bytes)
            return
        file = _Heard(0 if given.path is None else str(given.path), on_bytes)
        with io.BufferedReader(file, BUFFER_BYTES) as stream:
            yield Here(given.name, stream, self._format)


class _Heard(io.FileIO):
    """A file that says how much of it was read."""

    def __init__(self, file: str | int, on_bytes: Callable[[int], None]) -> None:
        super().__init__(file, closefd=not isinstance(file, int))
        self._on_bytes = on_bytes

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._on_bytes(count)
        return count
