"""Native session logs of DeepSeek Harness: a header line, then records whose seq is their position.

Each record becomes one event, and a packed line of n chunks n of them, so that seqs named inside a log still hold.
A child with a seed repeats the first `seedLength` events of its parent. https://github.com/deepseek-ai/deepseek-harness
"""

from collections.abc import Sequence
from typing import Any

from storage import errors, text
from storage.transfer.formats.deepseek_harness.events import Log
from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Reader, Step, legal_id
from storage.transfer.formats.records import Record
from storage.transfer.formats.values import as_object

FORMAT = "deepseek-harness"


def fits(values: Sequence[object]) -> bool:
    """Whether the first record of a document is a header of this format."""
    first = values[0]
    return isinstance(first, dict) and first.get("type") == "session" and "createdAt" in first and "format" not in first


def reader(name: str, losses: ImportWarnings) -> Reader:
    """Reads the log of a session, and of further ones where further headers follow.

    BadInput is raised for a missing or broken header, with all that follows up to the next one, and for a record that
    breaks the format; in its place stands a custom event, so that seqs named later still hold.
    """
    return _Reader(losses)


class _Reader:
    def __init__(self, losses: ImportWarnings) -> None:
        self._losses = losses
        self._keys: set[str] = set()
        self._log: Log | None = None

    def add(self, record: Record) -> Sequence[Step]:
        fields = as_object(record.value, record.place)
        if fields.get("type") == "session":
            self._log = None
            session = self._session(fields, record.place)
            self._keys.add(session.key)
            self._log = Log(session.key, self._losses)
            return [session]
        if self._log is None:
            raise errors.BadInput(f"{record.place}: a record before the header line of its session")
        return self._log.add(fields, record.place)

    def end(self) -> Sequence[Step]:
        return ()

    def _session(self, header: dict[str, Any], place: str) -> ForeignSession:
        seed = header.get("seedLength", 0)
        if type(seed) is not int or seed < 0:
            raise errors.BadInput(f"{place}: seedLength: {seed!r} is not a count of events")
        facts = {name: value for name, value in header.items() if name != "type"}
        id = self._id(facts.get("id"))
        if id is not None:
            del facts["id"]
        metadata = text.to_json(facts, place) if facts else None
        named = header.get("parentSession")
        parent = legal_id(named)
        if named is not None and parent is None:
            self._losses.add("session", "lost its parent, whose id no session can have here")
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
        id = legal_id(given)
        if id in self._keys:
            self._losses.add("session", "got a new id, as an earlier one has the same")
            return None
        if id is None and given is not None:
            self._losses.add("session", "lost its id, which no session can have here")
        return id
