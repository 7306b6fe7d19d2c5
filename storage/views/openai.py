"""Messages as OpenAI's chat completions API takes them.

https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Iterable
from typing import Any

import orjson

from storage import text
from storage.events import JsonText
from storage.views.message import Message, Role

_PARTS: dict[Role, dict[str, type]] = {
    Role.SYSTEM: {"text": str},
    Role.USER: {"text": str, "image_url": dict, "input_audio": dict, "file": dict},
    Role.ASSISTANT: {"text": str, "refusal": str},
    Role.TOOL: {"text": str},
}
"""Per role, the content parts that the API takes, and what each holds under its own name."""


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
        fields["content"] = known
    if message.tool_calls is not None:
        fields["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    if message.blocks is None:
        return orjson.dumps(fields).decode()
    return text.to_json(fields, "blocks")


def _parts(message: Message) -> list[object]:
    blocks = text.from_json(message.blocks or "null")
    if not isinstance(blocks, list):
        return []
    holds = _PARTS[message.role]
    known: list[object] = [
        block
        for block in blocks
        if isinstance(block, dict)
        and isinstance(kind := block.get("type"), str)
        and kind in holds
        and isinstance(block.get(kind), holds[kind])
    ]
    if known and message.content and not any(_says(block) for block in known):
        return [{"type": "text", "text": message.content}, *known]
    return known


def _says(part: object) -> bool:
    return isinstance(part, dict) and part["type"] in ("text", "refusal")
