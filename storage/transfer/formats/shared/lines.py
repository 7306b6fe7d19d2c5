"""Splits a JSON lines document into lines, and parses them."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from storage.transfer.formats.shared import limits
from storage.transfer.formats.shared.json_splitting import CHUNK
from storage.transfer.formats.shared.record import BrokenRecord, Record, read_record, too_long
from storage.transfer.formats.shared.spliced_lines import splice

MARK = b"\xef\xbb\xbf"
"""The byte order mark."""


class Line(NamedTuple):
    """A line that is not blank, with its number from 1; `whole` says whether it ends with a line feed."""

    number: int
    content: bytes
    whole: bool = True


def parse_line(name: str, found: Line) -> list[Record | BrokenRecord]:
    """Parse a line of a JSON lines document: one record, or what is left of a line that is not one.

    Such a line gives each whole object on it, and one broken record if anything else is on it.
    """
    record = read_line(name, found)
    return [record] if isinstance(record, Record) else _spliced(record, found) or [record]


def read_line(name: str, found: Line) -> Record | BrokenRecord:
    """Parse a line as one record."""
    location = f"{name} line {found.number}"
    if len(found.content) > limits.MAX_RECORD_BYTES:
        return BrokenRecord(location, too_long())
    record = read_record(location, found.content)
    if isinstance(record, BrokenRecord) and not found.whole and found.content.rstrip()[-1:] not in (b"]", b"}"):
        return BrokenRecord(location, f"the last line is cut off: {record.reason}")
    return record


def _spliced(broken: BrokenRecord, found: Line) -> list[Record | BrokenRecord]:
    """The whole objects on a line that is not one, and its broken rest; none if it has no whole object."""
    if len(found.content) > limits.MAX_RECORD_BYTES:
        return []
    line = found.content.decode("utf-8", "replace")
    objects, broken_at = splice(line)
    if not objects:
        return []
    repaired = "\ufffd" in line and "\ufffd".encode() not in found.content
    records: list[Record | BrokenRecord] = []
    for number, (start, end) in enumerate(objects, 1):
        record = read_record(f"{broken.location} object {number}", line[start:end].encode("utf-8", "surrogatepass"))
        records.append(record._replace(repaired=repaired) if isinstance(record, Record) else record)
    if broken_at is not None:
        kept = f"{len(objects)} whole object{'s' if len(objects) > 1 else ''} of the line kept"
        records.append(BrokenRecord(broken.location, f"broken from column {broken_at + 1} on, {kept}"))
    return records


def begins_with_object(found: Line) -> bool:
    """Whether the first thing on a line, except for NUL bytes, is a whole object, whatever follows it."""
    line = found.content.decode("utf-8", "replace").lstrip(" \t\r\n\0")
    return line.startswith("{") and next((start for start, _ in splice(line).objects), None) == 0


def parse_lines(name: str, lines: Iterator[Line]) -> Iterator[Record | BrokenRecord]:
    """Parse lines as `parse_line`."""
    for line in lines:
        yield from parse_line(name, line)


class Lines(Iterator[Line]):
    """Iterates over the lines that are not blank. Numbers start at `first`; `head` is what was read of that line.

    Of a line that is too long only the beginning is returned; the next call skips the rest. Not a generator, which
    would keep the current line alive: a line can take a large part of the memory.
    """

    def __init__(self, stream: BinaryIO, first: int = 1, head: bytes = b"") -> None:
        self._stream = stream
        self._number = first - 1
        self._head = head
        self._broken_off = False

    def __next__(self) -> Line:
        while True:
            if self._broken_off:
                _skip_line(self._stream)
            content, self._head = self._head, b""
            if not content.endswith(b"\n"):
                content += self._stream.readline(limits.MAX_RECORD_BYTES + 1 - len(content))
            if not content:
                raise StopIteration
            self._number += 1
            if self._number == 1:
                content = content.removeprefix(MARK)
            whole = content.endswith(b"\n")
            self._broken_off = len(content) > limits.MAX_RECORD_BYTES and not whole
            if content and not content.isspace():
                return Line(self._number, content, whole)


def _skip_line(stream: BinaryIO) -> None:
    while (more := stream.readline(CHUNK)) and not more.endswith(b"\n"):
        pass
