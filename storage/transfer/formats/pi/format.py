"""Sessions of the coding agent pi: a header, then entries, which newer versions link into a tree by `parentId`.

A user message starts a turn, an assistant message is a step. An entry that does not follow the last one of a thread
begins a branch: a fork right after the entry that it follows. https://github.com/badlogic/pi-mono
"""

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from storage import errors, text
from storage.events import JsonText, SurfaceHide, UserMessage
from storage.transfer.formats.pi import messages
from storage.transfer.formats.pi.entries import EntryIndex, EntryPosition
from storage.transfer.formats.pi.messages import Apply, Thread
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.facts import read_time
from storage.transfer.formats.shared.foreign import (
    ForeignLabel,
    ForeignSession,
    ImportWarnings,
    Reader,
    Step,
    derived_id,
    valid_id,
)
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.naming import id_from_first_record
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_object, as_text

FORMAT = "pi"
_ENTRY = frozenset({"type", "id", "parentId", "timestamp"})
_FILE_OF = re.compile(r"_([0-9a-fA-F-]{36})\.jsonl\Z")
_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})


def fits(values: Sequence[object]) -> bool:
    """Whether a header or a message of this format is among the first records."""
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


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one log, or for several, each after its header."""
    return _Reader(warnings)


class _Reader(Reader):
    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._seen: set[str] = set()
        self._steps: list[Step] = []
        self._root: EntryPosition | None = None
        self._thread: Thread | None = None
        self._positions = EntryIndex()
        self._firsts = array("q")

    def add(self, record: Record) -> Sequence[Step]:
        """Return the steps of a header or an entry."""
        try:
            self._add(record.value, record.location)
        except errors.BadInput:
            if self._thread is not None:  # indices in the log count broken entries too
                self._firsts.append(self._thread.builder.head)
            raise
        steps, self._steps = self._steps, []
        return steps

    def end(self) -> Sequence[Step]:
        """Return nothing: nothing is held back."""
        return ()

    def _add(self, record: object, location: str) -> None:
        value = as_object(record, location)
        kind = as_text(value.get("type"), f"{location}: type")
        if kind == "session":
            self._header(value, location)
        else:
            self._entry(kind, value, location)

    def _header(self, header: Mapping[str, Any], location: str) -> None:
        facts = {name: value for name, value in header.items() if name not in ("type", "id")}
        metadata = text.to_json(facts, location) if facts else None
        id = valid_id(header.get("id"))
        if id in self._seen:
            raise errors.BadInput(f"{location}: a second header of the session {id}")
        origin = _session_of(header.get("branchedFrom")) or _session_of(header.get("parentSession"))
        self._start(id or id_from_first_record(FORMAT, location, header, self._warnings), metadata, origin)

    def _start(self, id: str, metadata: JsonText | None = None, origin: str | None = None) -> None:
        self._seen.add(id)
        self._steps.append(
            ForeignSession(key=id, label=None, id=id, parent_id=origin, repeats=origin, metadata=metadata)
        )
        thread = Thread(LogBuilder(id, self._warnings))
        self._root = EntryPosition(thread, 0, thread.builder.state())
        self._thread = thread
        self._positions = EntryIndex()
        self._firsts = array("q", [0])

    def _entry(self, kind: str, value: dict[str, Any], location: str) -> None:
        apply = self._read(kind, value, location)
        if self._thread is None:
            self._start(id_from_first_record(FORMAT, location, value, self._warnings))
        id = value.get("id")
        thread = self._follow(value, id) if isinstance(id, str) and id else self._thread
        assert thread is not None
        self._thread = thread
        first = thread.builder.head
        self._firsts.append(first)
        apply(thread)
        thread.time = times.iso(value.get("timestamp")) or thread.time
        if isinstance(id, str) and id:
            thread.tip = id
            self._positions.add(id, EntryPosition(thread, first, thread.builder.state()))
        self._steps += thread.builder.take_steps()
        self._name(thread)

    def _name(self, thread: Thread) -> None:
        if thread.label is not None and not thread.named:
            self._rename(thread, thread.label)

    def _rename(self, thread: Thread, label: str) -> None:
        thread.named = True
        self._steps.append(ForeignLabel(thread.builder.key, label))

    def _follow(self, value: Mapping[str, Any], id: str) -> Thread:
        assert self._thread is not None and self._root is not None
        parent = value.get("parentId")
        if id in self._positions:
            self._warnings.add("record", "with the id of an earlier one put after the previous one")
            return self._thread
        if "parentId" not in value or (parent is None and not self._positions):
            return self._thread
        if parent is not None and parent == self._thread.tip:
            return self._thread
        before = self._root if parent is None else self._positions.get(parent)
        if before is None:
            self._warnings.add("record", "whose parent is not in the log put after the previous one")
            return self._thread
        if parent is not None and before.thread.tip == parent:
            return before.thread
        return self._branch(before, id)

    def _branch(self, before: EntryPosition, id: str) -> Thread:
        assert self._root is not None
        root, source = self._root.thread.builder.key, before.thread.builder.key
        key = valid_id(f"{root}:{id}") or derived_id(FORMAT, root, root, id)
        self._steps.append(
            ForeignSession(
                key=key, label=None, id=key, parent=source, source=source, at_seq=before.state.head, counted=False
            )
        )
        return Thread(before.thread.builder.resume(key, before.state), before.thread)

    def _read(self, kind: str, value: dict[str, Any], location: str) -> Apply:
        time = read_time(value.get("timestamp"), times.iso, self._warnings)
        rest = {name: item for name, item in value.items() if name not in _ENTRY}
        match kind:
            case "message":
                return self._message(as_object(value.get("message"), f"{location}: message"), location, time)
            case "compaction":
                return self._compaction(rest, location, time)
            case "branch_summary":
                return self._summary(rest, location, time)
            case "custom_message":
                return messages.injected(rest, f"{location}: content", time)
            case "custom" if isinstance(value.get("customType"), str):
                return _custom(value["customType"], text.to_json(value.get("data"), f"{location}: data"), time)
            case "session_info" if isinstance(value.get("name"), str) and label_of(value["name"]):
                return self._renamed(value["name"])
            case "label" if isinstance(value.get("label"), str) and label_of(value["label"]):
                return self._labelled(value, text.to_json(rest, location), time)
        if kind not in ("custom", "label", "session_info", "model_change", "thinking_level_change"):
            self._warnings.add("record", "of another type kept as custom")
        return _custom(kind, text.to_json(rest, location), time)

    def _message(self, message: dict[str, Any], location: str, time: int | None) -> Apply:
        location = f"{location}: message"
        role = as_text(message.get("role"), f"{location}.role")
        match role:
            case "user":
                return messages.user(message, location, time, self._warnings)
            case "assistant":
                return messages.assistant(message, location, time, self._warnings)
            case "toolResult":
                return messages.result(message, location, time, self._warnings)
            case "custom" | "hookMessage":
                return messages.injected(message, f"{location}.content", time)
        self._warnings.add("message", "of neither the user nor the model kept as custom")
        return _custom(role, text.to_json(message, location), time)

    def _summary(self, rest: dict[str, Any], location: str, time: int | None) -> Apply:
        summary = as_text(rest.pop("summary", None), f"{location}: summary")
        facts = text.to_json(rest, location)

        def apply(thread: Thread) -> None:
            thread.builder.custom("branch_summary", facts, time=time)
            thread.builder.user(summary, time=time)

        return apply

    def _compaction(self, rest: dict[str, Any], location: str, time: int | None) -> Apply:
        summary = as_text(rest.pop("summary", None), f"{location}: summary")
        facts = text.to_json(rest, location)

        def apply(thread: Thread) -> None:
            head = thread.builder.head
            kept = self._kept(rest, thread)
            kept = head if kept is None else kept
            last, kept_before = thread.compactions[-1] if thread.compactions else (-1, 0)
            replaced = (0, kept - 1) if last < kept else (last, last)
            thread.builder.custom("compaction", facts, time=time)
            message = UserMessage(content=summary, timestamp=time)
            thread.compactions.append((thread.builder.head, kept))
            thread.builder.add(message, replaced if replaced[1] >= 0 else None)
            if kept_before < kept <= last:
                thread.builder.add(SurfaceHide(from_seq=kept_before, to_seq=kept, reason="compaction"))

        return apply

    def _kept(self, compaction: Mapping[str, Any], thread: Thread) -> int | None:
        """The seq of the first event that a compaction keeps, None if it keeps nothing."""
        index, id = compaction.get("firstKeptEntryIndex"), compaction.get("firstKeptEntryId")
        if isinstance(id, str):
            position = self._positions.get(id)
            return position.first if position is not None and thread.shows(position.thread, position.first) else None
        if type(index) is int and 0 < index < len(self._firsts):
            return self._firsts[index]
        return None

    def _renamed(self, name: str) -> Apply:
        def apply(thread: Thread) -> None:
            assert self._root is not None
            self._rename(self._root.thread, name)

        return apply

    def _labelled(self, value: Mapping[str, Any], facts: JsonText, time: int | None) -> Apply:
        def apply(thread: Thread) -> None:
            position = self._positions.get(value.get("targetId"))
            if position is not None and position.thread.source is not None:
                self._rename(position.thread, value["label"])
            thread.builder.custom("label", facts, time=time)

        return apply


def _custom(name: str, data: JsonText, time: int | None) -> Apply:
    def apply(thread: Thread) -> None:
        thread.builder.custom(name, data, time=time)

    return apply


def _session_of(file: object) -> str | None:
    """The id of the session whose log has this path: it is part of the file name."""
    found = _FILE_OF.search(file) if isinstance(file, str) else None
    return found[1] if found else None
