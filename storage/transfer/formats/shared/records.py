"""Split documents into records: JSON lines, items of a JSON list, one document, or a stream of YAML documents.

Documents are streamed: only one line, one item, or a document that is a single object is in memory at a time. The lists
in `PARTS` are read item by item even inside such an object. A value is decoded the same however the document is laid
out and however long it is.
"""

import io
from collections.abc import Iterator
from functools import reduce
from typing import Any, BinaryIO

from storage import errors
from storage.transfer.formats.shared import limits, yaml_stream
from storage.transfer.formats.shared.json_decoding import BadNumber, worse
from storage.transfer.formats.shared.json_splitting import MalformedJson, Scanner, chained
from storage.transfer.formats.shared.lines import (
    MARK,
    Line,
    Lines,
    begins_with_object,
    parse_line,
    parse_lines,
    read_line,
)
from storage.transfer.formats.shared.record import (
    BrokenRecord,
    Record,
    UnparsedText,
    read_record,
    too_long,
)

PARTS = frozenset({"samples"})
"""Lists of a document's outermost object whose items are records of their own."""
WHOLE_BYTES = 16 * 1024 * 1024
"""Documents with line breaks up to this size are decoded in one go, larger ones item by item."""


def read_records(name: str, stream: BinaryIO) -> Iterator[Record | BrokenRecord]:
    """Yield the records of a document. A byte order mark, CRLF and blank lines are allowed.

    Raises BadInput for an empty document.
    """
    head = stream.readline(WHOLE_BYTES + 1)
    if len(head) > WHOLE_BYTES and _is_listed(head.removeprefix(MARK)):
        yield from _split(name, head.removeprefix(MARK), stream, 1)
        return
    lines = Lines(stream, head=head)
    first = next(lines, None)
    if first is None:
        raise errors.BadInput(f"{name}: the document is empty")
    opening = _opening(first.content)
    if opening in (b"[", b"{") and len(first.content) > (WHOLE_BYTES if opening == b"[" else limits.MAX_RECORD_BYTES):
        yield from _split(name, first.content, stream, first.number)
        return
    record = read_line(name, first)
    if isinstance(record, BrokenRecord):
        yield from _long(name, first, record, stream)
        return
    second = next(lines, None)
    if second is None:
        yield from _document(name, record, first.content)
        return
    yield record
    yield from parse_line(name, second)
    del head, first, record, second  # or they would stay in memory until the last line
    yield from parse_lines(name, lines)


def is_json_lines(first: Record | BrokenRecord) -> bool:
    """Whether a document with this first line is JSON lines, rather than a single value."""
    return isinstance(first, Record) and isinstance(first.value, dict) and not PARTS & first.value.keys()


def _opening(content: bytes) -> bytes:
    return content.lstrip()[:1]


def _taken(stream: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or all that are left."""
    parts = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _long(name: str, first: Line, reason: BrokenRecord, stream: BinaryIO) -> Iterator[Record | BrokenRecord]:
    """The records of a document whose first line is not one: a value over many lines, a broken one, or not JSON."""
    content = first.content
    if len(content) > limits.MAX_RECORD_BYTES:
        yield from _texts(name, chained(content, stream), first.number, reason.reason)
        return
    if first.whole:
        content += _taken(stream, WHOLE_BYTES + 1 - len(content))
    if len(content) <= WHOLE_BYTES:
        record = read_record(name, content)
        if isinstance(record, Record):
            yield from _document(name, record, content)
            return
        reason = record
    elif not content.endswith(b"\n"):
        content += stream.readline(limits.MAX_RECORD_BYTES)
    if _is_lines(name, first, content):
        yield from parse_lines(name, Lines(chained(content, stream), first.number))
        return
    opening = _opening(content)
    if _is_listed(content) or (opening == b"{" and len(content) > WHOLE_BYTES):
        yield from _split(name, content, stream)
    else:
        yield from _texts(name, chained(content, stream), first.number, reason.reason)


def _is_listed(content: bytes) -> bool:
    """Whether a document is a list, or an object that may contain one of `PARTS`."""
    opening = _opening(content)
    return opening == b"[" or (opening == b"{" and any(b'"%s"' % part.encode() in content for part in PARTS))


def _is_lines(name: str, first: Line, content: bytes) -> bool:
    """Whether the first line begins with a whole object, or the second one is a record, so that only one is broken."""
    if begins_with_object(first):
        return True
    second = next(Lines(io.BytesIO(content[len(first.content) :]), first.number + 1), None)
    return second is not None and _opening(second.content) == b"{" and isinstance(read_line(name, second), Record)


def _texts(name: str, stream: BinaryIO, first: int, reason: str) -> Iterator[Record | BrokenRecord]:
    for index, (number, content) in enumerate(yaml_stream.documents(stream, limits.MAX_RECORD_BYTES, first)):
        location = f"{name} document at line {number}" if index else name
        if content is None:
            yield BrokenRecord(location, f"{reason}; as YAML it is {too_long()}")
            continue
        try:
            yield Record(location, UnparsedText(content.decode(), reason))
        except UnicodeDecodeError:
            yield Record(location, UnparsedText(content.decode("utf-8", "replace"), reason), repaired=True)


def _document(name: str, record: Record, content: bytes) -> Iterator[Record | BrokenRecord]:
    """The records of a document that was decoded in one go."""
    value = record.value
    if (record.repaired or record.bad_number) and _is_listed(content):
        yield from _mended(name, record, content)
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield record._replace(location=f"{name} [{index}]", value=item)
        return
    if not isinstance(value, dict):
        yield record
        return
    yield record._replace(value=_without_parts(value))
    for part in PARTS & value.keys():
        items = value[part] if isinstance(value[part], list) else []
        for index, item in enumerate(items):
            yield record._replace(location=f"{name} {part}[{index}]", value=item, part=part)


def _mended(name: str, record: Record, content: bytes) -> Iterator[Record | BrokenRecord]:
    """The records of a list or object decoded in one go, each with `repaired` and `bad_number` of its own bytes."""
    found = list(_split(name, content, io.BytesIO()))
    if isinstance(record.value, dict):
        fields = [each for each in found if isinstance(each, Record) and each.part not in PARTS]
        repaired = any(each.repaired for each in fields)
        bad_number = reduce(worse, (each.bad_number for each in fields), None)
        yield Record(name, _without_parts(record.value), repaired=repaired, bad_number=bad_number)
        found = [each for each in found if isinstance(each, BrokenRecord) or each.part in PARTS]
    yield from found


def _without_parts(value: dict[str, Any]) -> dict[str, Any]:
    return {name: [] if name in PARTS and isinstance(item, list) else item for name, item in value.items()}


def _split(name: str, content: bytes, stream: BinaryIO, number: int | None = None) -> Iterator[Record | BrokenRecord]:
    """The records of a list or object that begins with `content`, as far as it can be read.

    `number` is that of its line, if further lines may follow.
    """
    scanner = Scanner(content, stream, limits.MAX_RECORD_BYTES)
    try:
        yield from _list(f"{name} ", scanner) if scanner.peek() == b"[" else _object(name, scanner)
    except MalformedJson as malformed:
        yield BrokenRecord(malformed.location or name, malformed.reason)
        return
    if number is not None:
        yield from parse_lines(name, Lines(chained(scanner.rest(), stream), number))
    elif scanner.peek():
        yield BrokenRecord(name, "not JSON: more text follows the end of the document")


def _list(location: str, scanner: Scanner, part: str | None = None) -> Iterator[Record | BrokenRecord]:
    index = -1
    try:
        for index, item in enumerate(scanner.items()):
            found = _found(f"{location}[{index}]", item)
            yield found._replace(part=part) if isinstance(found, Record) else found
    except MalformedJson as malformed:
        malformed.location = f"{location}[{index + 1}]"
        raise


def _object(name: str, scanner: Scanner) -> Iterator[Record | BrokenRecord]:
    fields: dict[str, Any] = {}
    size = 0
    yielded = repaired = False
    bad_number: BadNumber | None = None
    for key in map(_key, scanner.fields()):
        if key in PARTS and scanner.peek() == b"[":
            if not yielded:
                yield Record(name, {**fields, key: []}, repaired=repaired, bad_number=bad_number)
            yielded, fields, repaired, bad_number = True, {}, False, None
            yield from _list(f"{name} {key}", scanner, key)
            continue
        content = scanner.value()
        size += len(content or b"")
        found = _found(f"{name} {key}", content if size <= limits.MAX_RECORD_BYTES else None)
        if isinstance(found, BrokenRecord):
            yield found
            continue
        fields[key] = found.value
        repaired, bad_number = repaired or found.repaired, worse(bad_number, found.bad_number)
    if fields or not yielded:
        yield Record(name, fields, "more" if yielded else None, repaired, bad_number)


def _key(content: bytes | None) -> str:
    found = _found("", content)
    if isinstance(found, BrokenRecord) or not isinstance(found.value, str) or found.bad_number:
        raise MalformedJson("not JSON: the name of a field must be a string")
    return found.value


def _found(location: str, content: bytes | None) -> Record | BrokenRecord:
    return BrokenRecord(location, too_long()) if content is None else read_record(location, content)
