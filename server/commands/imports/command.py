"""`sapwood import`: logs of known formats into a space."""

import asyncio
import contextlib
import gc
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

import typer

from server.commands.imports.follow import follow_all
from server.commands.imports.inputs import Input, inputs
from server.commands.imports.report import Report
from server.commands.imports.run import import_all
from server.commands.options import Json, Space, takes_settings
from server.commands.terminal import opened
from server.settings import Settings
from server.stores import exists, scratch_store
from storage import errors
from storage.transfer.formats import registry
from storage.transfer.importing import Target
from storage.transfer.importing.dry_run import DryRun
from storage.transfer.parsing.memory import give_memory_back
from storage.transfer.parsing.parser import Parser

PARSER_BYTES = 8 * 1024 * 1024
"""Of so many bytes on, files are parsed by a process of its own: starting it takes as long as reading less."""


def _format(value: str | None) -> str | None:
    if value is not None and value not in registry.FORMATS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(registry.FORMATS)}")
    return value


@takes_settings("database_url", "data_dir")
def import_files(
    settings: Settings,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders and globs; - is standard input.")],
    format: Annotated[
        str | None,
        typer.Option(callback=_format, help=f"{', '.join(registry.FORMATS)}. By default told by the content."),
    ] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="The session to put the roots under.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and compare, but write nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on reading as the logs grow, until Ctrl-C.")] = False,
    as_json: Json = False,
    space: Space = "default",
) -> None:
    """Reads logs of agents into a space. What is there already stays, and is gone on with where a log has grown."""
    if "" in paths:
        raise typer.BadParameter("a path is empty", param_hint="PATH…")
    if follow and dry_run:
        raise typer.BadParameter("a dry run has nothing to follow", param_hint="--follow")
    if follow and "-" in paths:
        raise typer.BadParameter("standard input can't be followed: name the file", param_hint="--follow")
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
            target: Target = DryRun(scratch, store, space, parent_id=parent)
        else:
            target = Target(store, space, parent_id=parent)
        if parent is not None and not await target.has(parent):
            where = "" if store is None else f" of {store.database.name}"
            raise errors.NotFound(f"--parent: no session {parent!r} in space {space!r}{where}")
        await work(target)
