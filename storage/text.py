"""Text as stored: JSON values as exact text, and the rules of identifiers and instants."""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import orjson

from storage import errors

MAX_NESTING = 500
_LEAP_SECOND = re.compile(r"(.*[Tt ]\d\d:\d\d):60((?:[.,]\d+)?[Zz+-].*)")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPACE = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(value: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, so that it can be encoded as UTF-8."""
    return value if value.isascii() else LONE_SURROGATE.sub("\ufffd", value)


def clean_any(value: object) -> object:
    """The value, cleaned if it is text."""
    return clean(value) if isinstance(value, str) else value


def not_null(value: str) -> str:
    """Returns the JSON text. Raises ValueError if it is null."""
    if value == "null":
        raise ValueError("must not be null")
    return value


def to_json(value: object, path: str) -> str:
    """JSON text of a decoded JSON value, with its key order, floats and integers up to 64 bits preserved exactly.

    Raises BadInput, naming `path`, for NaN, infinities, larger integers and nesting over 500.
    """
    try:
        encoded = orjson.dumps(value)
    except (TypeError, ValueError):  # surrogates, big integers or nesting beyond orjson's own limit
        return _to_json_checked(value, path)
    # orjson writes NaN and infinities as null, so a null needs a check.
    return encoded.decode() if b"null" not in encoded or _is_real(value) else _to_json_checked(value, path)


def _is_real(value: object) -> bool:
    """Whether the value holds neither NaN nor infinities."""
    left = [value]
    while left:
        match left.pop():
            case dict() as fields:
                left.extend(fields.values())
            case list() | tuple() as items:
                left.extend(items)
            case float(number) if not math.isfinite(number):
                return False
    return True


def _to_json_checked(value: object, path: str) -> str:
    checked = _checked(value, path, 1)
    try:
        return orjson.dumps(checked).decode()
    except TypeError:  # nested deeper than orjson's own limit
        return json.dumps(checked, ensure_ascii=False, separators=(",", ":"))


def _checked(value: object, path: str, depth: int) -> object:
    """The value with texts cleaned. Uses one stack frame per level, so that the limit fits on the stack."""
    match value:
        case str():
            return clean(value)
        case bool() | None:
            return value
        case int():
            if not fits_64_bits(value):
                raise errors.BadInput(f"{path}: an integer of {value.bit_length()} bits does not fit into 64")
            return value
        case float():
            if not math.isfinite(value):
                raise errors.BadInput(f"{path}: {value} is not a JSON number")
            return value
    if depth > MAX_NESTING:
        raise errors.BadInput(f"{path}: nested deeper than {MAX_NESTING} levels")
    if isinstance(value, dict):
        fields = {}
        for key, item in value.items():
            fields[clean(str(key))] = _checked(item, path, depth + 1)
        return fields
    if isinstance(value, list | tuple):
        items = []
        for item in value:
            items.append(_checked(item, path, depth + 1))  # noqa: PERF401  # a comprehension is a second frame
        return items
    raise errors.BadInput(f"{path}: {type(value).__name__} is not a JSON value")


def fits_64_bits(value: int) -> bool:
    """Whether JSON can store an integer: signed or unsigned, it must fit into 64 bits."""
    return -(2**63) <= value < 2**64


def from_json(text: str) -> object:
    """The value of stored JSON text."""
    return json.loads(text)


def identifier(value: str, path: str) -> str:
    """Returns a turn, step, call or form id, or an idempotency key. Raises BadInput outside of 1 to 256 characters."""
    if not 1 <= len(value) <= 256:
        raise errors.BadInput(f"{path}: must have 1 to 256 characters, has {len(value)}")
    return clean(value)


def possible_id(value: str) -> bool:
    """Whether a session could have this id. Lookups skip ids that none can have."""
    return value.isascii()


def session_id(value: str, path: str) -> str:
    """Returns a caller's id for a new session. Raises BadInput unless it is 1 to 128 of A-Z a-z 0-9 . _ : -"""
    if not SESSION_ID.match(value):
        raise errors.BadInput(f"{path}: {value[:140]!r} is not 1 to 128 characters of A-Z a-z 0-9 . _ : -")
    return value


def space_name(value: str) -> str:
    """Returns the name of a space. Raises BadInput unless it is 1 to 64 characters of A-Z a-z 0-9 . _ -"""
    if not SPACE.match(value):
        raise errors.BadInput(f"space: {value[:80]!r} is not 1 to 64 characters of A-Z a-z 0-9 . _ -")
    return value


def instant(value: str, path: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 or RFC 3339 instant. Raises BadInput unless it names its zone.

    RFC 3339 also allows a lowercase `t` and `z`, a space instead of the T, and the second 60.
    """
    try:
        leap = timedelta(0)  # Python knows no second 60: it is one second after 59
        if ":60" in value and (found := _LEAP_SECOND.match(value)) is not None:
            value, leap = f"{found[1]}:59{found[2]}", timedelta(seconds=1)
        parsed = datetime.fromisoformat(f"{value[:-1]}Z" if value[-1:] == "z" else value)
        if parsed.tzinfo is None:
            raise errors.BadInput(f"{path}: {value!r} names no zone; write for example 2026-11-29T19:21:07.250Z")
        milliseconds = (parsed + leap - EPOCH) // timedelta(milliseconds=1)
        format_instant(milliseconds)  # an offset may lead outside the years 1 to 9999
        return milliseconds
    except (ValueError, OverflowError) as error:
        raise errors.BadInput(f"{path}: {value[:80]!r} is not an ISO 8601 instant") from error


def format_instant(milliseconds: int) -> str:
    """ISO 8601 in UTC with millisecond precision, e.g. 2026-11-29T19:21:07.250Z, for the years 1 to 9999."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_format_seconds(seconds)}.{rest:03}Z"


@lru_cache(maxsize=4096)
def _format_seconds(seconds: int) -> str:
    """Cached, as instants of one page often share their second."""
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
