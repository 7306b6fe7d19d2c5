"""Finds the whole JSON objects on a line that is not one: several on one line, or one after a torn one or NUL bytes.

Writers leave such lines when they crash, or when two of them append to one file.
"""

import json
import re
from typing import NamedTuple

_OBJECT = re.compile(r'\{\s*["}]')
_FILLING = re.compile(r"[\s\0]*")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Only finds where objects end."""
FAILURES = 1_000
"""Torn objects on one line after which the rest of it is given up."""
FAILED_CHARACTERS = 256 * 1024 * 1024
"""Likewise of a long line, as each torn object may be read to the end of the line; but never fewer than 16."""


class Splice(NamedTuple):
    """What a line holds: the spans of its whole objects, and where the first broken part begins (None: nowhere)."""

    objects: list[tuple[int, int]]
    broken_at: int | None


def splice(line: str) -> Splice:
    """Find the whole objects of a line; those inside a torn one don't count. Offsets are in characters."""
    objects: list[tuple[int, int]] = []
    broken_at: int | None = None
    position = 0
    failures_left = max(16, min(FAILURES, FAILED_CHARACTERS // max(len(line), 1)))
    boundary = _skip_filling(line, 0)
    if "\0" in line[:boundary]:
        broken_at = 0
    while (candidate := _OBJECT.search(line, position)) is not None and failures_left:
        start = candidate.start()
        try:
            _, end = _DECODER.raw_decode(line, start)
        except (json.JSONDecodeError, RecursionError):
            failures_left -= 1
            position = start + 1
            continue
        position = end
        following = _skip_filling(line, end)
        # Inside a torn object, a comma or a bracket follows.
        if start == boundary or following == len(line) or line[following] == "{":
            objects.append((start, end))
            if broken_at is None and start > boundary:
                broken_at = boundary
            if broken_at is None and "\0" in line[end:following]:
                broken_at = end
            boundary = following
    if broken_at is None and boundary < len(line):
        broken_at = boundary
    return Splice(objects, broken_at)


def _skip_filling(line: str, position: int) -> int:
    found = _FILLING.match(line, position)
    assert found is not None
    return found.end()
