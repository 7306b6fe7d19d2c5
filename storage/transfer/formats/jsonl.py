"""Sapwood's own files: sections of a header line, then one event per line. The whole log is kept without loss.

A section holds the whole visible log. If `firstSeq` is above 0, it holds the events from there on of a fork whose
source is an earlier section of the same file. JSON fields are embedded as JSON; null means JSON null in them, and
absence elsewhere.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

import orjson
from pydantic import Field

from storage import errors, events, text
from storage.events import Event, Instant, JsonText, Seq, Text
from storage.session import SessionConfig, SessionStatus
from storage.transfer.formats.shared.foreign import (
    PLACEHOLDER,
    ForeignEvent,
    ForeignSession,
    ImportWarnings,
    Reader,
    Step,
)
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_object, as_text, validating

FORMAT = "sapwood"
VERSION = 1
SessionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]


class Header(events.Model):
    """The first line of a section. `created_at` is in ms since 1970; `first_seq` is the seq of its first event.

    `memory_at_seq` is the head that the memory reflects; `refs` are the sessions that this node refers to.
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
    """Encode a header as one line, without the line feed."""
    return _line(_encoded(header.model_dump(by_alias=True, exclude_none=True), header.json_fields))


def event_line(event: Event) -> str:
    """Encode an event with its seq as one line, without the line feed."""
    stored = _encoded(events.dump(event), event.json_fields)
    if "retrieval" in stored:
        stored["retrieval"] = _encoded(stored["retrieval"], {"details"})
    return _line({"seq": event.seq, "type": event.type} | stored)


def _encoded(fields: dict[str, Any], json_fields: AbstractSet[str]) -> dict[str, Any]:
    for name in fields.keys() & json_fields:
        # In JSON text a line feed can only be white space, but it would break the line.
        fields[name] = orjson.Fragment(fields[name].replace("\n", " "))
    for name in fields.keys() & _INSTANTS:
        fields[name] = text.format_instant(fields[name])
    return fields


def _line(fields: Mapping[str, Any]) -> str:
    return orjson.dumps(fields).decode()


def fits(values: Sequence[object]) -> bool:
    """Whether the first record of a document is a header of this format."""
    match values[0]:
        case {"type": "session", "format": "sapwood"}:
            return True
    return False


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for the sections of a file. A source that does not precede its section is lost.

    The reader raises BadInput for a missing, broken or repeated header and all lines up to the next one; an unknown
    version or event type; a gap or repetition of seqs; an invalid field; and a section that needs a source that is not
    there. A gap that is explained by records left out before is filled, so that seqs that events refer to stay right.
    """
    return _Reader(warnings)


class _Reader(Reader):
    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._heads: dict[str, int] = {}
        self._current: str | None = None
        self._left_out = 0

    def add(self, record: Record) -> Sequence[Step]:
        fields = as_object(record.value, record.location)
        if fields.get("type") == "session":
            self._current = None
            session = self._session(_header(fields, record.location, self._warnings), record.location)
            self._current = session.key
            self._left_out = self._warnings.left_out
            return [session]
        if self._current is None:
            raise errors.BadInput(f"{record.location}: an event before the header line of its session")
        return self._logged(self._current, fields, record.location)

    def end(self) -> Sequence[Step]:
        return ()

    def _logged(self, key: str, fields: dict[str, Any], location: str) -> Sequence[Step]:
        head, seq = self._heads[key], fields.get("seq")
        left_out = self._warnings.left_out - self._left_out
        if type(seq) is not int or not head <= seq <= head + left_out:
            raise errors.BadInput(f"{location}: seq is {repr(seq)[:80]} where {head} comes next")
        event = _event(fields, location, self._warnings)
        self._heads[key] = seq + 1
        self._left_out = self._warnings.left_out
        return [*(ForeignEvent(key, PLACEHOLDER) for _ in range(head, seq)), ForeignEvent(key, event)]

    def _session(self, header: Header, location: str) -> ForeignSession:
        if header.id in self._heads:
            raise errors.BadInput(f"{location}: the file holds the session {header.id} twice")
        source = header.source_session_id if header.source_session_id in self._heads else None
        if header.first_seq > 0:
            self._check_source(header, source, location)
        elif header.fork_seq:
            self._warnings.add("fork", "became a session of its own that holds the inherited events too")
            source = None
        elif source is None and header.source_session_id is not None:
            self._warnings.add("session", "lost its source, which is not in the file before it")
        self._heads[header.id] = header.first_seq
        return ForeignSession(
            key=header.id,
            label=header.label,
            id=header.id,
            parent=header.parent_id,
            source=source,
            at_seq=header.first_seq if source is None else header.fork_seq,
            workflow_mode=header.workflow_mode,
            metadata=header.metadata,
            system_prompt=header.system_prompt,
            memory=header.memory,
            memory_at_seq=header.memory_at_seq,
            insight=header.insight,
            config=header.config,
            refs=tuple(header.refs or ()),
            archived=header.status is SessionStatus.ARCHIVED,
        )

    def _check_source(self, header: Header, source: str | None, location: str) -> None:
        if source is None:
            raise errors.BadInput(
                f"{location}: the section starts at seq {header.first_seq} and needs the section of its source "
                f"{header.source_session_id!r}, which is not in the file before it"
            )
        head = self._heads[source]
        if header.fork_seq != header.first_seq or header.first_seq > head:
            raise errors.BadInput(
                f"{location}: firstSeq is {header.first_seq}, which must equal forkSeq ({header.fork_seq}) and "
                f"be at most the length of the source's log ({head})"
            )


def _header(fields: dict[str, Any], location: str, warnings: ImportWarnings) -> Header:
    if fields.get("format") != FORMAT or fields.get("version") != VERSION:
        raise errors.BadInput(
            f"{location}: a header of format {repr(fields.get('format'))[:80]}, "
            f"version {repr(fields.get('version'))[:80]}; "
            f"known here is {FORMAT!r}, version {VERSION}"
        )
    return _made(Header, fields, location, warnings)


def _event(fields: dict[str, Any], location: str, warnings: ImportWarnings) -> Event:
    kind = _EVENTS.get(str(fields.get("type")))
    if kind is None:
        raise errors.BadInput(f"{location}: {repr(fields.get('type'))[:80]} is not a type of event")
    fields = {name: value for name, value in fields.items() if name != "seq"}
    if isinstance(retrieval := fields.get("retrieval"), dict):
        fields["retrieval"] = _decoded(retrieval, {"details"}, location)
    return _made(kind, fields, location, warnings)


def _made(kind: type[M], fields: dict[str, Any], location: str, warnings: ImportWarnings) -> M:
    known = _names(kind)
    given = _decoded({name: fields[name] for name in known & fields.keys()}, kind.json_fields, location)
    with validating(location):
        made = kind.model_validate(given)
    warnings.lost_fields("line", fields, known)
    return made


@cache
def _names(kind: type[events.Model]) -> frozenset[str]:
    return frozenset(field.alias for field in kind.model_fields.values() if field.alias and not field.exclude)


def _decoded(fields: Mapping[str, Any], json_fields: AbstractSet[str], location: str) -> dict[str, Any]:
    decoded: dict[str, Any] = {}
    for name, value in fields.items():
        if name in json_fields:
            decoded[name] = text.to_json(value, f"{location}: {name}")
        elif name in _INSTANTS and value is not None:
            decoded[name] = text.instant(as_text(value, f"{location}: {name}"), f"{location}: {name}")
        elif value is not None:
            decoded[name] = value
    return decoded
