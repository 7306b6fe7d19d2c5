"""Making fit what is larger than a log or a session takes. Of an event the longest texts are cut."""

import itertools
import json
from dataclasses import replace
from typing import Any

from storage import events, text
from storage.events import Event, ToolResult
from storage.session import MAX_SLOT_BYTES
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings

SUSPICIOUS_CHARACTERS = 1024 * 1024
"""An event of fewer characters fits, however they are encoded."""
_SHORTEST = 200
_PART = 20
"""Characters that a part of a list or an object is taken to have at least."""
_LIMITED = ("metadata", "system_prompt", "memory", "insight")


def size(event: Event) -> int:
    """Bytes of the event as stored, found with less memory than storing it takes."""
    return len(json.dumps(events.dump(event), ensure_ascii=False, separators=(",", ":")).encode())


def fitted(event: Event, limit: int) -> Event:
    """The event, cut if it takes more than `limit` bytes as stored; the same cut for the same event.

    Each text that was cut says at its end how many characters it had. A tool result that was cut is `truncated`.
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
        cut = event.model_copy(update=changed | _cut(event, values, longest))
        if size(cut) <= limit:
            return cut
    # So many small parts that none is long.
    longest = limit // 16
    flat = {name: text.to_json(_short(getattr(event, name), longest), name) for name in values}
    return event.model_copy(update=changed | _cut(event, {}, longest) | flat)


def session_fitted(session: ForeignSession, losses: ImportWarnings) -> ForeignSession:
    """The session without those of its texts that are larger than a session may have, which are counted."""
    over = [name for name in _LIMITED if _bytes(getattr(session, name)) > MAX_SLOT_BYTES]
    for name in over:
        losses.add("session", f"lost its {name.replace('_', ' ')}, which is over {MAX_SLOT_BYTES} bytes")
    nothing: dict[str, Any] = dict.fromkeys(over)
    return replace(session, **nothing) if over else session


def _bytes(value: str | None) -> int:
    return 0 if value is None else len(value.encode("utf-8", "surrogatepass"))


def _long_json(event: Event, most: int) -> list[str]:
    """The fields with JSON of more than so many characters."""
    fields = type(event).model_fields
    names = [name for name, field in fields.items() if field.alias in event.json_fields]
    return [name for name in names if len(getattr(event, name) or "") > most]


def _cut(event: Event, values: dict[str, Any], longest: int) -> dict[str, Any]:
    """The fields that have texts over a length, with these cut; of those with JSON, the `values` are given."""
    long = {name: value for name, value in event.__dict__.items() if type(value) is str and len(value) > longest}
    return {
        name: text.to_json(_shortened(values[name], longest), name) if name in values else _short(value, longest)
        for name, value in long.items()
    }


def _shortened(value: Any, longest: int) -> Any:
    most = longest // _PART
    match value:
        case str():
            return _short(value, longest)
        case dict():
            kept = {name: _shortened(item, longest) for name, item in itertools.islice(value.items(), most)}
            return kept if len(value) <= most else kept | {"…": f"cut, it had {len(value)} fields"}
        case list():
            items = [_shortened(item, longest) for item in value[:most]]
            return items if len(value) <= most else [*items, f"… (cut, it had {len(value)} items)"]
    return value


def _short(value: str, longest: int) -> str:
    return value if len(value) <= longest else f"{value[:longest]}… (cut, it had {len(value)} characters)"


def _length(event: ToolResult) -> int:
    return max(len(value) for value in (event.result, event.error, event.blocks, "") if value is not None)
