"""Cutting events, and texts of sessions, that are larger than the store takes."""

import itertools
import json
from dataclasses import replace
from typing import Any

from storage import events, text
from storage.events import Event, ToolResult
from storage.session import MAX_SLOT_BYTES
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings

SUSPICIOUS_CHARACTERS = 1024 * 1024
"""An event with fewer characters fits, however they are encoded."""
_SHORTEST = 200
_ITEM = 20
"""The assumed minimum size of an item in a list or an object, in characters."""
_LIMITED = ("metadata", "system_prompt", "memory", "insight")


def size(event: Event) -> int:
    """The size of the event as stored, in bytes. Takes less memory than storing the event does."""
    return len(json.dumps(events.dump(event), ensure_ascii=False, separators=(",", ":")).encode())


def fit_event(event: Event, limit: int) -> Event:
    """The event, with its longest texts cut if it takes more than `limit` bytes as stored.

    Deterministic, so that the same event is cut alike again. A cut text ends with the number of characters that it had;
    a cut tool result is marked `truncated`.
    """
    stored = size(event)
    if stored <= limit:
        return event
    changed: dict[str, Any] = {}
    if isinstance(event, ToolResult):
        changed = {"truncated": True, "output_length": event.output_length or _length(event)}
    values = {name: text.from_json(getattr(event, name)) for name in _long_json(event, limit // 16)}
    longest = limit
    while longest > _SHORTEST:
        longest //= 2
        cut = event.model_copy(update=changed | _cut_fields(event, values, longest))
        if size(cut) <= limit:
            return cut
    # There are so many small items that none of them is long.
    longest = limit // 16
    flat = {name: text.to_json(_cut_text(getattr(event, name), longest), name) for name in values}
    return event.model_copy(update=changed | _cut_fields(event, {}, longest) | flat)


def fit_session(session: ForeignSession, warnings: ImportWarnings) -> ForeignSession:
    """The session without texts that are too large to store. Adds a warning for each."""
    over = [name for name in _LIMITED if _bytes(getattr(session, name)) > MAX_SLOT_BYTES]
    for name in over:
        warnings.add("session", f"lost its {name.replace('_', ' ')}, which is over {MAX_SLOT_BYTES} bytes")
    nothing: dict[str, Any] = dict.fromkeys(over)
    return replace(session, **nothing) if over else session


def _bytes(value: str | None) -> int:
    return 0 if value is None else len(value.encode("utf-8", "surrogatepass"))


def _long_json(event: Event, most: int) -> list[str]:
    """The names of JSON fields with more than `most` characters."""
    fields = type(event).model_fields
    names = [name for name, field in fields.items() if field.alias in event.json_fields]
    return [name for name in names if len(getattr(event, name) or "") > most]


def _cut_fields(event: Event, values: dict[str, Any], longest: int) -> dict[str, Any]:
    """The text fields that are too long, cut. `values` holds the decoded values of JSON fields."""
    long = {name: value for name, value in event.__dict__.items() if type(value) is str and len(value) > longest}
    return {
        name: text.to_json(_cut_value(values[name], longest), name) if name in values else _cut_text(value, longest)
        for name, value in long.items()
    }


def _cut_value(value: Any, longest: int) -> Any:
    most = longest // _ITEM
    match value:
        case str():
            return _cut_text(value, longest)
        case dict():
            fields = {name: _cut_value(item, longest) for name, item in itertools.islice(value.items(), most)}
            return fields if len(value) <= most else fields | {"…": f"cut, it had {len(value)} fields"}
        case list():
            items = [_cut_value(item, longest) for item in value[:most]]
            return items if len(value) <= most else [*items, f"… (cut, it had {len(value)} items)"]
    return value


def _cut_text(value: str, longest: int) -> str:
    return value if len(value) <= longest else f"{value[:longest]}… (cut, it had {len(value)} characters)"


def _length(event: ToolResult) -> int:
    return max(len(value) for value in (event.result, event.error, event.blocks, "") if value is not None)
