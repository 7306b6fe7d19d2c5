"""What `sapwood import` is to read: files, folders, globs and standard input."""

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
    """A document to read; its path is None for standard input. `expected`: a log by its suffix, or named one by one.

    `problem` is why it can't be read, where that is known beforehand.
    """

    name: str
    path: Path | None
    expected: bool = True
    problem: str | None = None

    def size(self) -> int | None:
        """Its bytes, as far as they can be told; None for what can be read only once, as a pipe."""
        if self.path is None or self.problem is not None:
            return None
        try:
            status = self.path.stat()
        except OSError:
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else None


def inputs(given: Sequence[str]) -> list[Input]:
    """All documents that are named, each once, those of folders in the order of their paths.

    A path of nothing is one of them, so that reading it says what is wrong.
    """
    found: dict[str, Input] = {}
    for argument in given:
        for each in _of(argument):
            found.setdefault(_identity(each), each)
    return list(found.values())


def _identity(given: Input) -> str:
    if given.path is None:
        return STDIN
    return str(given.path) if given.problem is not None else os.path.realpath(given.path)


def _of(argument: str) -> Iterator[Input]:
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
        names = sorted(glob.glob(argument, recursive=True)) or names  # noqa: PTH207  Path's takes no absolute patterns
    for name in names:
        path = Path(name)
        yield from _inside(path) if stat.S_ISDIR(_mode(path)) else [Input(text.clean(name), path)]


def _mode(path: Path) -> int:
    """What kind of a file it is, or 0 if that can't be told: reading it says why. Raises ValueError for no path."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _inside(folder: Path) -> Iterator[Input]:
    """The files under a folder, without hidden ones, and what of it can't be looked at; links are followed, but no
    folder is entered twice."""
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
    """What is no folder; a link to nothing may be a log by its name alone."""
    name = text.clean(str(path))
    expected = path.suffix.lower() in LOG_SUFFIXES
    try:
        if stat.S_ISREG(mode):
            yield Input(name, path, expected)
        elif mode or path.stat():
            yield Input(name, path, expected, "can't be read: neither a file nor a folder")
    except FileNotFoundError as error:
        if path.is_symlink():  # else it has gone since it was listed
            yield _broken(path, error)._replace(expected=expected)
    except OSError as error:
        yield _broken(path, error)


def _broken(path: Path, error: OSError | ValueError) -> Input:
    why = error.strerror if isinstance(error, OSError) else error
    return Input(text.clean(str(path)), path, problem=f"can't be read: {why}")
