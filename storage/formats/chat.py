"""Chat messages as OpenAI's chat completions API has them, the legacy ones too, into the events of a dialogue.

https://platform.openai.com/docs/api-reference/chat/create
"""

from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText
from storage.formats.dialogue import Dialogue
from storage.formats.foreign import Losses
from storage.formats.records import as_list, as_object, as_text, shape

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


class _Content(NamedTuple):
    """`parts` is the list that was given, `blocks` the same where it says more than the texts do."""

    text: str
    reasoning: str | None = None
    blocks: JsonText | None = None
    parts: JsonText | None = None


class _Call(NamedTuple):
    id: object
    name: str
    args: JsonText


def is_message(value: object) -> bool:
    """Whether a value looks like a message of a chat."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and any(name in value for name in ("content", "tool_calls", "function_call"))
    )


def add_message(dialogue: Dialogue, message: object, place: str, losses: Losses, *, time: int | None = None) -> None:
    """Logs a message, in turns and steps: a user message starts a turn, an answer without calls ends it.

    `time` is in ms since 1970. Raises BadInput, naming the place, before it logs anything.
    """
    fields = as_object(message, place)
    role = as_text(fields.get("role"), f"{place}.role")
    match role:
        case "system" | "developer":
            _system(dialogue, fields, role, place, losses, time)
        case "user":
            content = _content(fields, place)
            dialogue.start_turn(time=time)
            dialogue.user(content.text, blocks=content.blocks, time=time)
        case "assistant":
            _assistant(dialogue, fields, place, losses, time)
        case "tool" | "function":
            content = _content(fields, place)
            result = text.to_json(content.text, place)
            dialogue.result(fields.get("tool_call_id"), result, blocks=content.parts, time=time)
        case _:
            dialogue.custom(role, text.to_json(fields, place), time=time)
            losses.add("message", "of unknown role kept as custom")
    if role in _FIELDS:
        losses.fields(f"{role} message", fields, ("role", *_FIELDS[role]))


def _system(
    dialogue: Dialogue, message: dict[str, Any], role: str, place: str, losses: Losses, time: int | None
) -> None:
    content = _content(message, place)
    dialogue.system(content.text, time=time)
    if content.blocks is not None:
        losses.add("system message", "lost its parts other than text")
    if role == "developer":
        losses.add("developer message", "became a system message")


def _assistant(dialogue: Dialogue, message: dict[str, Any], place: str, losses: Losses, time: int | None) -> None:
    content = _content(message, place)
    calls = _calls(message, place)
    thoughts = [message.get("reasoning_content"), message.get("reasoning"), content.reasoning]
    reasoning = next((thought for thought in thoughts if isinstance(thought, str) and thought), None)
    if any(thought not in (None, "", reasoning) for thought in thoughts):
        losses.add("assistant message", "lost a second or unreadable reasoning")
    name = message.get("name")
    dialogue.start_step(agent=name if isinstance(name, str) else None, time=time)
    dialogue.assistant(content.text, reasoning=reasoning, blocks=content.blocks, time=time)
    for call in calls:
        dialogue.call(call.id, call.name, call.args, time=time)
    if not calls:
        dialogue.end_turn(time=time)


def _calls(message: dict[str, Any], place: str) -> list[_Call]:
    given = as_list(message.get("tool_calls") or [], f"{place}.tool_calls")
    calls = [_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(given)]
    if legacy := message.get("function_call"):
        calls.append(_function(None, legacy, "arguments", f"{place}.function_call"))
    return calls


def _call(value: object, place: str) -> _Call:
    call = as_object(value, place)
    if isinstance(custom := call.get("custom"), dict):
        return _function(call.get("id"), custom, "input", f"{place}.custom")
    return _function(call.get("id"), call.get("function"), "arguments", f"{place}.function")


def _function(id: object, value: object, arguments: str, place: str) -> _Call:
    function = as_object(value, place)
    given = function.get(arguments)
    args = text.to_json("" if given is None else given, f"{place}.{arguments}")
    return _Call(id, as_text(function.get("name"), f"{place}.name"), args)


def _content(message: dict[str, Any], place: str) -> _Content:
    content = message.get("content")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        content = [*_as_parts(content), {"type": "refusal", "refusal": refusal}]
    match content:
        case None:
            return _Content("")
        case str():
            return _Content(content)
        case list():
            return _of_parts(content, f"{place}.content")
    raise errors.BadInput(f"{place}.content: must be a string, a list of parts or null, is {shape(content)}")


def _as_parts(content: object) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _of_parts(parts: list[Any], place: str) -> _Content:
    texts = [part["text"] for part in parts if _says(part, _TEXTS, "text")]
    thoughts = [part[part["type"]] for part in parts if any(_says(part, {kind}, kind) for kind in _THOUGHTS)]
    encoded = text.to_json(parts, place)
    plain = all(_says(part, {"text"}, "text") and len(part) == 2 for part in parts)
    return _Content("".join(texts), "\n\n".join(thoughts) or None, None if plain else encoded, encoded)


def _says(part: object, kinds: frozenset[str] | set[str], field: str) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get(field), str):
        return False
    kind = part.get("type")
    return isinstance(kind, str) and kind in kinds
