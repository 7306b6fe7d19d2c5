"""Message trees of Open Assistant (OASST): one tree per line, `{message_tree_id, prompt: {text, role, replies}}`.

The first path of a tree (prompt, first reply, its first reply, ...) is a session; each further reply is a fork right
after the message that it replies to. People wrote most of the answers, so there are no turns or steps: each message is
one event. https://github.com/LAION-AI/Open-Assistant
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from typing_extensions import override

from storage import errors
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.branches import fork_sessions, split_branches
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.naming import SessionIds, label_of_events
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.unreadable import keep_unreadable, objects_in
from storage.transfer.formats.shared.values import as_object, as_text, most

FORMAT = "open-assistant"


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are message trees."""
    return most(values, _is_tree)


def _is_tree(value: object) -> bool:
    match value:
        case {
            "prompt": {"replies": list(), "role": _}
            | {"replies": list(), "text": _}
            | {"replies": _, "role": _, "text": _}
        }:
            return True
    return False


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return OpenAssistantReader(warnings)


class OpenAssistantReader(Reader):
    """Yields a session per tree, and a fork, which does not count as a session, per further reply."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._sessions = 0
        self._ids = SessionIds()

    @property
    @override
    def reads_conversations(self) -> bool:
        return True

    def add(self, record: Record) -> Sequence[Step]:
        """Return the sessions of a tree. Raises BadInput if the record is not one."""
        tree = as_object(record.value, record.location)
        rest = {name: value for name, value in tree.items() if name not in ("prompt", "message_tree_id")}
        keys = itertools.count(self._sessions)
        warnings = self._warnings.for_record()
        metadata = facts.storable_json(rest, record.location, warnings) if rest else None
        builder = LogBuilder(str(next(keys)), warnings)
        prompt = _message(tree.get("prompt"), f"{record.location} prompt")
        writer = _Writer(builder, warnings)
        found = list(
            split_branches(prompt, lambda message: _replies(message, warnings), lambda _: str(next(keys)), writer)
        )
        tree_id = self._ids.claim(tree.get("message_tree_id"), warnings)
        session = ForeignSession(
            key=builder.key,
            label=label_of_events(found[0].events),
            events=found[0].events,
            id=tree_id,
            metadata=metadata,
        )
        sessions = [session, *fork_sessions(found, tree_id, _message_id, self._ids, warnings)]
        self._warnings.include(warnings)
        self._sessions += len(sessions)
        return sessions

    def end(self) -> Sequence[Step]:
        """Return nothing: each record is a whole tree."""
        return ()


class _Message(NamedTuple):
    fields: dict[str, Any]
    location: str


def _message(value: object, location: str) -> _Message:
    return _Message(as_object(value, location), location)


def _replies(message: _Message, warnings: ImportWarnings) -> list[_Message]:
    replies = objects_in(message.fields.get("replies") or [], f"{message.location}.replies", warnings)
    return [_Message(*reply) for reply in replies]


class _Writer:
    def __init__(self, builder: LogBuilder, warnings: ImportWarnings) -> None:
        self.builder = builder
        self._warnings = warnings

    def add(self, node: _Message) -> None:
        with keep_unreadable(node.fields, self.builder, self._warnings, without="replies"):
            self._add(node)

    def _add(self, node: _Message) -> None:
        content = as_text(node.fields.get("text"), f"{node.location}.text")
        match node.fields.get("role"):
            case "prompter":
                self.builder.user(content)
            case "assistant":
                self.builder.assistant(content)
            case other:
                raise errors.BadInput(
                    f"{node.location}.role: {str(other)[:40]!r} is neither 'prompter' nor 'assistant'"
                )
        self._warnings.lost_fields("message", node.fields, {"text", "role", "replies"})

    def end(self) -> None:
        pass

    def fork(self, key: str) -> "_Writer":
        return _Writer(self.builder.fork(key), self._warnings)


def _message_id(message: _Message) -> object:
    return message.fields.get("message_id")
