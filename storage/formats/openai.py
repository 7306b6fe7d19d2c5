"""Chat messages of OpenAI's chat completions API: a list of them, or an object with `messages`, is one session.

A user message starts a turn that lasts until the next one. Messages carry no times and no steps.
https://platform.openai.com/docs/api-reference/chat/create
"""

from collections import deque
from typing import Any

from storage import errors, text
from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    JsonText,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.formats.foreign import ForeignSession, Losses, Reading
from storage.formats.records import Document, as_list, as_object, as_text, at

FORMAT = "openai"

_FIELDS = {
    "system": ("content",),
    "developer": ("content",),
    "user": ("content",),
    "assistant": ("content", "reasoning_content", "tool_calls"),
    "tool": ("content", "tool_call_id"),
}


def fits(first: object) -> bool:
    """Whether the first record of a document is a conversation."""
    match first:
        case {"messages": list(messages)}:
            return all(isinstance(message, dict) and "role" in message for message in messages)
        case [{"role": _}, *_]:
            return True
    return False


def read(document: Document) -> Reading:
    """One session per record. Raises BadInput, naming the message, for what is none."""
    losses = Losses()
    sessions = []
    for index, (place, value) in enumerate(document.records):
        messages = value
        if isinstance(value, dict):
            losses.fields("conversation", value, {"messages"})
            messages = value.get("messages")
        events = conversation(messages, place, losses)
        sessions.append(ForeignSession(key=str(index), label=None, events=events))
    return Reading(FORMAT, sessions, losses.warnings())


def conversation(messages: object, place: str, losses: Losses) -> list[Event]:
    """The events of a list of messages; what has no place in them is counted in `losses`."""
    reader = _Conversation(losses)
    for index, message in enumerate(as_list(messages, f"{place} messages")):
        where = f"{place} messages[{index}]"
        with at(where):
            reader.add(as_object(message, where), where)
    reader.end_turn()
    return reader.events


class _Conversation:
    def __init__(self, losses: Losses) -> None:
        self.events: list[Event] = []
        self._losses = losses
        self._turns = 0
        self._turn: str | None = None
        self._made_ids = 0
        self._unanswered: deque[str] = deque()

    def end_turn(self) -> None:
        if self._turn is not None:
            self.events.append(TurnEnd(turn_id=self._turn))
            self._turn = None

    def add(self, message: dict[str, Any], place: str) -> None:
        role = as_text(message.get("role"), f"{place}.role")
        if role in _FIELDS:
            self._losses.fields(f"{role} message", message, ("role", *_FIELDS[role]))
        match role:
            case "system" | "developer":
                self._system(message, place)
            case "user":
                self._user(message, place)
            case "assistant":
                self._assistant(message, place)
            case "tool":
                self._tool(message, place)
            case _:
                self._losses.add("message", "of unknown role kept as custom")
                self.events.append(CustomEvent(name=role, data=text.to_json(message, place), turn_id=self._turn))

    def _system(self, message: dict[str, Any], place: str) -> None:
        content, blocks = _content(message, place)
        if blocks is not None:
            self._losses.add("system message", "lost its parts other than text")
        self.events.append(SystemMessage(content=content, turn_id=self._turn))

    def _user(self, message: dict[str, Any], place: str) -> None:
        content, blocks = _content(message, place)
        self.end_turn()
        self._turns += 1
        self._turn = f"turn-{self._turns}"
        self.events.append(TurnStart(turn_id=self._turn))
        self.events.append(UserMessage(content=content, blocks=blocks, turn_id=self._turn))

    def _assistant(self, message: dict[str, Any], place: str) -> None:
        content, blocks = _content(message, place)
        reasoning = message.get("reasoning_content")
        self.events.append(AssistantMessage(content=content, reasoning=reasoning, blocks=blocks, turn_id=self._turn))
        for index, call in enumerate(as_list(message.get("tool_calls") or [], f"{place}.tool_calls")):
            where = f"{place}.tool_calls[{index}]"
            self._call(as_object(call, where), where)

    def _call(self, call: dict[str, Any], place: str) -> None:
        if isinstance(custom := call.get("custom"), dict):
            name, arguments = custom.get("name"), custom.get("input")
        else:
            function = as_object(call.get("function"), f"{place}.function")
            name, arguments = function.get("name"), function.get("arguments")
        call_id = call.get("id")
        if not call_id:
            call_id = self._make_id()
            self._unanswered.append(call_id)
            self._losses.add("tool call", "without an id got one")
        args = text.to_json("" if arguments is None else arguments, f"{place}.arguments")
        self.events.append(
            ToolCall(call_id=call_id, name=as_text(name, f"{place}.name"), args=args, turn_id=self._turn)
        )

    def _tool(self, message: dict[str, Any], place: str) -> None:
        content, _ = _content(message, place)
        parts = message.get("content")
        call_id = message.get("tool_call_id")
        if not call_id:
            call_id = self._unanswered.popleft() if self._unanswered else self._make_id()
            self._losses.add("tool message", "without a call id got one")
        self.events.append(
            ToolResult(
                call_id=call_id,
                result=text.to_json(content, place),
                blocks=text.to_json(parts, place) if isinstance(parts, list) else None,
                turn_id=self._turn,
            )
        )

    def _make_id(self) -> str:
        self._made_ids += 1
        return f"call-{self._made_ids}"


def _content(message: dict[str, Any], place: str) -> tuple[str, JsonText | None]:
    """The text of a message, and its parts where some are other than text."""
    match message.get("content"):
        case None:
            return "", None
        case str(content):
            return content, None
        case list(parts):
            texts = [part["text"] for part in parts if _is_text(part)]
            return "".join(texts), None if len(texts) == len(parts) else text.to_json(parts, f"{place}.content")
    raise errors.BadInput(f"{place}.content: must be a string, a list of parts or null")


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
