"""Native session logs of DeepSeek Harness: a header line, then records whose seq is their position.

Each record becomes one event, and a packed line of n chunks n events, so that seqs that the log refers to stay right.
A child with a seed repeats the first `seedLength` events of its parent. https://github.com/deepseek-ai/deepseek-harness
"""

from collections.abc import Sequence
from typing import Any

from storage import errors, text
from storage.transfer.formats.deepseek_harness.events import EventConverter
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step, valid_id
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_object

FORMAT = "deepseek-harness"


def fits(values: Sequence[object]) -> bool:
    """Whether the first record of a document is a header of this format."""
    first = values[0]
    return isinstance(first, dict) and first.get("type") == "session" and "createdAt" in first and "format" not in first


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for the log of a session, and of further sessions if more headers follow.

    The reader raises BadInput for a missing or broken header and all lines up to the next one, and for a record that
    breaks the format; a custom event replaces that record, so that later references to seqs stay right.
    """
    return _Reader(warnings)


class _Reader(Reader):
    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._keys: set[str] = set()
        self._log: EventConverter | None = None

    def add(self, record: Record) -> Sequence[Step]:
        fields = as_object(record.value, record.location)
        if fields.get("type") == "session":
            self._log = None
            session = self._session(fields, record.location)
            self._keys.add(session.key)
            self._log = EventConverter(session.key, self._warnings)
            return [session]
        if self._log is None:
            raise errors.BadInput(f"{record.location}: a record before the header line of its session")
        return self._log.add(fields, record.location)

    def end(self) -> Sequence[Step]:
        return ()

    def _session(self, header: dict[str, Any], location: str) -> ForeignSession:
        seed = header.get("seedLength", 0)
        if type(seed) is not int or seed < 0:
            raise errors.BadInput(f"{location}: seedLength: {seed!r} is not a count of events")
        facts = {name: value for name, value in header.items() if name != "type"}
        id = self._id(facts.get("id"))
        if id is not None:
            del facts["id"]
        metadata = text.to_json(facts, location) if facts else None
        named = header.get("parentSession")
        parent = valid_id(named)
        if named is not None and parent is None:
            self._warnings.add("session", "lost its parent, whose id is not a valid session id")
        return ForeignSession(
            key=id or f"session {len(self._keys) + 1}",
            label=None,
            id=id,
            parent_id=parent,
            repeats=parent if seed else None,
            repeats_at_most=seed if parent and seed else None,
            metadata=metadata,
        )

    def _id(self, given: object) -> str | None:
        id = valid_id(given)
        if id in self._keys:
            self._warnings.add("session", "got a new id, as an earlier one has the same")
            return None
        if id is None and given is not None:
            self._warnings.add("session", "lost its id, which is not a valid session id")
        return id
