"""Ids for sessions that have none in their source, made of what they hold: the same for the same log again."""

import hashlib
from collections.abc import Sequence

import orjson

from storage import events
from storage.formats.foreign import ForeignSession, Logged
from storage.importing.target import Point

TOLD_BY = 64
"""A log is told by its first 64 events, or 32, 16, ... if it had fewer when it came."""


def of_content(format: str, given: ForeignSession, source: Point | None, waiting: Sequence[Logged]) -> list[str]:
    """The ids under which a log that begins with these events may stand, the one for its present length first."""
    start = orjson.dumps([] if source is None else [source.id, source.seq])
    size = TOLD_BY
    while size > len(waiting) and size > 1:
        size //= 2
    if not waiting:
        facts = [given.label, given.metadata, given.parent, given.parent_id]
        return [_id(format, start + orjson.dumps(facts))]
    stored = [orjson.dumps(events.dump(logged.event)) for logged in waiting[:size]]
    ids = []
    while size:
        ids.append(_id(format, start + b"\n".join(stored[:size])))
        size //= 2
    return ids


def _id(format: str, content: bytes) -> str:
    return f"{format}:{hashlib.sha256(content).hexdigest()[:24]}"
