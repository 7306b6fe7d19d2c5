"""Messages as chat completions endpoints take and give them, into events; formats of evaluations share their shape.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText
from storage.formats.dialogue import Dialogue
from storage.formats.foreign import Losses
from storage.formats.records import as_list, as_object, as_text

_FIELDS: Mapping[str, Sequence[str]] = {
    "system": ("content",),
    "developer": ("content",),
    "user": ("content",),
    "assistant": ("content", "refusal", "reasoning", "reasoning_content", "tool_calls"),
    "tool": ("content", "tool_call_id", "name"),
}


class Call(NamedTuple):
    """A tool call as a message holds it; arguments that are text stay text."""

    id: object
    name: str
    args: JsonText


class ChatMessage(NamedTuple):
    """A message that was found sound. `blocks` are its content parts where its text does not say all of them."""

    role: str
    content: str
    blocks: JsonText | None = None
    reasoning: str | None = None
    calls: Sequence[Call] = ()
    call_id: object = None


def add_message(
    dialogue: Dialogue, message: dict[str, Any], place: str, losses: Losses, *, time: int | None = None
) -> None:
    """Logs a message: a user's starts a turn, an assistant's is a step, and one without calls ends its turn.

    Raises BadInput, naming the place, before anything is logged.
    """
    said = parsed(message, place)
    unknown = None if said.role in _FIELDS else text.to_json(message, place)
    if said.role in _FIELDS:
        losses.fields(f"{said.role} message", message, ("role", *_FIELDS[said.role]))
    match said.role:
        case "system" | "developer":
            add_system(dialogue, said, losses, time=time)
        case "user":
            dialogue.start_turn(time=time)
            dialogue.user(said.content, blocks=said.blocks, time=time)
        case "assistant":
            dialogue.start_step(time=time)
            add_answer(dialogue, said, time=time)
            if not said.calls:
                dialogue.end_step(time=time)
                dialogue.end_turn(time=time)
        case "tool":
            dialogue.result(said.call_id, text.to_json(said.content, place), blocks=said.blocks, time=time)
        case _:
            losses.add("message", "of unknown role kept as custom")
            dialogue.custom(said.role, unknown or "{}", time=time)


def add_system(dialogue: Dialogue, said: ChatMessage, losses: Losses, *, time: int | None = None) -> None:
    """Logs a system message, which has room for text alone."""
    if said.blocks is not None:
        losses.add("system message", "lost what its parts hold beside text")
    dialogue.system(said.content, time=time)


def add_answer(dialogue: Dialogue, said: ChatMessage, *, time: int | None = None) -> None:
    """Logs an assistant message and its calls, in the step that is open."""
    dialogue.assistant(said.content, reasoning=said.reasoning, blocks=said.blocks, time=time)
    for call in said.calls:
        dialogue.call(call.id, call.name, call.args, time=time)


def parsed(message: dict[str, Any], place: str) -> ChatMessage:
    """The message, checked. Raises BadInput, naming the place."""
    role = as_text(message.get("role"), f"{place}.role")
    content, blocks = content_of(message.get("content"), f"{place}.content")
    if role != "assistant":
        return ChatMessage(role, content, blocks, call_id=message.get("tool_call_id"))
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        said = [{"type": "text", "text": content}] if content else []
        blocks = blocks or text.to_json([*said, {"type": "refusal", "refusal": refusal}], place)
        content = content or refusal
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    calls = as_list(message.get("tool_calls") or [], f"{place}.tool_calls")
    return ChatMessage(
        role,
        content,
        blocks,
        reasoning if isinstance(reasoning, str) else None,
        [_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(calls)],
    )


def content_of(content: object, place: str) -> tuple[str, JsonText | None]:
    """The text of a content, and its parts where some are other than plain text. Raises BadInput."""
    match content:
        case None:
            return "", None
        case str():
            return content, None
        case list():
            texts = [part["text"] for part in content if _has_text(part)]
            plain = all(_has_text(part) and part.keys() == {"type", "text"} for part in content)
            return "".join(texts), None if plain else text.to_json(content, place)
    raise errors.BadInput(f"{place}: must be a string, a list of parts or null")


def _has_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _call(value: object, place: str) -> Call:
    call = as_object(value, place)
    if isinstance(custom := call.get("custom"), dict):
        name, arguments = custom.get("name"), custom.get("input")
    else:
        function = as_object(call.get("function"), f"{place}.function")
        name, arguments = function.get("name"), function.get("arguments")
    return Call(call.get("id"), as_text(name, f"{place}.name"), text.to_json(arguments, f"{place}.arguments"))
