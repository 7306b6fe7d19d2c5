"""What a reader of logs hands over: sessions, their events and their places, and what was lost on the way."""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from storage import errors, text
from storage.events import CustomEvent, Event, JsonText
from storage.session import SessionConfig
from storage.transfer.formats.shared.records import Record

PLACEHOLDER = CustomEvent(name="record/left-out", data="{}")
"""Stands where a record was left out of a log that names seqs, so that those named later still hold."""


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """A session as its source tells it. `parent` and `source` name the `key` of another session of the same source.

    `events` are drafts without seq, as far as they are known when the session is handed over: the log from its start,
    or from `at_seq` on where the session is a fork of `source`; None as `at_seq`: it comes from `source` without
    sharing events. `refs` are keys too, of sessions before or after this one.

    `id` is the source's own where it is legal here; a session without one must have all its `events`. Of sessions that
    other files may hold, `parent_id` is the one to stand under, and `repeats` the one whose first events this log
    begins with (at most `repeats_at_most`): as far as that is so, this one becomes a fork of it.

    `memory_at_seq` is the head that the memory reflects (default: the end of the log). `counted` is false for what the
    source does not count as a session: the node of a task, a branch of a tree.
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

    With `replaces` it is a message that takes the place of what the surface holds of the events with seqs from the
    first to the second, both inclusive: its bounds are set where the surface is known. Where that holds nothing of
    them, it is a message like others.
    """

    key: str
    event: Event
    replaces: tuple[int, int] | None = None


class ForeignLabel(NamedTuple):
    """The label of the session `key`, where its source tells it only after the session began."""

    key: str
    label: str


Step = ForeignSession | ForeignEvent | ForeignLabel
"""A session before its events, and both before what names them."""


class Reader(Protocol):
    """Makes steps of the records of one source, one after the other.

    Reading the first n records gives the first of the steps that reading all of them gives, so that a log that has
    grown is the one read before and the rest. Hence nothing may be told before a record shows it, nor taken back.
    """

    def add(self, record: Record) -> Sequence[Step]:
        """The steps of the next record. Raises BadInput, with its place, for one that breaks the format."""

    def end(self) -> Sequence[Step]:
        """What is left to tell after the last record; counts what is held back."""


@dataclass(frozen=True, slots=True)
class ForeignDocument:
    """Sessions that belong together, each after the ones that it names, with one warning per kind of loss."""

    format: str
    sessions: list[ForeignSession]
    warnings: list[str]


class ImportWarnings:
    """How often each kind of loss happened. `first_broken` says of the first record left out what is wrong with it.

    `lenient`: what breaks a format costs no more than itself; else reading it raises BadInput.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self._events: Counter[tuple[str, str]] = Counter()
        self._reasons: dict[tuple[str, str], str] = {}
        self._stripped: Counter[str] = Counter()
        self._fields: dict[str, set[str]] = {}
        self._broken = 0
        self.first_broken = ""

    @property
    def left_out(self) -> int:
        """How many records were left out so far. A reader that is strict never sees one."""
        return self._broken

    def count_left_out(self, message: str) -> None:
        """Counts a record that is left out, as it could not be read; of the first one the message is told."""
        self._broken += 1
        self.first_broken = self.first_broken or message

    def leave_out(self, error: errors.BadInput) -> None:
        """Counts a record, or a part of one, that is left out. Raises the error where reading is strict."""
        if not self.lenient:
            raise error
        self.count_left_out(error.message)

    def add(self, noun: str, what: str, count: int = 1, *, reason: str = "") -> None:
        """Counts what happened to `count` of a noun, e.g. `record`, `of unknown type kept as custom`.

        Of the first one it is told `why`.
        """
        self._events[noun, what] += count
        if reason:
            self._reasons.setdefault((noun, what), reason)

    def for_record(self) -> "ImportWarnings":
        """An empty one, as lenient, for a record that may be refused yet; `include` adds it."""
        return ImportWarnings(lenient=self.lenient)

    def lost_fields(self, noun: str, given: Mapping[str, object], known: Container[str]) -> None:
        """Counts one of a noun if it has fields beyond `known`; empty ones are no loss."""
        names = [name for name in given if name not in known and given[name] not in (None, "", [], {})]
        if names:
            self._stripped[noun] += 1
            self._fields.setdefault(noun, set()).update(map(text.clean, names))

    def kinds(self) -> dict[str, int]:
        """How often each kind of loss happened, by its words in the singular."""
        counted = {f"{noun} {what}": count for (noun, what), count in self._events.items()}
        counted |= {f"{noun} lost fields": count for noun, count in self._stripped.items()}
        return counted | ({"record left out": self._broken} if self._broken else {})

    def include(self, other: "ImportWarnings") -> None:
        """Adds the counts of another."""
        self._events.update(other._events)
        self._reasons = other._reasons | self._reasons
        self._stripped.update(other._stripped)
        for noun, names in other._fields.items():
            self._fields.setdefault(noun, set()).update(names)
        self._broken += other._broken
        self.first_broken = self.first_broken or other.first_broken

    def messages(self) -> list[str]:
        """One line per kind, such as `3 records of unknown type kept as custom`."""
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
    """The id where a session can have it here, else None."""
    return value if isinstance(value, str) and text.SESSION_ID.match(value) else None


def derived_id(format: str, location: str, *facts: object) -> str:
    """An id for what has none that is legal here, the same for the same facts. Raises BadInput, naming the place."""
    digest = hashlib.sha256(text.to_json(facts, location).encode()).hexdigest()
    return f"{format}:{digest[:32]}"


def parents_first(sessions: Iterable[ForeignSession]) -> list[ForeignSession]:
    """The sessions level by level: parents and sources before what names them, siblings in the order given.

    Raises BadInput where sessions name each other in a circle.
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
