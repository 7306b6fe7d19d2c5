"""YAML streams taken apart into their documents, none of them parsed.

A line that begins with `---` or `...` is a marker wherever it stands, in quotes and blocks too, so that lines are all
that has to be looked at. https://yaml.org/spec/1.2.2/#92-streams
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_START = re.compile(rb"---(?:\s|\Z)")
_END = re.compile(rb"\.\.\.(?:\s|\Z)")
_BETWEEN = re.compile(rb"\s*(?:[%#].*)?\Z|\.\.\.(?:\s|\Z)", re.DOTALL)
"""A line that is no part of a document, or only of one that follows, such as a comment."""

_PIECE = 1024 * 1024
"""Longer lines are read piece by piece."""


class YamlDocument(NamedTuple):
    """The text of a document, None where it is too long, and the number of its first line."""

    line: int
    content: bytes | None


def documents(stream: BinaryIO, limit: int, line: int = 1) -> Iterator[YamlDocument]:
    """The documents of at most `limit` bytes, given the number of the stream's first line.

    What follows the last one without being one is left out, unless it is all that there is.
    """
    current = _Collector(line, limit)
    found_any = False
    for number, piece, begins in _pieces(stream, line):
        if begins and current.has_content and _START.match(piece):
            yield current.document()
            current, found_any = _Collector(number, limit), True
        current.add(piece)
        if begins and _END.match(piece):
            if current.has_content:
                yield current.document()
                found_any = True
            current = _Collector(number + 1, limit)
    if current.has_content or not found_any:
        yield current.document()


def _pieces(stream: BinaryIO, number: int) -> Iterator[tuple[int, bytes, bool]]:
    """Lines with their numbers, longer ones in several pieces; the last says whether a line begins with it."""
    begins = True
    while piece := stream.readline(_PIECE):
        yield number, piece, begins
        begins = piece.endswith(b"\n")
        number += begins


class _Collector:
    """A document whose end has not come. `begun`: there is more of it than what may stand between documents."""

    def __init__(self, line: int, limit: int) -> None:
        self.has_content = False
        self._line = line
        self._limit = limit
        self._size = 0
        self._parts: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self.has_content = self.has_content or not _BETWEEN.match(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(piece)

    def document(self) -> YamlDocument:
        return YamlDocument(self._line, None if self._size > self._limit else b"".join(self._parts))
