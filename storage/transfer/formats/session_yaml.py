"""Reads and writes a session as a YAML file of texts and cards, without loss of either.

The fields are `sessionId`, `title`, `createdAt`, `updatedAt`, `workflowMode`, `entries`. An entry is
`{kind: Text, role: User|Assistant|System, content}` or `{kind: Special, type, payload}`; a payload is a string that
holds YAML. Several sessions are a stream of such documents. JSON of the same shape is read too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from typing_extensions import override

from storage import errors, text
from storage.cards import payload as notation
from storage.events import CardEvent, Event, Instant, JsonText
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step, valid_id
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.naming import SessionIds
from storage.transfer.formats.shared.record import Record, UnparsedText
from storage.transfer.formats.shared.values import as_list, as_object, most, shape
from storage.views.conversation_entry import CardEntry, Entry, PlaceholderEntry, TextEntry
from storage.views.message import Role

FORMAT = "session-yaml"
# A field of the outermost mapping: at the start of a line in YAML, or among the first fields in JSON.
_ENTRIES = re.compile(r"""(?m)^(?:entries|"entries"|'entries')\s*:|\A\ufeff?\s*\{[^\[{]*"entries"\s*:""")
_FIELDS = ("sessionId", "title", "createdAt", "updatedAt", "workflowMode", "entries")


class Speaker(StrEnum):
    """The role of a text, as files name it."""

    USER = "User"
    ASSISTANT = "Assistant"
    SYSTEM = "System"


_SPEAKERS = {Role.USER: Speaker.USER, Role.ASSISTANT: Speaker.ASSISTANT, Role.SYSTEM: Speaker.SYSTEM}


@dataclass(frozen=True, slots=True)
class Text:
    """A text entry of a file."""

    role: Speaker
    content: str


@dataclass(frozen=True, slots=True)
class Special:
    """A card entry of a file."""

    type: str
    payload: str


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The content of a file. Times are in ms since 1970."""

    entries: tuple[Text | Special, ...]
    session_id: str | None = None
    title: str | None = None
    created_at: Instant | None = None
    updated_at: Instant | None = None
    workflow_mode: str | None = None


def entries_of(entries: Iterable[Entry]) -> tuple[Text | Special, ...]:
    """Return the texts and cards of a conversation, which should include its system messages, without tool calls."""
    found: list[Text | Special] = []
    for entry in entries:
        match entry:
            case TextEntry():
                found.append(Text(_SPEAKERS[entry.role], entry.content))
            case CardEntry() | PlaceholderEntry():
                found.append(Special(entry.card_type, entry.payload))
    return tuple(found)


def fits(values: Sequence[object]) -> bool:
    """Whether the first documents are mappings, in YAML or JSON, with a field `entries`."""
    return most(values, _is_file)


def _is_file(value: object) -> bool:
    match value:
        case UnparsedText(content=content):
            return bool(_ENTRIES.search(content))
        case {"entries": entries, **others}:
            kinds = (
                [entry.get("kind") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
            )
            return others.keys() <= set(_FIELDS) or "Text" in kinds or "Special" in kinds
    return False


def write(file: SessionFile) -> str:
    """Write a file as YAML."""
    fields: dict[str, Any] = {
        "sessionId": file.session_id,
        "title": file.title,
        "createdAt": None if file.created_at is None else text.format_instant(file.created_at),
        "updatedAt": None if file.updated_at is None else text.format_instant(file.updated_at),
        "workflowMode": file.workflow_mode,
        "entries": [_written(entry) for entry in file.entries],
    }
    return notation.dump(fields)


def parse(source: str) -> SessionFile:
    """Parse a file, YAML or JSON. Raises BadInput, naming the location and the rule, for anything else."""
    try:
        return _file(_document(source), ImportWarnings())
    except errors.BadInput as error:
        raise errors.BadInput(f"document: {error.message}") from error


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader that makes a session of each record.

    The times of a file become metadata, and those of its events.

    It raises BadInput, with the location of the record, the location in it and the rule, for anything else.
    """
    return _Reader(warnings)


class _Reader(Reader):
    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._sessions = 0
        self._ids = SessionIds()

    @property
    @override
    def reads_conversations(self) -> bool:
        return True

    def add(self, record: Record) -> Sequence[Step]:
        warnings = ImportWarnings()
        try:
            value = record.value
            fields = _document(value.content) if isinstance(value, UnparsedText) else _mapping(value)
            file = _file(fields, warnings)
        except errors.BadInput as error:
            raise errors.BadInput(f"{record.location}: {error.message}") from error
        if file.session_id is not None and valid_id(file.session_id) is None:
            warnings.add("session", "lost its id, which is not a valid session id")
        id = self._ids.claim(file.session_id, warnings)
        self._sessions += 1
        key = id or f"#{self._sessions}"
        events = _events(file, key, warnings)
        self._warnings.include(warnings)
        return [
            ForeignSession(
                key=key,
                label=file.title,
                events=events,
                id=id,
                workflow_mode=file.workflow_mode,
                metadata=_metadata(file),
            )
        ]

    def end(self) -> Sequence[Step]:
        return ()


def _written(entry: Text | Special) -> dict[str, Any]:
    if isinstance(entry, Text):
        return {"kind": "Text", "role": entry.role.value, "content": entry.content}
    return {"kind": "Special", "type": entry.type, "payload": entry.payload}


def _events(file: SessionFile, key: str, warnings: ImportWarnings) -> list[Event]:
    """The events of a file: one per entry, and a turn from each user text to the next."""
    builder = LogBuilder(key, warnings)
    last_turn: int | None = None
    for entry in file.entries:
        match entry:
            case Text(Speaker.USER, content):
                last_turn = builder.start_turn()
                builder.user(content)
            case Text(Speaker.ASSISTANT, content):
                builder.assistant(content)
            case Text(Speaker.SYSTEM, content):
                builder.system(content)
            case Special():
                builder.add(CardEvent(card_type=entry.type, payload=entry.payload))
    builder.end_turn()
    events = builder.take_events()
    times_of_events = zip(events, _times(file, events, last_turn), strict=True)
    return [event.model_copy(update={"timestamp": time}) for event, time in times_of_events]


def _times(file: SessionFile, events: Sequence[Event], last_turn: int | None) -> list[Instant | None]:
    """The times of a file as those of its events: its end from the last of several turns on, else its beginning.

    A single turn, or none, lasts from the one to the other.
    """
    created = file.updated_at if file.created_at is None else file.created_at
    updated = file.created_at if file.updated_at is None else file.updated_at
    several = sum(event.type == "turn/start" for event in events) > 1
    split = last_turn if several and last_turn is not None else len(events) - 1
    return [created if index < split else updated for index in range(len(events))]


def _metadata(file: SessionFile) -> JsonText | None:
    times = {"createdAt": file.created_at, "updatedAt": file.updated_at}
    kept = {name: text.format_instant(time) for name, time in times.items() if time is not None}
    return text.to_json(kept, "metadata") if kept else None


def _document(source: str) -> dict[str, Any]:
    try:
        value = notation.load(source.removeprefix("\ufeff"), max_bytes=None)
    except errors.BadInput as error:
        raise errors.BadInput(f"not YAML or JSON that is allowed: {error.message}") from error
    return _mapping(value)


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.BadInput(f"must be a mapping with {', '.join(_FIELDS)}, is {shape(value)}")
    return value


def _file(fields: Mapping[str, Any], warnings: ImportWarnings) -> SessionFile:
    warnings.lost_fields("session", fields, _FIELDS)
    if "entries" not in fields:
        raise errors.BadInput(f"entries: is required; found {text.clean(', '.join(fields))[:200] or 'no fields'}")
    entries = as_list(fields["entries"], "entries")
    return SessionFile(
        entries=tuple(_entry(entry, f"entries[{index}]", warnings) for index, entry in enumerate(entries)),
        session_id=_optional(fields, "sessionId"),
        title=_optional(fields, "title"),
        created_at=_instant(fields, "createdAt", warnings),
        updated_at=_instant(fields, "updatedAt", warnings),
        workflow_mode=_optional(fields, "workflowMode"),
    )


def _entry(value: object, location: str, warnings: ImportWarnings) -> Text | Special:
    fields = as_object(value, location)
    kind = _one_of(fields, "kind", ("Text", "Special"), location)
    if kind == "Text":
        warnings.lost_fields("text", fields, ("kind", "role", "content"))
        role = _one_of(fields, "role", tuple(Speaker), location)
        return Text(Speaker(role), _required(fields, "content", location))
    warnings.lost_fields("card", fields, ("kind", "type", "payload"))
    return Special(_required(fields, "type", location), _required(fields, "payload", location))


def _one_of(fields: Mapping[str, Any], name: str, allowed: tuple[str, ...], location: str) -> str:
    value = fields.get(name)
    if value not in allowed:
        raise errors.BadInput(
            f"{location}.{name}: must be one of {', '.join(allowed)}, is {text.clean(str(value))[:80]!r}"
        )
    return str(value)


def _required(fields: Mapping[str, Any], name: str, location: str) -> str:
    if name not in fields:
        raise errors.BadInput(f"{location}.{name}: is required")
    return _text(fields[name], f"{location}.{name}")


def _text(value: object, location: str) -> str:
    """A text; other scalars, which YAML reads from unquoted words, as they are written in JSON."""
    if isinstance(value, bool | int | float):
        return text.to_json(value, location)
    if not isinstance(value, str):
        raise errors.BadInput(f"{location}: must be text, is {shape(value)}")
    return text.clean(value)


def _optional(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else _text(value, name)


def _instant(fields: Mapping[str, Any], name: str, warnings: ImportWarnings) -> Instant | None:
    value = _optional(fields, name)
    if value is None:
        return None
    if not times.has_zone(value) and times.iso(value) is not None:
        warnings.add("time", "without a zone taken as UTC")
        return times.iso(value)
    return text.instant(value, name)
