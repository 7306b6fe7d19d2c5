"""Messages in the format of OpenAI's chat completions API.

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
"""The types of content parts that the API accepts, by role."""
_FIELDS: dict[str, tuple[str, ...]] = {"image_url": ("url",), "input_audio": ("data", "format"), "file": ()}
"""The texts required in the object under a part's own name; other parts have a text under their name."""


def as_array(messages: Iterable[str]) -> JsonText:
    """A JSON list of messages given as JSON."""
    return f"[{','.join(messages)}]"


def as_object(message: Message, *, parts: bool = True) -> JsonText:
    """The message as JSON, with role, content and, where it has them, tool_calls and tool_call_id.

    Blocks of types that the API accepts from this role become content parts. Without any, or without `parts`, the
    content is the text. The text also precedes parts none of which is text.
    """
    fields: dict[str, Any] = {"role": message.role.value.lower(), "content": message.content}
    if parts and message.blocks is not None and (known := _parts(message)):
        # A fragment, because inside the message blocks of the full depth would exceed the limit of nesting.
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
    if known and message.content and not any(_has_text(block) for block in known):
        return [{"type": "text", "text": message.content}, *known]
    return known


def _is_part(block: object, role: Role) -> bool:
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str) or kind not in _PARTS[role]:
        return False
    content = block.get(kind)
    if kind not in _FIELDS:
        return isinstance(content, str)
    return isinstance(content, dict) and all(isinstance(content.get(name), str) for name in _FIELDS[kind])


def _has_text(part: object) -> bool:
    return isinstance(part, dict) and part["type"] in ("text", "refusal")
