"""Ids for sessions that have none in their source, made of what they hold: the same for the same log again."""

import hashlib
from collections.abc import Sequence

import orjson

from storage import events
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession
from storage.transfer.importing.target import Point

TOLD_BY = 64
"""A log is told by its first 64 events, or 32, 16, ... if it had fewer when it came."""
_SIZES = (TOLD_BY, 32, 16, 8, 4, 2, 1)


def of_content(format: str, given: ForeignSession, source: Point | None, waiting: Sequence[ForeignEvent]) -> list[str]:
    """The ids under which a log that begins with these events may stand, the one for its present length first."""
    if not waiting:
        return [of_facts(format, given, source)]
    stored = [orjson.dumps(events.dump(logged.event)) for logged in waiting[:TOLD_BY]]
    sizes = [size for size in _SIZES if size <= len(stored)]
    return [_id(format, _start(source) + b"\n".join(stored[:size])) for size in sizes]


def of_facts(format: str, given: ForeignSession, source: Point | None) -> str:
    """The id under which a log stands that had no events when it came."""
    facts = [given.metadata, given.parent, given.parent_id]
    return _id(format, _start(source) + orjson.dumps(facts))


def _start(source: Point | None) -> bytes:
    return orjson.dumps([] if source is None else [source.id, source.seq])


def _id(format: str, content: bytes) -> str:
    return f"{format}:{hashlib.sha256(content).hexdigest()[:24]}"
