"""Chat messages of OpenAI's chat completions API: each list of them, or object with `messages`, is one session.

Where the records are messages themselves, all of them are one session. A user message starts a turn, each answer of
the assistant is a step. Messages carry no times. https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Sequence
from typing import Any

from storage.events import JsonText
from storage.transfer.formats import facts
from storage.transfer.formats.chat import add_message, is_message
from storage.transfer.formats.dialogue import Dialogue
from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.naming import label_of_events
from storage.transfer.formats.records import Record
from storage.transfer.formats.unreadable import kept
from storage.transfer.formats.values import as_list, most

FORMAT = "openai"


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are conversations, or messages of one."""
    return most(values, is_conversation) or most(values, is_message)


def is_conversation(value: object) -> bool:
    """Whether a value is a list of messages or an object with one."""
    match value:
        case {"messages": []}:
            return True
        case {"messages": list(messages)} | [*messages]:
            return most(messages, _has_role)
    return False


def _has_role(value: object) -> bool:
    return isinstance(value, dict) and "role" in value


def reader(name: str, losses: ImportWarnings) -> "OpenAI":
    """A reader of one document."""
    return OpenAI(losses)


class OpenAI:
    """One session per conversation. Of a document whose records are messages it is handed over at the end."""

    def __init__(self, losses: ImportWarnings) -> None:
        self._losses = losses
        self._sessions = 0
        self._messages = Dialogue("messages", losses)

    def add(self, record: Record) -> Sequence[Step]:
        """The session of a conversation. Raises BadInput for what is none."""
        value = record.value
        if isinstance(value, dict) and "messages" not in value and ("role" in value or self._messages.head):
            with kept(value, self._messages, self._losses):
                add_message(self._messages, value, record.place, self._losses)
            return ()
        session = self._conversation(value, record.place)
        self._sessions += 1
        return [session]

    def end(self) -> Sequence[Step]:
        """The session of the messages that were records, or of an empty list of them."""
        events = self._messages.drafts()
        if not events and self._sessions:
            return ()
        return [ForeignSession(key=self._messages.key, label=label_of_events(events), events=events)]

    def _conversation(self, value: object, place: str) -> ForeignSession:
        told: dict[str, Any] = {}
        messages = value
        if isinstance(value, dict):
            told = {name: fact for name, fact in value.items() if name != "messages"}
            messages = value.get("messages")
        messages = as_list(messages, f"{place} messages")
        # What holds no message at all is no conversation that lost some.
        losses = self._losses.apart() if any(map(_has_role, messages)) else ImportWarnings()
        dialogue = Dialogue(str(self._sessions), losses)
        for index, message in enumerate(messages):
            with kept(message, dialogue, losses):
                add_message(dialogue, message, f"{place} messages[{index}]", losses)
        metadata: JsonText | None = facts.told(told, place, losses) if told else None
        self._losses.include(losses)
        events = dialogue.drafts()
        return ForeignSession(key=dialogue.key, label=label_of_events(events), events=events, metadata=metadata)
