"""`sapwood import`: logs of known formats into a space."""

import asyncio
import contextlib
import gc
import io
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from server.commands.import_following import follow_all
from server.commands.import_inputs import Input, inputs
from server.commands.import_report import Report
from server.commands.options import DEFAULTS, DatabaseUrl, DataDir, Json, Space, settings_of
from server.commands.terminal import opened, progress
from server.opening import exists, scratch_store
from server.settings import Settings
from storage import errors, formats
from storage.formats.foreign import ForeignSession, Step
from storage.importing import NotYet, Target, has_to_wait
from storage.importing.rehearsal import Rehearsal
from storage.importing.stream import Here, Source, import_document
from storage.parsing.frames import Wanted
from storage.parsing.memory import give_memory_back
from storage.parsing.parser import Parsed, Parser, ParserLost
from storage.parsing.serving import BUFFER_BYTES

PARSER_BYTES = 8 * 1024 * 1024
"""Of so many bytes on, files are parsed by a process of its own: starting it takes as long as reading less."""


def _format(value: str | None) -> str | None:
    if value is not None and value not in formats.FORMATS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(formats.FORMATS)}")
    return value


def import_files(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders and globs; - is standard input.")],
    format: Annotated[
        str | None,
        typer.Option(callback=_format, help=f"{', '.join(formats.FORMATS)}. By default told by the content."),
    ] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="The session to put the roots under.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and compare, but write nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on reading as the logs grow, until Ctrl-C.")] = False,
    as_json: Json = False,
    space: Space = "default",
    database_url: DatabaseUrl = DEFAULTS.database_url,
    data_dir: DataDir = DEFAULTS.data_dir,
) -> None:
    """Reads logs of agents into a space. What is there already stays, and is gone on with where a log has grown."""
    if "" in paths:
        raise typer.BadParameter("a path is empty", param_hint="PATH…")
    if follow and dry_run:
        raise typer.BadParameter("a dry run has nothing to follow", param_hint="--follow")
    if follow and "-" in paths:
        raise typer.BadParameter("standard input can't be followed: name the file", param_hint="--follow")
    settings = settings_of(database_url=database_url, data_dir=data_dir)
    report = Report(as_json, dry=dry_run)
    with contextlib.ExitStack() as stack:
        if follow:
            work = partial(follow_all, paths=paths, format=format, report=report)
        else:
            ease_collection()
            give_memory_back()
            found = inputs(paths)
            parser = _parser(found)
            stack.enter_context(parser or contextlib.nullcontext())
            work = partial(import_all, given=found, format=format, report=report, parser=parser)
        asyncio.run(_with_target(settings, space, parent, report, work))
    report.print()
    if report.failed:
        raise typer.Exit(1)


def ease_collection() -> None:
    """Has Python look for cycles of objects less often, of which an import makes few: measured, it takes a tenth less
    time so."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _parser(given: Sequence[Input]) -> Parser | None:
    """A process that parses, where there is enough to read, a processor and memory for it."""
    if (os.cpu_count() or 1) == 1 or sum(each.size() or 0 for each in given) < PARSER_BYTES:
        return None
    try:
        return Parser()
    except OSError:
        return None


async def _with_target(
    settings: Settings, space: str, parent: str | None, report: Report, work: Callable[[Target], Awaitable[None]]
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened(settings)) if not report.dry or exists(settings) else None
        if store is None or report.dry:
            scratch = await stack.enter_async_context(scratch_store())
            target: Target = Rehearsal(scratch, store, space, parent_id=parent)
        else:
            target = Target(store, space, parent_id=parent)
        if parent is not None and not await target.has(parent):
            where = "" if store is None else f" of {store.database.name}"
            raise errors.NotFound(f"--parent: no session {parent!r} in space {space!r}{where}")
        await work(target)


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
