"""`sapwood import`: the command line, and what it sets up for an import."""

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
from storage.transfer.parsing.memory import return_large_blocks
from storage.transfer.parsing.parser import Parser

PARSER_BYTES = 8 * 1024 * 1024
"""From this total size on, a process of its own parses the files. For less, starting it takes too long."""


def _format(value: str | None) -> str | None:
    if value is not None and value not in registry.FORMATS:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(registry.FORMATS)}")
    return value


@takes_settings("database_url", "data_dir")
def import_files(
    settings: Settings,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders and globs; - is standard input.")],
    format: Annotated[
        str | None,
        typer.Option(callback=_format, help=f"{', '.join(registry.FORMATS)}. By default detected by the content."),
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="ID", help="The session that becomes the parent of all roots.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and compare, but write nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Keep importing as the files grow, until Ctrl-C.")] = False,
    as_json: Json = False,
    space: Space = "default",
) -> None:
    """Import logs of agents into a space.

    Sessions that already exist are left as they are; a log that has grown is continued.
    """
    if "" in paths:
        raise typer.BadParameter("a path is empty", param_hint="PATH…")
    if follow and dry_run:
        raise typer.BadParameter("can't be combined with --dry-run", param_hint="--follow")
    if follow and "-" in paths:
        raise typer.BadParameter("standard input can't be followed: name a file", param_hint="--follow")
    report = Report(as_json, dry=dry_run)
    with contextlib.ExitStack() as stack:
        if follow:
            work = partial(follow_all, paths=paths, format=format, report=report)
        else:
            relax_garbage_collection()
            return_large_blocks()
            files = inputs(paths)
            parser = _parser(files)
            stack.enter_context(parser or contextlib.nullcontext())
            work = partial(import_all, files=files, format=format, report=report, parser=parser)
        asyncio.run(_with_target(settings, space, parent, report, work))
    report.print()
    if report.failed:
        raise typer.Exit(1)


def relax_garbage_collection() -> None:
    """Makes Python look for reference cycles less often. An import makes few; this saves a tenth of its time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _parser(files: Sequence[Input]) -> Parser | None:
    """A parsing process, if there is enough to read and the machine can run one."""
    if (os.cpu_count() or 1) == 1 or sum(each.size() or 0 for each in files) < PARSER_BYTES:
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
