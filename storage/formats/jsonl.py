"""Sapwood's own files: sections of a header line and one event a line, lossless for the whole log.

A section holds the whole visible log, or, where `firstSeq` is above 0, the events from there on of a fork whose
source is another section of the same file. JSON fields are embedded as JSON; null stands for JSON null in them and
for absence elsewhere.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

import orjson
from pydantic import Field

from storage import errors, events, text
from storage.events import Event, Instant, JsonText, Seq, Text
from storage.formats.foreign import ForeignSession, Losses, Reading, ordered
from storage.formats.records import Document, as_object, as_text, at
from storage.session import SessionConfig, SessionStatus

FORMAT = "sapwood"
VERSION = 1
SessionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]


class Header(events.Model):
    """The first line of a section. `created_at` in ms since 1970; `first_seq` is the seq of its first event.

    `memory_at_seq` is the head that the memory reflects; `refs` are the sessions that this one's node refers to.
    """

    json_fields: ClassVar[frozenset[str]] = frozenset({"metadata"})

    type: Literal["session"] = "session"
    format: Literal["sapwood"] = "sapwood"
    version: Literal[1] = 1
    id: SessionId
    label: Text | None = None
    status: SessionStatus = SessionStatus.ACTIVE
    workflow_mode: Text | None = None
    metadata: JsonText | None = None
    parent_id: SessionId | None = None
    source_session_id: SessionId | None = None
    fork_seq: Seq | None = None
    first_seq: Seq = 0
    created_at: Instant | None = None
    config: SessionConfig | None = None
    system_prompt: Text | None = None
    memory: Text | None = None
    memory_at_seq: Seq | None = None
    insight: Text | None = None
    refs: list[SessionId] | None = None


M = TypeVar("M", Header, Event)
_INSTANTS = frozenset({"timestamp", "createdAt"})
_EVENTS: Mapping[str, type[Event]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(events.AnyEvent)[0])
}


def header_line(header: Header) -> str:
    """The header as one line, without the line feed."""
    return _line(_encoded(header.model_dump(by_alias=True, exclude_none=True), header.json_fields))


def event_line(event: Event) -> str:
    """An event of a log, with its seq, as one line without the line feed."""
    stored = _encoded(events.dump(event), event.json_fields)
    if "retrieval" in stored:
        stored["retrieval"] = _encoded(stored["retrieval"], {"details"})
    return _line({"seq": event.seq, "type": event.type} | stored)


def _encoded(fields: dict[str, Any], json_fields: AbstractSet[str]) -> dict[str, Any]:
    for name in fields.keys() & json_fields:
        # A line feed can stand in JSON text as white space alone, and would tear the line.
        fields[name] = orjson.Fragment(fields[name].replace("\n", " "))
    for name in fields.keys() & _INSTANTS:
        fields[name] = text.format_instant(fields[name])
    return fields


def _line(fields: Mapping[str, Any]) -> str:
    return orjson.dumps(fields).decode()


def fits(first: object) -> bool:
    """Whether the first record of a document is a header of this format."""
    return isinstance(first, dict) and first.get("type") == "session" and first.get("format") == FORMAT


@dataclass(slots=True)
class _Section:
    place: str
    header: Header
    events: list[Event] = field(default_factory=list)

    @property
    def head(self) -> int:
        return self.header.first_seq + len(self.events)


def read(document: Document) -> Reading:
    """The sessions of a file. A parent, source or reference outside it is dropped with a warning.

    Raises BadInput, with the line, for a missing or repeated header, an unknown version or type of event, a hole or
    repeat of seq, a field that breaks its rule, and a section whose source is not in the file but needed.
    """
    losses = Losses()
    sections: dict[str, _Section] = {}
    section: _Section | None = None
    for place, value in document.records:
        fields = as_object(value, place)
        if fields.get("type") == "session":
            section = _Section(place, _header(fields, place, losses))
            if section.header.id in sections:
                raise errors.BadInput(f"{place}: the file holds the session {section.header.id} twice")
            sections[section.header.id] = section
        elif section is None:
            raise errors.BadInput(f"{place}: an event before the header line of its session")
        else:
            section.events.append(_event(fields, section.head, place, losses))
    sessions = ordered(_session(section, sections, losses) for section in sections.values())
    return Reading(FORMAT, sessions, losses.warnings())


def _header(fields: dict[str, Any], place: str, losses: Losses) -> Header:
    if fields.get("format") != FORMAT or fields.get("version") != VERSION:
        raise errors.BadInput(
            f"{place}: a header of format {fields.get('format')!r}, version {fields.get('version')!r}; "
            f"known here is {FORMAT!r}, version {VERSION}"
        )
    return _made(Header, fields, place, losses)


def _event(fields: dict[str, Any], expected: int, place: str, losses: Losses) -> Event:
    kind = _EVENTS.get(str(fields.get("type")))
    if kind is None:
        raise errors.BadInput(f"{place}: {fields.get('type')!r} is not a type of event")
    seq = fields.pop("seq", None)
    if type(seq) is not int or seq != expected:
        raise errors.BadInput(f"{place}: seq is {seq!r} where {expected} comes next")
    if isinstance(retrieval := fields.get("retrieval"), dict):
        fields["retrieval"] = _decoded(retrieval, {"details"}, place)
    return _made(kind, fields, place, losses)


def _made(kind: type[M], fields: dict[str, Any], place: str, losses: Losses) -> M:
    known = _names(kind)
    losses.fields("line", fields, known)
    given = _decoded({name: fields[name] for name in known & fields.keys()}, kind.json_fields, place)
    with at(place):
        return kind.model_validate(given)


@cache
def _names(kind: type[events.Model]) -> frozenset[str]:
    return frozenset(field.alias for field in kind.model_fields.values() if field.alias and not field.exclude)


def _decoded(fields: Mapping[str, Any], json_fields: AbstractSet[str], place: str) -> dict[str, Any]:
    decoded: dict[str, Any] = {}
    for name, value in fields.items():
        if name in json_fields:
            decoded[name] = text.to_json(value, f"{place}: {name}")
        elif name in _INSTANTS and value is not None:
            decoded[name] = text.instant(as_text(value, f"{place}: {name}"), f"{place}: {name}")
        elif value is not None:
            decoded[name] = value
    return decoded


def _session(section: _Section, sections: Mapping[str, _Section], losses: Losses) -> ForeignSession:
    header = section.header
    parent = header.parent_id if header.parent_id in sections else None
    if header.parent_id != parent:
        losses.add("session", "lost its parent, which is not in the file")
    source = sections.get(header.source_session_id or "")
    if header.first_seq > 0:
        _check_source(section, source)
    elif header.fork_seq:
        losses.add("fork", "became a session of its own that holds the inherited events too")
        source = None
    elif source is None and header.source_session_id is not None:
        losses.add("session", "lost its source, which is not in the file")
    refs = tuple(target for target in header.refs or () if target in sections)
    if lost := len(header.refs or ()) - len(refs):
        losses.add("reference", "lost its end, which is not in the file", lost)
    return ForeignSession(
        key=header.id,
        label=header.label,
        events=section.events,
        id=header.id,
        parent=parent,
        source=None if source is None else source.header.id,
        at_seq=header.first_seq if source is None else header.fork_seq,
        workflow_mode=header.workflow_mode,
        metadata=header.metadata,
        system_prompt=header.system_prompt,
        memory=header.memory,
        memory_at_seq=header.memory_at_seq,
        insight=header.insight,
        config=header.config,
        refs=refs,
        archived=header.status is SessionStatus.ARCHIVED,
    )


def _check_source(section: _Section, source: _Section | None) -> None:
    header = section.header
    if source is None:
        raise errors.BadInput(
            f"{section.place}: the section starts at seq {header.first_seq} and needs the section of its source "
            f"{header.source_session_id!r}, which is not in the file"
        )
    if header.fork_seq != header.first_seq or header.first_seq > source.head:
        raise errors.BadInput(
            f"{section.place}: firstSeq is {header.first_seq}, which must equal forkSeq ({header.fork_seq}) and "
            f"be at most the length of the source's log ({source.head})"
        )
