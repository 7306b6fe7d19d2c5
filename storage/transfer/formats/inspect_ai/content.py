"""Decodes messages of an Inspect log: texts that are stored as attachments, and Inspect's own content parts."""

from collections.abc import Mapping
from typing import Any

from storage import errors, text
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.values import as_list, as_object

_PREFIX = "attachment://"


class Attachments:
    """The long texts of a sample, by hash."""

    def __init__(self, texts: Mapping[str, object], warnings: ImportWarnings) -> None:
        self._texts = texts
        self._warnings = warnings

    def resolve(self, value: object, location: str) -> object:
        """Return the value with references replaced by their texts; one without a text stays and is counted.

        Raises BadInput for nesting over 500 levels.
        """
        return self._resolve(value, location, 1)

    def _resolve(self, value: object, location: str, depth: int) -> object:
        """Uses one stack frame per level, so that the limit fits on the interpreter's stack."""
        if isinstance(value, str):
            return self._text(value) if value.startswith(_PREFIX) else value
        if not isinstance(value, dict | list):
            return value
        if depth > text.MAX_NESTING:
            raise errors.BadInput(f"{location}: nested deeper than {text.MAX_NESTING} levels")
        if isinstance(value, dict):
            fields = {}
            for name, item in value.items():
                fields[name] = self._resolve(item, location, depth + 1)
            return fields
        items = []
        for item in value:
            items.append(self._resolve(item, location, depth + 1))  # noqa: PERF401  # a comprehension is a second frame
        return items

    def _text(self, reference: str) -> str:
        found = self._texts.get(reference.removeprefix(_PREFIX))
        if isinstance(found, str):
            return found
        self._warnings.add("attachment", "missing in the log kept as its reference")
        return reference


def message_key(message: dict[str, Any]) -> str:
    """Return what identifies a message: its id, or its content if it has none."""
    id, content = message.get("id"), message.get("content")
    return id if isinstance(id, str) and id else f"={content}" if isinstance(content, str) else ""


def as_chat(message: dict[str, Any], location: str) -> dict[str, Any]:
    """Convert a message to the shape of chat completions. Raises BadInput, with the location, for broken calls."""
    content, reasoning = _content(message.get("content"))
    calls = as_list(message.get("tool_calls") or [], f"{location}.tool_calls")
    found = {"content": content, "reasoning": reasoning, "tool_calls": [_call(call, location) for call in calls]}
    kept = {name: value for name, value in message.items() if name in ("role", "tool_call_id")}
    return kept | {name: value for name, value in found.items() if value is not None and value != []}


def _call(value: object, location: str) -> dict[str, Any]:
    call = as_object(value, f"{location}.tool_calls")
    return {"id": call.get("id"), "function": {"name": call.get("function"), "arguments": call.get("arguments")}}


def _content(content: object) -> tuple[object, str | None]:
    """The content without parts that are only reasoning, and all readable reasoning."""
    if not isinstance(content, list):
        return content, None
    parts: list[object] = []
    thoughts: list[str] = []
    for each in content:
        part = _without_empty(each)
        if isinstance(part, dict) and part.get("type") == "reasoning" and isinstance(part.get("reasoning"), str):
            if not part.get("redacted"):
                thoughts.append(part["reasoning"])
            if part.keys() == {"type", "reasoning"}:
                continue
        parts.append(part)
    return parts, "\n\n".join(thoughts) or None


def _without_empty(part: object) -> object:
    """The part without fields that are empty."""
    if not isinstance(part, dict):
        return part
    return {name: value for name, value in part.items() if value is not None and value is not False}
