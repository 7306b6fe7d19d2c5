"""Sessions of the coding agent pi: a header, then entries, which later versions link to a tree by `parentId`.

A user message starts a turn, an assistant message is a step. An entry that does not follow the last one of a path
begins a branch: a fork at the seq behind the entry that it follows. https://github.com/badlogic/pi-mono
"""

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from storage import errors, text
from storage.events import JsonText, SurfaceHide, UserMessage
from storage.transfer.formats import times
from storage.transfer.formats.dialogue import Dialogue, label_of
from storage.transfer.formats.facts import instant
from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Reader, Renamed, Step, legal_id, made_id
from storage.transfer.formats.naming import id_by_first
from storage.transfer.formats.pi import messages
from storage.transfer.formats.pi.entries import Place, Places
from storage.transfer.formats.pi.messages import Act, Line
from storage.transfer.formats.records import Record
from storage.transfer.formats.values import as_object, as_text

FORMAT = "pi"
_ENTRY = frozenset({"type", "id", "parentId", "timestamp"})
_FILE_OF = re.compile(r"_([0-9a-fA-F-]{36})\.jsonl\Z")
_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})


def fits(values: Sequence[object]) -> bool:
    """Whether the first records hold a header or messages of this format."""
    return any(_is_header(value) or _is_message(value) for value in values)


def _is_header(value: object) -> bool:
    match value:
        case {"type": "session", "id": str(), "timestamp": str(), "cwd": str(), **rest}:
            return not rest.keys() & {"format", "createdAt", "data", "payload"}
    return False


def _is_message(value: object) -> bool:
    match value:
        case {"type": "message", "timestamp": str(), "message": {"role": str(role)}, **rest}:
            return role in _ROLES and not rest.keys() & {"uuid", "data", "payload"}
    return False


def reader(name: str, losses: ImportWarnings) -> Reader:
    """A reader of one log, or of several, each after its header."""
    return _Reader(losses)


class _Reader:
    def __init__(self, losses: ImportWarnings) -> None:
        self._losses = losses
        self._seen: set[str] = set()
        self._told: list[Step] = []
        self._root: Place | None = None
        self._line: Line | None = None
        self._places = Places()
        self._firsts = array("q")

    def add(self, record: Record) -> Sequence[Step]:
        """The steps of a header or an entry."""
        try:
            self._add(record.value, record.place)
        except errors.BadInput:
            if self._line is not None:  # an index that names an entry counts this one too
                self._firsts.append(self._line.dialogue.head)
            raise
        told, self._told = self._told, []
        return told

    def end(self) -> Sequence[Step]:
        """Nothing is held back."""
        return ()

    def _add(self, record: object, place: str) -> None:
        value = as_object(record, place)
        kind = as_text(value.get("type"), f"{place}: type")
        if kind == "session":
            self._header(value, place)
        else:
            self._entry(kind, value, place)

    def _header(self, header: Mapping[str, Any], place: str) -> None:
        facts = {name: value for name, value in header.items() if name not in ("type", "id")}
        metadata = text.to_json(facts, place) if facts else None
        id = legal_id(header.get("id"))
        if id in self._seen:
            raise errors.BadInput(f"{place}: a second header of the session {id}")
        origin = _session_of(header.get("branchedFrom")) or _session_of(header.get("parentSession"))
        self._start(id or id_by_first(FORMAT, place, header, self._losses), metadata, origin)

    def _start(self, id: str, metadata: JsonText | None = None, origin: str | None = None) -> None:
        self._seen.add(id)
        self._told.append(
            ForeignSession(key=id, label=None, id=id, parent_id=origin, repeats=origin, metadata=metadata)
        )
        line = Line(Dialogue(id, self._losses))
        self._root = Place(line, 0, line.dialogue.mark())
        self._line = line
        self._places = Places()
        self._firsts = array("q", [0])

    def _entry(self, kind: str, value: dict[str, Any], place: str) -> None:
        act = self._read(kind, value, place)
        if self._line is None:
            self._start(id_by_first(FORMAT, place, value, self._losses))
        id = value.get("id")
        line = self._follow(value, id) if isinstance(id, str) and id else self._line
        assert line is not None
        self._line = line
        first = line.dialogue.head
        self._firsts.append(first)
        act(line)
        line.time = times.iso(value.get("timestamp")) or line.time
        if isinstance(id, str) and id:
            line.tip = id
            self._places.add(id, Place(line, first, line.dialogue.mark()))
        self._told += line.dialogue.take()
        self._name(line)

    def _name(self, line: Line) -> None:
        if line.label is not None and not line.named:
            self._rename(line, line.label)

    def _rename(self, line: Line, label: str) -> None:
        line.named = True
        self._told.append(Renamed(line.dialogue.key, label))

    def _follow(self, value: Mapping[str, Any], id: str) -> Line:
        assert self._line is not None and self._root is not None
        parent = value.get("parentId")
        if id in self._places:
            self._losses.add("record", "with the id of an earlier one put behind the one before it")
            return self._line
        if "parentId" not in value or (parent is None and not self._places):
            return self._line
        if parent is not None and parent == self._line.tip:
            return self._line
        before = self._root if parent is None else self._places.get(parent)
        if before is None:
            self._losses.add("record", "whose parent is not in the log put behind the one before it")
            return self._line
        if parent is not None and before.line.tip == parent:
            return before.line
        return self._branch(before, id)

    def _branch(self, before: Place, id: str) -> Line:
        assert self._root is not None
        root, source = self._root.line.dialogue.key, before.line.dialogue.key
        key = legal_id(f"{root}:{id}") or made_id(FORMAT, root, root, id)
        self._told.append(
            ForeignSession(
                key=key, label=None, id=key, parent=source, source=source, at_seq=before.mark.head, counted=False
            )
        )
        return Line(before.line.dialogue.resume(key, before.mark), before.line)

    def _read(self, kind: str, value: dict[str, Any], place: str) -> Act:
        time = instant(value.get("timestamp"), times.iso, self._losses)
        rest = {name: item for name, item in value.items() if name not in _ENTRY}
        match kind:
            case "message":
                return self._message(as_object(value.get("message"), f"{place}: message"), place, time)
            case "compaction":
                return self._compaction(rest, place, time)
            case "branch_summary":
                return self._summary(rest, place, time)
            case "custom_message":
                return messages.injected(rest, f"{place}: content", time)
            case "custom" if isinstance(value.get("customType"), str):
                return _custom(value["customType"], text.to_json(value.get("data"), f"{place}: data"), time)
            case "session_info" if isinstance(value.get("name"), str) and label_of(value["name"]):
                return self._renamed(value["name"])
            case "label" if isinstance(value.get("label"), str) and label_of(value["label"]):
                return self._labelled(value, text.to_json(rest, place), time)
        if kind not in ("custom", "label", "session_info", "model_change", "thinking_level_change"):
            self._losses.add("record", "of another type kept as custom")
        return _custom(kind, text.to_json(rest, place), time)

    def _message(self, message: dict[str, Any], place: str, time: int | None) -> Act:
        place = f"{place}: message"
        role = as_text(message.get("role"), f"{place}.role")
        match role:
            case "user":
                return messages.user(message, place, time, self._losses)
            case "assistant":
                return messages.assistant(message, place, time, self._losses)
            case "toolResult":
                return messages.result(message, place, time, self._losses)
            case "custom" | "hookMessage":
                return messages.injected(message, f"{place}.content", time)
        self._losses.add("message", "neither of the user nor of the model kept as custom")
        return _custom(role, text.to_json(message, place), time)

    def _summary(self, rest: dict[str, Any], place: str, time: int | None) -> Act:
        summary = as_text(rest.pop("summary", None), f"{place}: summary")
        facts = text.to_json(rest, place)

        def act(line: Line) -> None:
            line.dialogue.custom("branch_summary", facts, time=time)
            line.dialogue.user(summary, time=time)

        return act

    def _compaction(self, rest: dict[str, Any], place: str, time: int | None) -> Act:
        summary = as_text(rest.pop("summary", None), f"{place}: summary")
        facts = text.to_json(rest, place)

        def act(line: Line) -> None:
            head = line.dialogue.head
            kept = self._kept(rest, line)
            kept = head if kept is None else kept
            last, kept_before = line.compactions[-1] if line.compactions else (-1, 0)
            replaced = (0, kept - 1) if last < kept else (last, last)
            line.dialogue.custom("compaction", facts, time=time)
            message = UserMessage(content=summary, timestamp=time)
            line.compactions.append((line.dialogue.head, kept))
            line.dialogue.add(message, replaced if replaced[1] >= 0 else None)
            if kept_before < kept <= last:
                line.dialogue.add(SurfaceHide(from_seq=kept_before, to_seq=kept, reason="compaction"))

        return act

    def _kept(self, compaction: Mapping[str, Any], line: Line) -> int | None:
        """The seq from which on a compaction keeps what is there; None where it keeps nothing."""
        index, id = compaction.get("firstKeptEntryIndex"), compaction.get("firstKeptEntryId")
        if isinstance(id, str):
            place = self._places.get(id)
            return place.first if place is not None and line.shows(place.line, place.first) else None
        if type(index) is int and 0 < index < len(self._firsts):
            return self._firsts[index]
        return None

    def _renamed(self, name: str) -> Act:
        def act(line: Line) -> None:
            assert self._root is not None
            self._rename(self._root.line, name)

        return act

    def _labelled(self, value: Mapping[str, Any], facts: JsonText, time: int | None) -> Act:
        def act(line: Line) -> None:
            place = self._places.get(value.get("targetId"))
            if place is not None and place.line.source is not None:
                self._rename(place.line, value["label"])
            line.dialogue.custom("label", facts, time=time)

        return act


def _custom(name: str, data: JsonText, time: int | None) -> Act:
    def act(line: Line) -> None:
        line.dialogue.custom(name, data, time=time)

    return act


def _session_of(file: object) -> str | None:
    """The id of the session whose log has this path: files are named by it."""
    found = _FILE_OF.search(file) if isinstance(file, str) else None
    return found[1] if found else None
