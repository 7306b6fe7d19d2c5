"""Splits a YAML stream into its documents without parsing them.

A line that begins with `---` or `...` is always a marker, even inside quotes and blocks, so looking at lines is enough.
https://yaml.org/spec/1.2.2/#92-streams
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_START = re.compile(rb"---(?:\s|\Z)")
_END = re.compile(rb"\.\.\.(?:\s|\Z)")
_BETWEEN = re.compile(rb"\s*(?:[%#].*)?\Z|\.\.\.(?:\s|\Z)", re.DOTALL)
"""A line between documents, such as a comment or a directive."""

_PIECE = 1024 * 1024
"""Longer lines are read in pieces of this many bytes."""


class YamlDocument(NamedTuple):
    """The text of a document, None if it is too long, and the number of its first line."""

    line: int
    content: bytes | None


def documents(stream: BinaryIO, limit: int, line: int = 1) -> Iterator[YamlDocument]:
    """Yield the documents of a stream whose first line has the number `line`. Content over `limit` bytes is None.

    Comments after the last document are dropped, unless there is nothing else.
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
    """Lines with their numbers, long ones in several pieces; the flag says whether a line begins with the piece."""
    begins = True
    while piece := stream.readline(_PIECE):
        yield number, piece, begins
        begins = piece.endswith(b"\n")
        number += begins


class _Collector:
    """Collects the lines of a document. `has_content`: there is more than may be between documents."""

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
