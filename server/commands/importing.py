"""`sapwood import`: logs of known formats into a space."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from server.commands.options import DEFAULTS, DatabaseUrl, DataDir, Json, Space, settings_of
from server.commands.terminal import fail, opened, print_json, progress
from server.settings import Settings
from storage import errors, formats, text
from storage.formats import deepseek_harness
from storage.formats.foreign import Reading
from storage.importing import Imported, import_reading
from storage.store import Store

TOGETHER = deepseek_harness.FORMAT
"""The format whose files name each other."""


def _format(value: str | None) -> str | None:
    if value is not None and value not in formats.FORMATS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(formats.FORMATS)}")
    return value


def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Logs; give those together that belong together.")
    ],
    format: Annotated[
        str | None,
        typer.Option(callback=_format, help=f"{', '.join(formats.FORMATS)}. By default told by the content."),
    ] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="The session to put the roots under.")] = None,
    as_json: Json = False,
    space: Space = "default",
    database_url: DatabaseUrl = DEFAULTS.database_url,
    data_dir: DataDir = DEFAULTS.data_dir,
) -> None:
    """Reads logs into a space. Each file's sessions come in whole or, where one is refused, not at all."""
    settings = settings_of(database_url=database_url, data_dir=data_dir)
    done = _Done(as_json)
    asyncio.run(_import_all(settings, space, files, format, parent, done))
    done.print()
    if done.failed:
        raise typer.Exit(1)


@dataclass
class _Done:
    """What was imported, and what was not."""

    as_json: bool
    imported: list[tuple[str, list[str], Imported]] = field(default_factory=list)
    failed: list[tuple[list[str], str]] = field(default_factory=list)
    files: Counter[str] = field(default_factory=Counter)

    def fail(self, files: list[str], message: str) -> None:
        """Takes down what could not be imported, and says so."""
        self.failed.append((files, message))
        named = len(files) != 1 or files[0] in message
        fail(message if named else f"{files[0]}: {message}")

    def print(self) -> None:
        """The summary, for people or for machines."""
        if self.as_json:
            print_json(self._document())
        elif self.imported:
            self._print_table()

    def _document(self) -> dict[str, Any]:
        return {
            "imported": [
                {
                    "format": format,
                    "files": files,
                    "sessions": done.sessions,
                    "forks": done.forks,
                    "otherNodes": done.nodes,
                    "events": done.events,
                    "ids": list(done.ids.values()),
                    "warnings": done.warnings,
                }
                for format, files, done in self.imported
            ],
            "failed": [{"files": files, "message": message} for files, message in self.failed],
        }

    def _print_table(self) -> None:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("Format", min_width=max(map(len, formats.FORMATS)))
        for name in ("Files", "Sessions", "Forks", "Other nodes", "Events", "Warnings"):
            table.add_column(name, justify="right")
        for format in dict.fromkeys(format for format, _, _ in self.imported):
            found = [done for name, _, done in self.imported if name == format]
            counts = [self.files[format]]
            counts += [sum(getattr(done, name) for done in found) for name in ("sessions", "forks", "nodes", "events")]
            table.add_row(format, *(f"{count:,}" for count in counts), str(sum(len(done.warnings) for done in found)))
        console = Console()
        console.print(table)
        for _, files, done in self.imported:
            for warning in done.warnings:
                console.print(f"{', '.join(files)}: {warning}", markup=False, highlight=False, soft_wrap=True)


async def _import_all(
    settings: Settings, space: str, files: list[Path], format: str | None, parent: str | None, done: _Done
) -> None:
    """File by file; those whose format has files name each other at the end, as one."""
    together: list[tuple[str, str]] = []
    async with opened(settings) as store:
        if parent is not None and await store.sessions.get(space, parent) is None:
            raise errors.NotFound(f"--parent: no session {parent!r} in space {space!r} of {store.database.name}")
        for path in files:
            name = text.clean(str(path))
            try:
                content = path.read_bytes().decode()
                readings = formats.read([(name, content)], format)
            except OSError as error:
                done.fail([name], f"can't be read: {error.strerror}")
            except UnicodeDecodeError as error:
                done.fail([name], f"is not UTF-8 text (at byte {error.start})")
            except errors.BadInput as error:
                done.fail([name], error.message)
            else:
                done.files[readings[0].format] += 1
                if readings[0].format == TOGETHER:
                    together.append((name, content))
                else:
                    await _import(store, space, [name], readings, parent, done)
        if together:
            names = [name for name, _ in together]
            try:
                readings = formats.read(together, TOGETHER)
            except errors.BadInput as error:
                done.fail(names, error.message)
            else:
                await _import(store, space, names, readings, parent, done)


async def _import(
    store: Store, space: str, files: list[str], readings: list[Reading], parent: str | None, done: _Done
) -> None:
    total = sum(len(session.events) for reading in readings for session in reading.sessions)
    what = files[0] if len(files) == 1 else f"{len(files)} files"
    with progress(f"Importing {what}", total) as advance:
        for reading in readings:
            held = _files_of(reading, files)
            try:
                imported = await import_reading(store, space, reading, parent_id=parent, progress=advance)
            except errors.SapwoodError as error:
                done.fail(held, error.message)
            else:
                done.imported.append((reading.format, held, imported))


def _files_of(reading: Reading, files: list[str]) -> list[str]:
    """Those of the files that a reading comes from: where several were read as one, each session's key names its."""
    keys = [session.key for session in reading.sessions]
    return [name for name in files if any(f"{name} line " in key for key in keys)] if len(files) > 1 else files
