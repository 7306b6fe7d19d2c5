"""What a reader of logs yields: sessions, their events and labels; and the warnings about what was lost."""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from storage import errors, text
from storage.events import CustomEvent, Event, Instant, JsonText
from storage.session import SessionConfig
from storage.transfer.formats.shared.record import Record

PLACEHOLDER = CustomEvent(name="record/left-out", data="{}")
"""Replaces a record left out of a log that refers to seqs, so that later references stay right."""


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """A session of a source document. `parent` and `source` are the `key` of another session of the same document.

    `events` are drafts without seq, as far as they are known when the session is yielded: the log from its start, or
    from `at_seq` on if the session is a fork of `source`. If `at_seq` is None, the session continues `source` without
    sharing events. `refs` are keys too, of sessions before or after this one.

    `id` is the source's own if it is a valid session id; a session without one must have all its `events`. Two fields
    name sessions that other files may hold: `parent_id` is the parent, and `repeats` the session whose first events
    this log repeats (at most `repeats_at_most`); as far as it does, this one becomes a fork of that one.

    `memory_at_seq` is the head that the memory reflects (default: the end of the log). `counted` is false for a node
    that the source does not count as a session, such as a task or a branch of a tree.
    """

    key: str
    label: str | None
    events: Sequence[Event] = ()
    id: str | None = None
    parent: str | None = None
    parent_id: str | None = None
    source: str | None = None
    at_seq: int | None = 0
    repeats: str | None = None
    repeats_at_most: int | None = None
    workflow_mode: str | None = None
    metadata: JsonText | None = None
    system_prompt: str | None = None
    memory: str | None = None
    memory_at_seq: int | None = None
    insight: str | None = None
    config: SessionConfig | None = None
    refs: Sequence[str] = ()
    archived: bool = False
    counted: bool = True


class ForeignEvent(NamedTuple):
    """The next event of the session `key`.

    With `replaces`, the event is a message that replaces what the surface shows of the events from the first to the
    second seq, both inclusive. The exact bounds are set where the surface is known; if it shows none of those events,
    the message is appended like any other. `is_timed` is false if the event's timestamp is not the source's.
    """

    key: str
    event: Event
    replaces: tuple[int, int] | None = None
    is_timed: bool = True

    def at(self, time: Instant) -> "ForeignEvent":
        """Return the event with this timestamp, which its source doesn't have."""
        return self._replace(event=self.event.model_copy(update={"timestamp": time}), is_timed=False)


class ForeignLabel(NamedTuple):
    """The label of the session `key`, if its source gives one only after the session began."""

    key: str
    label: str


Step = ForeignSession | ForeignEvent | ForeignLabel
"""What a reader yields. A session comes before its events, and both before anything that refers to them."""


class Reader(Protocol):
    """Turns the records of one document into steps, one record after the other.

    The steps of the first n records must be a prefix of the steps of all records, so that reading a log that has grown
    gives the earlier steps and new ones. A reader therefore never yields a step before a record proves it, and never
    takes one back.
    """

    @property
    def reads_conversations(self) -> bool:
        """Whether the next record is a whole conversation, so that leaving it out loses one."""
        return False

    def add(self, record: Record) -> Sequence[Step]:
        """Return the steps of the next record. Raises BadInput, with its location, if it breaks the format."""

    def end(self) -> Sequence[Step]:
        """Return the steps that remain after the last record, and count what is held back."""


@dataclass(frozen=True, slots=True)
class ForeignDocument:
    """The sessions of a document, each after those that it refers to, with one warning per kind of loss."""

    format: str
    sessions: list[ForeignSession]
    warnings: list[str]


class ImportWarnings:
    """Counts what an import could not keep, by kind. `first_broken` says what is wrong with the first record left out.

    If `lenient`, only the part that breaks the format is lost; otherwise reading it raises BadInput.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self._events: Counter[tuple[str, str]] = Counter()
        self._reasons: dict[tuple[str, str], str] = {}
        self._stripped: Counter[str] = Counter()
        self._fields: dict[str, set[str]] = {}
        self._broken = 0
        self.first_broken = ""
        self.conversations_left_out = 0
        """How many of the records left out are whole conversations."""

    @property
    def left_out(self) -> int:
        """How many records were left out so far; always 0 in strict reading."""
        return self._broken

    def count_left_out(self, message: str) -> None:
        """Count a record that could not be read and was left out; the first one's message is reported."""
        self._broken += 1
        self.first_broken = self.first_broken or message

    def leave_out(self, error: errors.BadInput, *, conversation: bool = False) -> None:
        """Leave out and count a record, or a part of one. In strict reading, raise the error instead."""
        if not self.lenient:
            raise error
        self.count_left_out(error.message)
        self.conversations_left_out += conversation

    def add(self, noun: str, what: str, count: int = 1, *, reason: str = "") -> None:
        """Count what happened to `count` of a noun, e.g. `record`, `of unknown type kept as custom`.

        The first `reason` given is reported.
        """
        self._events[noun, what] += count
        if reason:
            self._reasons.setdefault((noun, what), reason)

    def for_record(self) -> "ImportWarnings":
        """Return an empty instance for a record that may still be refused; add it with `include`."""
        return ImportWarnings(lenient=self.lenient)

    def lost_fields(self, noun: str, given: Mapping[str, object], known: Container[str]) -> None:
        """Count one of a noun if it has fields beyond `known`. Empty fields are no loss."""
        names = [name for name in given if name not in known and given[name] not in (None, "", [], {})]
        if names:
            self._stripped[noun] += 1
            self._fields.setdefault(noun, set()).update(map(text.clean, names))

    def kinds(self) -> dict[str, int]:
        """Return how often each kind of loss happened, by its wording in the singular."""
        counted = {f"{noun} {what}": count for (noun, what), count in self._events.items()}
        counted |= {f"{noun} lost fields": count for noun, count in self._stripped.items()}
        return counted | ({"record left out": self._broken} if self._broken else {})

    def include(self, other: "ImportWarnings") -> None:
        """Add the counts of another instance."""
        self._events.update(other._events)
        self._reasons = other._reasons | self._reasons
        self._stripped.update(other._stripped)
        for noun, names in other._fields.items():
            self._fields.setdefault(noun, set()).update(names)
        self._broken += other._broken
        self.first_broken = self.first_broken or other.first_broken
        self.conversations_left_out += other.conversations_left_out

    def messages(self) -> list[str]:
        """Return one line per kind, such as `3 records of unknown type kept as custom`."""
        stripped = {
            (noun, f"lost {', '.join(sorted(self._fields[noun]))}"): count for noun, count in self._stripped.items()
        }
        lines = [
            _line(noun, what, count, self._reasons.get((noun, what)))
            for (noun, what), count in (*self._events.items(), *stripped.items())
        ]
        return [*lines, _line("record", "left out", self._broken, self.first_broken)] if self._broken else lines


def _line(noun: str, what: str, count: int, reason: str | None) -> str:
    first = f", {'the first: ' if count > 1 else ''}{reason}" if reason else ""
    return f"{count} {noun}{'s' if count > 1 else ''} {what}{first}"


def valid_id(value: object) -> str | None:
    """Return the value if it is a valid session id, else None."""
    return value if isinstance(value, str) and text.SESSION_ID.match(value) else None


def derived_id(format: str, location: str, *facts: object) -> str:
    """Derive a session id from facts; the same facts give the same id. Raises BadInput with the location."""
    digest = hashlib.sha256(text.to_json(facts, location).encode()).hexdigest()
    return f"{format}:{digest[:32]}"


def parents_first(sessions: Iterable[ForeignSession]) -> list[ForeignSession]:
    """Sort sessions level by level: parents and sources before what names them, siblings in the order given.

    Raises BadInput if sessions name each other in a circle.
    """
    waiting = {session.key: session for session in sessions}
    result: list[ForeignSession] = []
    while waiting:
        ready = [each for each in waiting.values() if each.parent not in waiting and each.source not in waiting]
        if not ready:
            raise errors.BadInput(f"sessions name each other as parent or source in a circle: {', '.join(waiting)}")
        for session in ready:
            del waiting[session.key]
        result += ready
    return result
