"""Messages as a model gets them, and the text of tool calls and results."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage import text
from storage.events import Instant, JsonText, ToolResult


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "SYSTEM"
    USER = "USER"
    ASSISTANT = "ASSISTANT"
    TOOL = "TOOL"


@dataclass(frozen=True, slots=True)
class MessageToolCall:
    """A call of an assistant message; `arguments` is text, as models write it, and need not be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `blocks` is JSON text of the original content parts, `timestamp` (ms) its first event's.

    `source_event_seqs` are the seqs of the events that made it, ascending; empty for a supplied result. `repaired`
    marks an answer collected from chunks, or a supplied result.
    """

    role: Role
    content: str | None
    reasoning: str | None = None
    blocks: JsonText | None = None
    tool_calls: Sequence[MessageToolCall] | None = None
    tool_call_id: str | None = None
    source_event_seqs: Sequence[int] = ()
    repaired: bool = False
    timestamp: Instant | None = None

    @property
    def supplied(self) -> bool:
        """Whether no event made it: it is a result supplied to keep the list valid."""
        return not self.source_event_seqs


def as_text(value: JsonText) -> str:
    """The text of a JSON string; anything else as JSON."""
    if value.startswith('"'):
        return text.clean(str(text.from_json(value)))
    return value


def result_text(event: ToolResult) -> str:
    """The error and the result of a tool, joined by a blank line if both have text; null counts as none."""
    result = "" if event.result is None or event.result == "null" else as_text(event.result)
    return "\n\n".join(part for part in (event.error, result) if part)
