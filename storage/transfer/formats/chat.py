"""Chat messages as OpenAI's chat completions API has them, the legacy ones too, into the events of a dialogue.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText
from storage.transfer.formats.dialogue import Dialogue
from storage.transfer.formats.foreign import ImportWarnings
from storage.transfer.formats.values import as_list, as_object, as_text, shape

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


class Call(NamedTuple):
    """A tool call as a message holds it; arguments that are text stay text."""

    id: object
    name: str
    args: JsonText


class ChatMessage(NamedTuple):
    """A message that was found sound.

    `parts` is the list that its content was, `blocks` the same where it says more than the texts do. `thoughts` are
    what it holds as reasoning, which is the first that is text.
    """

    role: str
    content: str
    blocks: JsonText | None = None
    parts: JsonText | None = None
    thoughts: Sequence[object] = ()
    calls: Sequence[Call] = ()
    call_id: object = None
    name: object = None

    @property
    def reasoning(self) -> str | None:
        """The reasoning, if there is any."""
        return next((thought for thought in self.thoughts if isinstance(thought, str) and thought), None)


def is_message(value: object) -> bool:
    """Whether a value looks like a message of a chat."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and any(name in value for name in ("content", "tool_calls", "function_call"))
    )


def add_message(
    dialogue: Dialogue, message: object, place: str, losses: ImportWarnings, *, time: int | None = None
) -> None:
    """Logs a message, in turns and steps: a user message starts a turn, an answer without calls ends it.

    `time` is in ms since 1970. Raises BadInput, naming the place, before it logs anything.
    """
    fields = as_object(message, place)
    said = parsed(fields, place)
    match said.role:
        case "system" | "developer":
            add_system(dialogue, said, losses, time=time)
        case "user":
            dialogue.start_turn(time=time)
            dialogue.user(said.content, blocks=said.blocks, time=time)
        case "assistant":
            dialogue.start_step(agent=said.name if isinstance(said.name, str) else None, time=time)
            add_answer(dialogue, said, losses, time=time)
            if not said.calls:
                dialogue.end_step(time=time)
                dialogue.end_turn(time=time)
        case "tool" | "function":
            dialogue.result(said.call_id, text.to_json(said.content, place), blocks=said.parts, time=time)
        case _:
            dialogue.custom(said.role, text.to_json(fields, place), time=time)
            losses.add("message", "of unknown role kept as custom")
    if said.role in _FIELDS:
        losses.fields(f"{said.role} message", fields, ("role", *_FIELDS[said.role]))


def add_system(dialogue: Dialogue, said: ChatMessage, losses: ImportWarnings, *, time: int | None = None) -> None:
    """Logs a system message, which has room for text alone."""
    dialogue.system(said.content, time=time)
    if said.blocks is not None:
        losses.add("system message", "lost its parts other than text")
    if said.role == "developer":
        losses.add("developer message", "became a system message")


def add_answer(dialogue: Dialogue, said: ChatMessage, losses: ImportWarnings, *, time: int | None = None) -> None:
    """Logs an assistant message and its calls, in the step that is open."""
    reasoning = said.reasoning
    if any(thought not in (None, "", reasoning) for thought in said.thoughts):
        losses.add("assistant message", "lost a second or unreadable reasoning")
    dialogue.assistant(said.content, reasoning=reasoning, blocks=said.blocks, time=time)
    for call in said.calls:
        dialogue.call(call.id, call.name, call.args, time=time)


def parsed(message: dict[str, Any], place: str) -> ChatMessage:
    """The message, checked. Raises BadInput, naming the place."""
    role = as_text(message.get("role"), f"{place}.role")
    if role not in _FIELDS:
        text.to_json(message, place)
        return ChatMessage(role, "")
    said = _content(message, place)._replace(role=role)
    if role != "assistant":
        return said._replace(call_id=message.get("tool_call_id"))
    thoughts = [message.get("reasoning_content"), message.get("reasoning"), *said.thoughts]
    return said._replace(thoughts=thoughts, calls=_calls(message, place), name=message.get("name"))


def content_of(content: object, place: str) -> tuple[str, JsonText | None]:
    """The text of a content, and its parts where some are other than plain text. Raises BadInput."""
    said = _content({"content": content}, place)
    return said.content, said.blocks


def _calls(message: dict[str, Any], place: str) -> list[Call]:
    given = as_list(message.get("tool_calls") or [], f"{place}.tool_calls")
    calls = [_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(given)]
    if legacy := message.get("function_call"):
        calls.append(_function(None, legacy, "arguments", f"{place}.function_call"))
    return calls


def _call(value: object, place: str) -> Call:
    call = as_object(value, place)
    if isinstance(custom := call.get("custom"), dict):
        return _function(call.get("id"), custom, "input", f"{place}.custom")
    return _function(call.get("id"), call.get("function"), "arguments", f"{place}.function")


def _function(id: object, value: object, arguments: str, place: str) -> Call:
    function = as_object(value, place)
    given = function.get(arguments)
    args = text.to_json("" if given is None else given, f"{place}.{arguments}")
    return Call(id, as_text(function.get("name"), f"{place}.name"), args)


def _content(message: dict[str, Any], place: str) -> ChatMessage:
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
            return _of_parts(content, f"{place}.content")
    raise errors.BadInput(f"{place}.content: must be a string, a list of parts or null, is {shape(content)}")


def _as_parts(content: object) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _of_parts(parts: list[Any], place: str) -> ChatMessage:
    texts = [part["text"] for part in parts if _says(part, _TEXTS, "text")]
    thoughts = [part[part["type"]] for part in parts if any(_says(part, {kind}, kind) for kind in _THOUGHTS)]
    encoded = text.to_json(parts, place)
    plain = all(_says(part, {"text"}, "text") and len(part) == 2 for part in parts)
    return ChatMessage("", "".join(texts), None if plain else encoded, encoded, ["\n\n".join(thoughts)])


def _says(part: object, kinds: Collection[str], field: str) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get(field), str):
        return False
    kind = part.get("type")
    return isinstance(kind, str) and kind in kinds
