"""Documents into records: JSON lines, the items of a JSON list, or one document; each with its place for messages.

A document is read as a stream: what is in memory at a time is one line, one item, or a document that is a single
object. The lists named in `PARTS` are taken out of such an object item by item too.
"""

import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, NoReturn

import ijson
import orjson
from ijson.common import ObjectBuilder
from pydantic import ValidationError

from storage import errors, text

PARTS = frozenset({"samples"})
"""Lists of a document's outermost object whose items are records of their own."""
MAX_RECORD_BYTES = 64 * 1024 * 1024
"""The longest line that is read; a longer one is a broken record."""
WHOLE_BYTES = 16 * 1024 * 1024
"""Up to here a document of many lines is decoded at once, beyond item by item."""
MARK = b"\xef\xbb\xbf"
"""The byte order mark."""
_HUGE_INTEGER = re.compile(rb"[0-9]{20}")


class Record(NamedTuple):
    """A decoded JSON value; `place` names the document and the line or item.

    An item of a list in `PARTS` has the list's name as `part`; the fields that stand behind such a list come last, as
    a record of the part `more`. `repaired`: bytes that were not UTF-8 were replaced by U+FFFD.
    """

    place: str
    value: Any
    part: str | None = None
    repaired: bool = False


class Broken(NamedTuple):
    """A record that could not be read, and why."""

    place: str
    why: str

    def error(self) -> errors.BadInput:
        """The refusal of it."""
        return errors.BadInput(f"{self.place}: {self.why}")


class Unparsed(NamedTuple):
    """The value of a document that is not JSON: its text, and why it is none."""

    content: str
    why: str


def records(name: str, stream: BinaryIO) -> Iterator[Record | Broken]:
    """The records of a document; a byte order mark, CRLF and blank lines are fine.

    Raises BadInput for an empty document.
    """
    lines = _lines(stream)
    first = next(lines, None)
    if first is None:
        raise errors.BadInput(f"{name}: the document is empty")
    if _is_list(first.content) and len(first.content) > WHOLE_BYTES:
        yield from _items(name, _Chained(first.content, stream))
        return
    record = line(name, first)
    second = next(lines, None)
    if isinstance(record, Record) and second is None:
        yield from _document(name, record)
    elif isinstance(record, Record) or (second is not None and _is_line(name, second)):
        yield record
        for found in itertools.chain([second] if second else [], lines):
            yield line(name, found)
    else:
        rest = first.content + (second.before + second.content if second else b"")
        yield from _long(name, _Chained(rest, stream), record)


class Line(NamedTuple):
    """A line that is not blank, its number from 1, and the blank ones `before` it. `whole`: a line feed ends it."""

    number: int
    content: bytes
    before: bytes = b""
    whole: bool = True


def line(name: str, found: Line) -> Record | Broken:
    """The record of a line of JSON lines."""
    place = f"{name} line {found.number}"
    if len(found.content) > MAX_RECORD_BYTES:
        return Broken(place, f"the line is longer than {MAX_RECORD_BYTES} bytes")
    record = _record(place, found.content)
    if isinstance(record, Broken) and not found.whole:
        return Broken(place, f"the last line is cut off: {record.why}")
    return record


def is_line(first: Record | Broken) -> bool:
    """Whether a document whose first line is this consists of lines, and is not one value."""
    return isinstance(first, Record) and isinstance(first.value, dict) and not PARTS & first.value.keys()


def decode(source: bytes | str, place: str) -> object:
    """The value of JSON text. Raises BadInput, naming the place, for anything else; NaN is not JSON.

    Raises UnicodeDecodeError for bytes that are not UTF-8.
    """
    content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if not _HUGE_INTEGER.search(content):  # which orjson would round
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:  # what follows says why, and takes lone surrogates
            pass
    try:
        return json.loads(source, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno} column {error.colno}"
        raise errors.BadInput(f"{place}: not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        raise errors.BadInput(f"{place}: nested deeper than {text.MAX_NESTING} levels") from error
    except ValueError as error:
        raise errors.BadInput(f"{place}: not JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _record(place: str, content: bytes) -> Record | Broken:
    try:
        try:
            return Record(place, decode(content, place))
        except UnicodeDecodeError:
            return Record(place, decode(content.decode("utf-8", "replace"), place), repaired=True)
    except errors.BadInput as error:
        return Broken(place, error.message.removeprefix(f"{place}: "))


def _lines(stream: BinaryIO) -> Iterator[Line]:
    blank = b""
    for number in itertools.count(1):
        content = stream.readline(MAX_RECORD_BYTES + 1)
        if not content:
            return
        if number == 1:
            content = content.removeprefix(MARK)
        whole = content.endswith(b"\n")
        if not whole and len(content) > MAX_RECORD_BYTES and not _is_list(content):
            _skip_line(stream)
        if content.strip():
            yield Line(number, content, blank, whole)
            blank = b""
        else:
            blank += content


def _skip_line(stream: BinaryIO) -> None:
    while (more := stream.readline(MAX_RECORD_BYTES)) and not more.endswith(b"\n"):
        pass


def _is_list(content: bytes) -> bool:
    return content.lstrip()[:1] == b"["


def _is_line(name: str, found: Line) -> bool:
    """Whether a line is a record of its own, so that the document consists of lines though the first is broken."""
    return found.content.lstrip()[:1] == b"{" and isinstance(line(name, found), Record)


class _Chained:
    """Bytes, and then what is left of a stream. It has no `readinto`, so that ijson reads it."""

    def __init__(self, head: bytes, stream: "BinaryIO | _Chained") -> None:
        self._head = io.BytesIO(head)
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._head.read(size) or self._stream.read(size)


def _take(stream: _Chained, size: int) -> bytes:
    parts = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _long(name: str, stream: _Chained, first: Record | Broken) -> Iterator[Record | Broken]:
    """The records of a document that is one value over many lines, or none that is JSON."""
    content = _take(stream, WHOLE_BYTES + 1)
    if _is_list(content) and len(content) > WHOLE_BYTES:
        yield from _items(name, _Chained(content, stream))
        return
    opening = content.lstrip()[:1]
    if opening == b"{" and len(content) > WHOLE_BYTES:
        yield from _object(name, _Chained(content, stream))
        return
    record = _record(name, content)
    if isinstance(record, Record):
        yield from _document(name, record)
    elif opening == b"[" and "nested" not in record.why:
        yield from _items(name, io.BytesIO(content), record.why)
    elif len(content) > WHOLE_BYTES:
        yield Broken(name, f"{first.why if isinstance(first, Broken) else record.why}")
    else:
        yield Record(name, Unparsed(content.decode("utf-8", "replace"), record.why))


def _document(name: str, record: Record) -> Iterator[Record]:
    """The records of a document that was decoded at once."""
    value = record.value
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield record._replace(place=f"{name} [{index}]", value=item)
        return
    lists = {part: value[part] for part in PARTS if isinstance(value.get(part), list)} if isinstance(value, dict) else {}
    yield record._replace(value={**value, **dict.fromkeys(lists, [])} if lists else value)
    for part, items in lists.items():
        for index, item in enumerate(items):
            yield record._replace(place=f"{name} {part}[{index}]", value=item, part=part)


def _items(name: str, stream: Any, why: str | None = None) -> Iterator[Record | Broken]:
    """The items of a list as far as it can be read, and then what broke it, or `why` if that is known."""
    index = -1
    try:
        for index, item in enumerate(ijson.items(stream, "item", use_float=True)):
            yield Record(f"{name} [{index}]", item)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        yield Broken(f"{name} [{index + 1}]" if why is None else name, why or f"not JSON: {_reason(error)}")


def _object(name: str, stream: Any) -> Iterator[Record | Broken]:
    """The records of an object that is too large to be decoded at once."""
    fields: dict[str, Any] = {}
    told = False
    try:
        found = ijson.basic_parse(stream, use_float=True)
        next(found)
        for event, value in found:
            if event != "map_key":
                continue
            first = next(found)
            if value not in PARTS or first[0] != "start_array":
                fields[value] = _built(first, found)
                continue
            yield Record(name, {**fields, value: []})
            told, fields = True, {}
            index = 0
            while (item := next(found))[0] != "end_array":
                yield Record(f"{name} {value}[{index}]", _built(item, found), part=value)
                index += 1
    except (ijson.JSONError, UnicodeDecodeError) as error:
        yield Broken(name, f"not JSON: {_reason(error)}")
        return
    if not told or fields:
        yield Record(name, fields, part="more" if told else None)


def _built(first: tuple[str, Any], found: Iterator[tuple[str, Any]]) -> Any:
    builder = ObjectBuilder()
    depth = 0
    for event, value in itertools.chain([first], found):
        builder.event(event, value)
        depth += event in ("start_map", "start_array")
        depth -= event in ("end_map", "end_array")
        if depth == 0:
            return builder.value
    raise ijson.IncompleteJSONError("the document ends inside a value")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


@contextmanager
def at(place: str) -> Iterator[None]:
    """Makes what pydantic refuses inside a BadInput that names the place and the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise errors.BadInput(f"{place}: {field}: {first['msg']}") from error


def most(values: Sequence[object], fits: Callable[[object], bool]) -> bool:
    """Whether at least half of the values fit, so that a few broken records do not hide a format."""
    fitting = sum(map(fits, values))
    return 0 < fitting and len(values) <= 2 * fitting


def as_object(value: object, place: str) -> dict[str, Any]:
    """The value, which must be a JSON object. Raises BadInput."""
    if not isinstance(value, dict):
        raise errors.BadInput(f"{place}: must be an object, is {shape(value)}")
    return value


def as_list(value: object, place: str) -> list[Any]:
    """The value, which must be a JSON list. Raises BadInput."""
    if not isinstance(value, list):
        raise errors.BadInput(f"{place}: must be a list, is {shape(value)}")
    return value


def as_text(value: object, place: str) -> str:
    """The value, which must be a JSON string. Raises BadInput."""
    if not isinstance(value, str):
        raise errors.BadInput(f"{place}: must be a string, is {shape(value)}")
    return value


def measure(value: object) -> float | None:
    """The value where it is a number that a log can hold as a measure (finite, not negative), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return value


def shape(value: object) -> str:
    """What a JSON value looks like, for a message."""
    match value:
        case Unparsed():
            return "text that is not JSON"
        case dict():
            names = ", ".join(text.clean(name)[:40] for name in list(value)[:6])
            return f"an object with the fields {names}" if value else "an empty object"
        case [dict(first), *_]:
            return f"a list whose first item is {shape(first)}"
        case []:
            return "an empty list"
        case None:
            return "null"
    return f"a {type(value).__name__}"
