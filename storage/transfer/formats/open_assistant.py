"""Message trees of Open Assistant (OASST): one tree a line, `{message_tree_id, prompt: {text, role, replies}}`.

The first path of a tree (prompt, first reply, its first reply, ...) is a session; each further reply is a fork that
leaves its session right after the message that it replies to. People wrote most of the answers, so that there are
neither turns nor steps: each message is one event. https://github.com/LAION-AI/Open-Assistant
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from storage import errors
from storage.transfer.formats import facts
from storage.transfer.formats.branches import branches, forks
from storage.transfer.formats.dialogue import Dialogue
from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.naming import OwnIds, label_of_events
from storage.transfer.formats.records import Record
from storage.transfer.formats.unreadable import kept, objects
from storage.transfer.formats.values import as_object, as_text, most

FORMAT = "open-assistant"


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are trees."""
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


def reader(name: str, losses: ImportWarnings) -> "OpenAssistant":
    """A reader of one document."""
    return OpenAssistant(losses)


class OpenAssistant:
    """A session per tree and a fork, not counted, per further reply."""

    def __init__(self, losses: ImportWarnings) -> None:
        self._losses = losses
        self._sessions = 0
        self._ids = OwnIds()

    def add(self, record: Record) -> Sequence[Step]:
        """The sessions of a tree. Raises BadInput for what is none."""
        tree = as_object(record.value, record.place)
        told = {name: value for name, value in tree.items() if name not in ("prompt", "message_tree_id")}
        keys = itertools.count(self._sessions)
        losses = self._losses.apart()
        metadata = facts.told(told, record.place, losses) if told else None
        dialogue = Dialogue(str(next(keys)), losses)
        prompt = _message(tree.get("prompt"), f"{record.place} prompt")
        writer = _Writer(dialogue, losses)
        found = list(branches(prompt, lambda message: _replies(message, losses), lambda _: str(next(keys)), writer))
        tree_id = self._ids.take(tree.get("message_tree_id"), losses)
        session = ForeignSession(
            key=dialogue.key,
            label=label_of_events(found[0].events),
            events=found[0].events,
            id=tree_id,
            metadata=metadata,
        )
        sessions = [session, *forks(found, tree_id, _message_id, self._ids, losses)]
        self._losses.include(losses)
        self._sessions += len(sessions)
        return sessions

    def end(self) -> Sequence[Step]:
        """Nothing, as each tree stands for itself."""
        return ()


class _Message(NamedTuple):
    fields: dict[str, Any]
    place: str


def _message(value: object, place: str) -> _Message:
    return _Message(as_object(value, place), place)


def _replies(message: _Message, losses: ImportWarnings) -> list[_Message]:
    replies = objects(message.fields.get("replies") or [], f"{message.place}.replies", losses)
    return [_Message(*reply) for reply in replies]


class _Writer:
    def __init__(self, dialogue: Dialogue, losses: ImportWarnings) -> None:
        self.dialogue = dialogue
        self._losses = losses

    def add(self, node: _Message) -> None:
        with kept(node.fields, self.dialogue, self._losses, without="replies"):
            self._add(node)

    def _add(self, node: _Message) -> None:
        content = as_text(node.fields.get("text"), f"{node.place}.text")
        match node.fields.get("role"):
            case "prompter":
                self.dialogue.user(content)
            case "assistant":
                self.dialogue.assistant(content)
            case other:
                raise errors.BadInput(f"{node.place}.role: {str(other)[:40]!r} is neither 'prompter' nor 'assistant'")
        self._losses.fields("message", node.fields, {"text", "role", "replies"})

    def end(self) -> None:
        pass

    def fork(self, key: str) -> "_Writer":
        return _Writer(self.dialogue.fork(key), self._losses)


def _message_id(message: _Message) -> object:
    return message.fields.get("message_id")
