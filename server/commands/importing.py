"""`sapwood import`: logs of known formats into a space."""

import asyncio
import contextlib
import io
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Annotated, Any, BinaryIO

import typer

from server.commands.import_following import follow_all
from server.commands.import_inputs import Input, inputs
from server.commands.import_report import Report
from server.commands.options import DEFAULTS, DatabaseUrl, DataDir, Json, Space, settings_of
from server.commands.terminal import opened, progress
from server.opening import exists, scratch_store
from server.settings import Settings
from storage import errors, formats
from storage.importing import NotYet, Target
from storage.importing.rehearsal import Rehearsal
from storage.importing.stream import import_stream


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
    work = follow_all if follow else _import_all
    asyncio.run(_with_target(settings, space, parent, report, lambda target: work(target, paths, format, report)))
    report.print()
    if report.failed:
        raise typer.Exit(1)


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


async def _import_all(target: Target, paths: Sequence[str], format: str | None, report: Report) -> None:
    """File by file; those that need sessions of others come again after them, and what can't come again comes last."""
    found = await asyncio.to_thread(inputs, paths)
    waiting = sorted(found, key=lambda each: each.size() is None)
    with progress("Importing", sum(each.size() or 0 for each in waiting), of_bytes=True) as advance:
        defer = True
        while waiting:
            later = [each for each in waiting if not await _import(target, each, format, report, advance, defer)]
            defer = len(later) < len(waiting)
            waiting = later


async def _import(
    target: Target, given: Input, format: str | None, report: Report, advance: Callable[[int], None], defer: bool
) -> bool:
    """Imports a file; False if it has to wait for others."""
    if given.problem is not None:
        report.leave(given.name, given.problem, expected=given.expected)
        return True
    heard = 0

    def on_bytes(count: int) -> None:
        nonlocal heard
        heard += count
        advance(count)

    told = ""

    def on_format(name: str) -> None:
        nonlocal told
        told = name

    try:
        with _open(given, on_bytes) as stream:
            patient = defer and given.size() is not None
            told, done = await import_stream(target, given.name, stream, format, defer=patient, on_format=on_format)
            report.add(told, given.name, done)
    except NotYet:
        advance(-heard)
        return False
    except OSError as error:
        report.fail(given.name, f"can't be read: {error.strerror}")
    except errors.Unavailable:
        raise
    except errors.SapwoodError as error:
        expected = given.expected or bool(told) or format is not None
        report.leave(given.name, error.message, expected=expected)
    return True


class _Heard(io.FileIO):
    """A file that says how much of it was read."""

    def __init__(self, file: str | int, on_bytes: Callable[[int], None]) -> None:
        super().__init__(file, closefd=not isinstance(file, int))
        self._on_bytes = on_bytes

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._on_bytes(count)
        return count


@contextlib.contextmanager
def _open(given: Input, on_bytes: Callable[[int], None]) -> Iterator[BinaryIO]:
    with io.BufferedReader(_Heard(0 if given.path is None else str(given.path), on_bytes), 1024 * 1024) as stream:
        yield stream
