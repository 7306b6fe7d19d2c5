"""Ids for sessions that have none in their source, derived from content: the same log gets the same id again."""

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from storage import events
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession
from storage.transfer.importing.target import ForkPoint

NAMING_EVENTS = 64
"""An id is derived from the first 64 events of a log, or 32, 16, … if it had fewer when it was first imported."""
_SIZES = (NAMING_EVENTS, 32, 16, 8, 4, 2, 1)


def of_content(
    format: str, session: ForeignSession, source: ForkPoint | None, pending: Sequence[ForeignEvent]
) -> list[str]:
    """The ids that a log which begins with these events may have, the one for its present length first."""
    if not pending:
        return [of_facts(format, session, source)]
    stored = [orjson.dumps(_named(logged)) for logged in pending[:NAMING_EVENTS]]
    sizes = [size for size in _SIZES if size <= len(stored)]
    return [_id(format, _prefix(source) + b"\n".join(stored[:size])) for size in sizes]


def of_facts(format: str, session: ForeignSession, source: ForkPoint | None) -> str:
    """The id of a log that had no events when it was first imported."""
    facts = [session.metadata, session.parent, session.parent_id]
    return _id(format, _prefix(source) + orjson.dumps(facts))


def _named(logged: ForeignEvent) -> dict[str, Any]:
    """The event as its source has it, without a time that it got here."""
    fields = events.dump(logged.event)
    if not logged.is_timed:
        del fields["timestamp"]
    return fields


def _prefix(source: ForkPoint | None) -> bytes:
    return orjson.dumps([] if source is None else [source.id, source.seq])


def _id(format: str, content: bytes) -> str:
    return f"{format}:{hashlib.sha256(content).hexdigest()[:24]}"
