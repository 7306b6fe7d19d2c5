"""Documents into records: JSON lines, or one JSON value over many lines, each record with its place for messages."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from storage import errors, text


class Record(NamedTuple):
    """A decoded JSON value; `place` names the document and, for JSON lines, the line."""

    place: str
    value: Any


@dataclass(frozen=True, slots=True)
class Document:
    """A file's name and its records, at least one."""

    name: str
    records: Sequence[Record]


def document(name: str, content: str) -> Document:
    """The records of a file; a byte order mark, CRLF and blank lines are fine.

    Raises BadInput, with the line, for what is empty or not JSON; NaN and infinities are not JSON.
    """
    lines = [
        (f"{name} line {number}", line)
        for number, line in enumerate(content.removeprefix("\ufeff").split("\n"), 1)
        if line.strip()
    ]
    if not lines:
        raise errors.BadInput(f"{name}: the document is empty")
    try:
        first = decode(lines[0][1], lines[0][0])
    except errors.BadInput:
        return Document(name, [Record(name, decode(content.removeprefix("\ufeff"), name))])
    rest = [Record(place, decode(line, place)) for place, line in lines[1:]]
    return Document(name, [Record(lines[0][0], first), *rest])


def decode(source: str, place: str) -> object:
    """The value of JSON text. Raises BadInput, naming the place, for anything else."""
    try:
        return json.loads(source, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno} column {error.colno}"
        raise errors.BadInput(f"{place}: not JSON: {error.msg} at {where}") from error
    except ValueError as error:
        raise errors.BadInput(f"{place}: not JSON: {error}") from error
    except RecursionError as error:
        raise errors.BadInput(f"{place}: nested deeper than {text.MAX_NESTING} levels") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Makes what pydantic refuses inside a BadInput that names the place and the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise errors.BadInput(f"{place}: {field}: {first['msg']}") from error


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


def shape(value: object) -> str:
    """What a JSON value looks like, for a message."""
    match value:
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
