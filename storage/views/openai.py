"""Messages as OpenAI's chat completions API takes them.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Iterable
from typing import Any

import orjson

from storage import text
from storage.events import JsonText
from storage.views.message import Message, Role

_PARTS: dict[Role, frozenset[str]] = {
    Role.SYSTEM: frozenset({"text"}),
    Role.USER: frozenset({"text", "image_url", "input_audio", "file"}),
    Role.ASSISTANT: frozenset({"text", "refusal"}),
    Role.TOOL: frozenset({"text"}),
}
"""Per role, the content parts that the API takes."""
_FIELDS: dict[str, tuple[str, ...]] = {"image_url": ("url",), "input_audio": ("data", "format"), "file": ()}
"""The texts that a part must have in the object under its own name; a part that is not here holds a text there."""


def as_array(messages: Iterable[str]) -> JsonText:
    """A JSON list of messages that are JSON already."""
    return f"[{','.join(messages)}]"


def as_object(message: Message, *, parts: bool = True) -> JsonText:
    """The message with role, content, tool_calls and tool_call_id, the last two where it has them.

    Blocks of types that the API takes from this role stand as content parts. If none is, or without `parts`, the
    text stands; it also goes before parts none of which is text.
    """
    fields: dict[str, Any] = {"role": message.role.value.lower(), "content": message.content}
    if parts and message.blocks is not None and (known := _parts(message)):
        # Spliced in, as the message around them would take blocks of the full depth beyond the limit of nesting.
        fields["content"] = orjson.Fragment(text.to_json(known, "blocks"))
    if message.tool_calls is not None:
        fields["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return orjson.dumps(fields).decode()


def _parts(message: Message) -> list[object]:
    blocks = text.from_json(message.blocks or "null")
    if not isinstance(blocks, list):
        return []
    known = [block for block in blocks if _is_part(block, message.role)]
    if known and message.content and not any(_says(block) for block in known):
        return [{"type": "text", "text": message.content}, *known]
    return known


def _is_part(block: object, role: Role) -> bool:
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str) or kind not in _PARTS[role]:
        return False
    held = block.get(kind)
    if kind not in _FIELDS:
        return isinstance(held, str)
    return isinstance(held, dict) and all(isinstance(held.get(name), str) for name in _FIELDS[kind])


def _says(part: object) -> bool:
    return isinstance(part, dict) and part["type"] in ("text", "refusal")
