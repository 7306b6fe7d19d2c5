"""`sapwood export`: writing a session or a tree of sessions as text."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from server.commands.options import Space, takes_settings
from server.commands.terminal import opened, progress
from server.settings import Settings
from storage import errors
from storage.transfer import export as exporting
from storage.transfer.export import ExportFormat


@takes_settings("database_url", "data_dir")
def export(
    settings: Settings,
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the session.")],
    format: Annotated[
        ExportFormat,
        typer.Option(help="The whole log (jsonl), texts and cards (yaml), or the messages for a model (openai)."),
    ] = ExportFormat.JSONL,
    tree: Annotated[bool, typer.Option("--tree", help="Export its descendants too.")] = False,
    output: Annotated[Path | None, typer.Option(help="The file to write. By default standard output.")] = None,
    space: Space = "default",
) -> None:
    """Export a session as text that `sapwood import` can read. Only jsonl keeps everything."""
    asyncio.run(_export(settings, space, id, format, tree, output))


async def _export(
    settings: Settings, space: str, id: str, format: ExportFormat, tree: bool, output: Path | None
) -> None:
    async with opened(settings, existing=True) as store:
        if await store.sessions.get(space, id) is None:
            raise errors.NotFound(f"no session {id!r} in space {space!r} of {store.database.name}")
        with _target(output) as target, progress(f"Exporting {id}", None) as advance:
            async for piece in exporting.export(store, space, id, format, tree=tree):
                target.write(piece.encode())
                advance(1)
            if not piece.endswith("\n"):
                target.write(b"\n")


@contextlib.contextmanager
def _target(output: Path | None) -> Iterator[BinaryIO]:
    """The stream to write to. A file gets its name only once it is complete."""
    if output is None:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise errors.SapwoodError(f"can't write to standard output ({error.strerror}): free some space") from error
        return
    try:
        if output.exists() and not output.is_file():
            with output.open("wb") as target:
                yield target
            return
        partial = output.with_name(f"{output.name}.{os.getpid()}.part")
        try:
            with partial.open("xb") as target:
                yield target
            partial.replace(output)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise errors.SapwoodError(
            f"can't write {output} ({error.strerror}): free some space or choose another --output"
        ) from error
