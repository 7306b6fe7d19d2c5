"""Pages: their sizes, and opaque cursors, each bound to the list that it was issued for."""

import base64
import hashlib
import json
from dataclasses import dataclass

from storage import errors, text
from storage.events import Instant

EARLIEST = -62_135_596_800_000
"""The start of the year 1, in ms."""
LATEST = 253_402_300_800_000
"""The end of the year 9999, in ms."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position of a row in its list: its time (ms) and id, and the `asOf` of a collection that has one."""

    time: Instant
    id: str
    as_of: Instant | None = None


def binding(*parts: object) -> str:
    """A short digest that identifies a list: its space, order and conditions."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def encode(cursor: Cursor, bound: str) -> str:
    """The cursor as text, bound to the list with that digest."""
    content = json.dumps([bound, cursor.time, cursor.id, cursor.as_of], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def decode(value: str | None, bound: str) -> Cursor | None:
    """The cursor that the text holds. Raises BadInput unless it was issued for the same list."""
    if value is None:
        return None
    try:
        found, time, id, as_of = json.loads(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
        cursor = Cursor(int(time), str(id), None if as_of is None else int(as_of))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise errors.BadInput("after: is not a cursor of this server") from error
    if not (EARLIEST <= cursor.time < LATEST and 0 <= (cursor.as_of or 0) < LATEST and text.possible_id(cursor.id)):
        raise errors.BadInput("after: is not a cursor of this server")
    if found != bound:
        raise errors.BadInput("after: is a cursor of another list (space, order and filters must stay the same)")
    return cursor


def check_count(value: int, limit: int, name: str) -> int:
    """Returns a page size. Raises BadInput unless it is 0 to `limit`."""
    if not 0 <= value <= limit:
        raise errors.BadInput(f"{name}: must be 0 to {limit}, is {value}")
    return value
