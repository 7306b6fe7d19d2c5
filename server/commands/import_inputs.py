"""What `sapwood import` is to read: files, folders, globs and standard input."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from storage import text

STDIN = "-"
LOG_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".traj"})


class Input(NamedTuple):
    """A document to read; its path is None for standard input. `expected`: a log by its suffix, or named one by one."""

    name: str
    path: Path | None
    expected: bool = True


def inputs(given: Sequence[str]) -> list[Input]:
    """All documents that are named, each once, those of folders in the order of their paths.

    A path of nothing is one of them, so that reading it says what is wrong.
    """
    found: dict[str, Input] = {}
    for argument in given:
        for each in _of(argument):
            found.setdefault(STDIN if each.path is None else os.path.realpath(each.path), each)
    return list(found.values())


def _of(argument: str) -> Iterator[Input]:
    path = Path(argument)
    if argument == STDIN:
        yield Input("standard input", None)
    elif path.is_dir():
        yield from _inside(path)
    elif path.exists() or not glob.has_magic(argument):
        yield Input(text.clean(argument), path)
    else:
        matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207  Path's takes no absolute patterns
        for match in map(Path, matches):
            yield from _inside(match) if match.is_dir() else [Input(text.clean(str(match)), match)]
        if not matches:
            yield Input(text.clean(argument), path)


def _inside(folder: Path) -> Iterator[Input]:
    """The files under a folder, without hidden ones."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file():
                yield Input(text.clean(str(path)), path, path.suffix.lower() in LOG_SUFFIXES)
