"""Checks decoded values; messages say where and how one is not what it must be."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from storage import errors, text
from storage.transfer.formats.shared.record import UnparsedText


@contextmanager
def validating(location: str) -> Iterator[None]:
    """Turn pydantic's ValidationError into BadInput that names the location and the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise errors.BadInput(f"{location}: {field}: {first['msg']}") from error


def most(values: Sequence[object], fits: Callable[[object], bool]) -> bool:
    """Whether at least half of the values fit: a few broken records must not hide a format."""
    fitting = sum(map(fits, values))
    return fitting > 0 and len(values) <= 2 * fitting


def as_object(value: object, location: str) -> dict[str, Any]:
    """Return the value if it is a JSON object. Raises BadInput otherwise."""
    if not isinstance(value, dict):
        raise errors.BadInput(f"{location}: must be an object, is {shape(value)}")
    return value


def as_list(value: object, location: str) -> list[Any]:
    """Return the value if it is a JSON list. Raises BadInput otherwise."""
    if not isinstance(value, list):
        raise errors.BadInput(f"{location}: must be a list, is {shape(value)}")
    return value


def as_text(value: object, location: str) -> str:
    """Return the value if it is a JSON string. Raises BadInput otherwise."""
    if not isinstance(value, str):
        raise errors.BadInput(f"{location}: must be a string, is {shape(value)}")
    return value


def nonempty_text(value: object) -> str | None:
    """Return the value if it is a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def measure(value: object) -> float | None:
    """Return the value if it is a number that an event can store as a measure (finite, not negative), else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return value


def shape(value: object) -> str:
    """Describe a JSON value, for a message."""
    match value:
        case UnparsedText():
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
