"""Finding what `sapwood import` reads: files, folders, globs and standard input."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from storage import text

STDIN = "-"
LOG_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".traj"})


class Input(NamedTuple):
    """A document to read; the path is None for standard input.

    `expected`: it must be a log, as it has the suffix of one or was named by itself. `problem` says why it can't be
    read, where that is known beforehand.
    """

    name: str
    path: Path | None
    expected: bool = True
    problem: str | None = None

    def size(self) -> int | None:
        """The size in bytes, 0 where it is unknown; None for what can be read only once, such as a pipe."""
        if self.path is None or self.problem is not None:
            return None
        try:
            status = self.path.stat()
        except OSError:
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else None


def inputs(arguments: Sequence[str]) -> list[Input]:
    """All documents that the arguments name, each once; those in folders in the order of their paths.

    Includes paths where nothing is, so that reading them says what is wrong.
    """
    found: dict[str, Input] = {}
    for argument in arguments:
        for each in _expanded(argument):
            found.setdefault(_identity(each), each)
    return list(found.values())


def _identity(file: Input) -> str:
    if file.path is None:
        return STDIN
    return str(file.path) if file.problem is not None else os.path.realpath(file.path)


def _expanded(argument: str) -> Iterator[Input]:
    if argument == STDIN:
        yield Input("standard input", None)
        return
    try:
        mode = _mode(Path(argument))
    except ValueError as error:
        yield _broken(Path(argument), error)
        return
    names = [argument]
    if not mode and glob.has_magic(argument):
        names = sorted(glob.glob(argument, recursive=True)) or names  # noqa: PTH207  Path.glob takes no absolute patterns
    for name in names:
        path = Path(name)
        yield from _inside(path) if stat.S_ISDIR(_mode(path)) else [Input(text.clean(name), path)]


def _mode(path: Path) -> int:
    """The type and mode of a file, 0 if unknown: reading it will say why. Raises ValueError for an invalid path."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _inside(folder: Path) -> Iterator[Input]:
    """The files under a folder except hidden ones, and the problems met. Follows links, but enters no folder twice."""
    waiting = [folder]
    entered: set[tuple[int, int]] = set()
    while waiting:
        parent = waiting.pop()
        try:
            status = parent.stat()
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            paths = sorted(path for path in parent.iterdir() if not path.name.startswith("."))
        except OSError as error:
            yield _broken(parent, error)
            continue
        folders = []
        for path in paths:
            mode = _mode(path)
            if stat.S_ISDIR(mode):
                folders.append(path)
            else:
                yield from _entry(path, mode)
        waiting += reversed(folders)


def _entry(path: Path, mode: int) -> Iterator[Input]:
    """The input for an entry that is not a folder. A dangling link is expected if its name is that of a log."""
    name = text.clean(str(path))
    expected = path.suffix.lower() in LOG_SUFFIXES
    try:
        if stat.S_ISREG(mode):
            yield Input(name, path, expected)
        elif mode or path.stat():
            yield Input(name, path, expected, "can't be read: neither a file nor a folder")
    except FileNotFoundError as error:
        if path.is_symlink():  # otherwise it was deleted after it was listed
            yield _broken(path, error)._replace(expected=expected)
    except OSError as error:
        yield _broken(path, error)


def _broken(path: Path, error: OSError | ValueError) -> Input:
    why = error.strerror if isinstance(error, OSError) else error
    return Input(text.clean(str(path)), path, problem=f"can't be read: {why}")
