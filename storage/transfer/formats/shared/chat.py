"""Logs messages of OpenAI's chat completions API, including the legacy function calls.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.values import as_list, as_object, as_text, shape

_FIELDS = {
    "system": ("content",),
    "developer": ("content",),
    "user": ("content",),
    "assistant": ("content", "name", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"),
    "tool": ("content", "tool_call_id"),
    "function": ("content",),
}
_TEXTS = frozenset({"text", "input_text", "output_text"})
_THOUGHTS = frozenset({"thinking", "reasoning"})


class ChatCall(NamedTuple):
    """A tool call of a message; arguments that are a string stay one."""

    id: object
    name: str
    args: JsonText


class ChatMessage(NamedTuple):
    """A valid message.

    `parts` is its content if that is a list; `blocks` is the same, but only if the list holds more than plain text.
    `thoughts` are all candidates for the reasoning, which is the first string among them.
    """

    role: str
    content: str
    blocks: JsonText | None = None
    parts: JsonText | None = None
    thoughts: Sequence[object] = ()
    calls: Sequence[ChatCall] = ()
    call_id: object = None
    name: object = None

    @property
    def reasoning(self) -> str | None:
        """The first of the `thoughts` that is a non-empty string, else None."""
        return next((thought for thought in self.thoughts if isinstance(thought, str) and thought), None)


def is_message(value: object) -> bool:
    """Whether a value looks like a chat message."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and any(name in value for name in ("content", "tool_calls", "function_call"))
    )


def add_message(
    builder: LogBuilder, message: object, location: str, warnings: ImportWarnings, *, time: int | None = None
) -> None:
    """Log a message, in turns and steps: a user message starts a turn, an answer without calls ends it.

    `time` is in ms since 1970. Raises BadInput, with the location, before anything is logged.
    """
    fields = as_object(message, location)
    parsed = parse_message(fields, location)
    match parsed.role:
        case "system" | "developer":
            add_system(builder, parsed, warnings, time=time)
        case "user":
            builder.start_turn(time=time)
            builder.user(parsed.content, blocks=parsed.blocks, time=time)
        case "assistant":
            builder.start_step(agent=parsed.name if isinstance(parsed.name, str) else None, time=time)
            add_answer(builder, parsed, warnings, time=time)
            if not parsed.calls:
                builder.end_step(time=time)
                builder.end_turn(time=time)
        case "tool" | "function":
            builder.result(parsed.call_id, text.to_json(parsed.content, location), blocks=parsed.parts, time=time)
        case _:
            builder.custom(parsed.role, text.to_json(fields, location), time=time)
            warnings.add("message", "of unknown role kept as custom")
    if parsed.role in _FIELDS:
        warnings.lost_fields(f"{parsed.role} message", fields, ("role", *_FIELDS[parsed.role]))


def add_system(builder: LogBuilder, parsed: ChatMessage, warnings: ImportWarnings, *, time: int | None = None) -> None:
    """Log a system message, which can hold only text."""
    builder.system(parsed.content, time=time)
    if parsed.blocks is not None:
        warnings.add("system message", "lost its parts other than text")
    if parsed.role == "developer":
        warnings.add("developer message", "became a system message")


def add_answer(builder: LogBuilder, parsed: ChatMessage, warnings: ImportWarnings, *, time: int | None = None) -> None:
    """Log an assistant message and its calls, in the open step."""
    reasoning = parsed.reasoning
    if any(thought not in (None, "", reasoning) for thought in parsed.thoughts):
        warnings.add("assistant message", "lost a second or unreadable reasoning")
    builder.assistant(parsed.content, reasoning=reasoning, blocks=parsed.blocks, time=time)
    for call in parsed.calls:
        builder.call(call.id, call.name, call.args, time=time)


def parse_message(message: dict[str, Any], location: str) -> ChatMessage:
    """Check and parse a message. Raises BadInput with the location."""
    role = as_text(message.get("role"), f"{location}.role")
    if role not in _FIELDS:
        text.to_json(message, location)
        return ChatMessage(role, "")
    parsed = _content(message, location)._replace(role=role)
    if role != "assistant":
        return parsed._replace(call_id=message.get("tool_call_id"))
    thoughts = [message.get("reasoning_content"), message.get("reasoning"), *parsed.thoughts]
    return parsed._replace(thoughts=thoughts, calls=_calls(message, location), name=message.get("name"))


def content_of(content: object, location: str) -> tuple[str, JsonText | None]:
    """Return the text of a message's content, and its parts if not all are plain text. Raises BadInput."""
    parsed = _content({"content": content}, location)
    return parsed.content, parsed.blocks


def _calls(message: dict[str, Any], location: str) -> list[ChatCall]:
    given = as_list(message.get("tool_calls") or [], f"{location}.tool_calls")
    calls = [_call(call, f"{location}.tool_calls[{index}]") for index, call in enumerate(given)]
    if legacy := message.get("function_call"):
        calls.append(_function(None, legacy, "arguments", f"{location}.function_call"))
    return calls


def _call(value: object, location: str) -> ChatCall:
    call = as_object(value, location)
    if isinstance(custom := call.get("custom"), dict):
        return _function(call.get("id"), custom, "input", f"{location}.custom")
    return _function(call.get("id"), call.get("function"), "arguments", f"{location}.function")


def _function(id: object, value: object, arguments: str, location: str) -> ChatCall:
    function = as_object(value, location)
    given = function.get(arguments)
    args = text.to_json("" if given is None else given, f"{location}.{arguments}")
    return ChatCall(id, as_text(function.get("name"), f"{location}.name"), args)


def _content(message: dict[str, Any], location: str) -> ChatMessage:
    content = message.get("content")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        content = [*_as_parts(content), {"type": "refusal", "refusal": refusal}]
    match content:
        case None:
            return ChatMessage("", "")
        case str():
            return ChatMessage("", content)
        case list():
            return _of_parts(content, f"{location}.content")
    raise errors.BadInput(f"{location}.content: must be a string, a list of parts or null, is {shape(content)}")


def _as_parts(content: object) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _of_parts(parts: list[Any], location: str) -> ChatMessage:
    texts = [part["text"] for part in parts if _says(part, _TEXTS, "text")]
    thoughts = [part[part["type"]] for part in parts if any(_says(part, {kind}, kind) for kind in _THOUGHTS)]
    encoded = text.to_json(parts, location)
    plain = all(_says(part, {"text"}, "text") and len(part) == 2 for part in parts)
    return ChatMessage("", "".join(texts), None if plain else encoded, encoded, ["\n\n".join(thoughts)])


def _says(part: object, kinds: Collection[str], field: str) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get(field), str):
        return False
    kind = part.get("type")
    return isinstance(kind, str) and kind in kinds
