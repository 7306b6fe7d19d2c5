"""Chat messages of OpenAI's chat completions API: each list of them, or object with `messages`, is one session.

If the records are messages themselves, all of them are one session. A user message starts a turn, and each assistant
message is a step. Messages have no times. https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from storage.events import JsonText
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.chat import add_message, is_message
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.naming import label_of_events
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.unreadable import keep_unreadable
from storage.transfer.formats.shared.values import as_list, most

FORMAT = "openai"


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are conversations, or messages of one."""
    return most(values, is_conversation) or most(values, is_message)


def is_conversation(value: object) -> bool:
    """Whether a value is a list of messages, or an object with one."""
    match value:
        case {"messages": []}:
            return True
        case {"messages": list(messages)} | [*messages]:
            return most(messages, _has_role)
    return False


def _has_role(value: object) -> bool:
    return isinstance(value, dict) and "role" in value


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return OpenAIReader(warnings)


class OpenAIReader(Reader):
    """Yields a session per conversation; if the records are messages, one session at the end of the document."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._sessions = 0
        self._messages = LogBuilder("messages", warnings)

    @property
    @override
    def reads_conversations(self) -> bool:
        return not self._messages.head

    def add(self, record: Record) -> Sequence[Step]:
        """Return the session of a conversation. Raises BadInput if the record is neither that nor a message."""
        value = record.value
        if isinstance(value, dict) and "messages" not in value and ("role" in value or self._messages.head):
            with keep_unreadable(value, self._messages, self._warnings):
                add_message(self._messages, value, record.location, self._warnings)
            return ()
        session = self._conversation(value, record.location)
        self._sessions += 1
        return [session]

    def end(self) -> Sequence[Step]:
        """Return the session of the messages that were records, or of an empty document."""
        events = self._messages.take_events()
        if not events and self._sessions:
            return ()
        return [ForeignSession(key=self._messages.key, label=label_of_events(events), events=events)]

    def _conversation(self, value: object, location: str) -> ForeignSession:
        rest: dict[str, Any] = {}
        messages = value
        if isinstance(value, dict):
            rest = {name: fact for name, fact in value.items() if name != "messages"}
            messages = value.get("messages")
        messages = as_list(messages, f"{location} messages")
        # Strict if there is no message at all: that is not a conversation with a few broken ones.
        warnings = self._warnings.for_record() if any(map(_has_role, messages)) else ImportWarnings()
        builder = LogBuilder(str(self._sessions), warnings)
        for index, message in enumerate(messages):
            with keep_unreadable(message, builder, warnings):
                add_message(builder, message, f"{location} messages[{index}]", warnings)
        metadata: JsonText | None = facts.storable_json(rest, location, warnings) if rest else None
        self._warnings.include(warnings)
        events = builder.take_events()
        return ForeignSession(key=builder.key, label=label_of_events(events), events=events, metadata=metadata)
