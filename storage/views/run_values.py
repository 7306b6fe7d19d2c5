"""Values that the audit view shows: times, outputs as text, and shortened model inputs."""

from storage import text
from storage.events import Event, Instant, JsonText

PREVIEW = 500
"""Code points shown of an output, and of the content of each message of a model input."""
NULL = "null"
CLEARED_FEEDBACK = ""
"""The feedback of an event that clears what was given before."""
CLEARED_EVALUATION = NULL
"""The self-evaluation of such an event."""


def time_of(event: Event) -> Instant:
    """The event's timestamp. Events read from a log have one; a draft without one counts as of 1970."""
    return event.timestamp if event.timestamp is not None else 0


def duration(start: Instant, end: Instant) -> float | None:
    """Milliseconds from one timestamp to the other; None if they are equal or not in order.

    Events that were recorded together without times have the same one, which says nothing about how long they took.
    """
    return float(end - start) if end > start else None


def given(value: JsonText | None) -> JsonText | None:
    """The JSON text; None if it is null."""
    return None if value == NULL else value


def output_of(result: JsonText | None) -> str | None:
    """The output of a tool as text: a string as it is, anything else as JSON; None for null or no result."""
    if result is None or result == NULL:
        return None
    return str(text.from_json(result)) if result.startswith('"') else result


def model_input(value: JsonText | None) -> JsonText | None:
    """Role and content of each message given to a model, each cut to `PREVIEW` code points.

    The value is a list of messages, or an object with such a list as `messages`, and maybe `system`, which then is
    first. Anything that is not a message becomes one without a role.
    """
    if value is None or value == NULL:
        return None
    messages = [_short(message) for message in _messages(text.from_json(value))]
    return text.to_json(messages, "modelInput")


def _messages(value: object) -> list[object]:
    match value:
        case {"messages": list(messages), "system": system} if system is not None:
            return [{"role": "system", "content": system}, *messages]
        case {"messages": list(messages)} | list(messages):
            return messages
    return [value]


def _short(message: object) -> dict[str, str | None]:
    if isinstance(message, dict) and ("role" in message or "content" in message):
        role = message.get("role")
        return {"role": None if role is None else _text(role)[:PREVIEW], "content": _content(message.get("content"))}
    return {"role": None, "content": _content(message)}


def _content(value: object) -> str | None:
    """The text of a message's content. Of content parts: their texts, or the type in brackets if there is none."""
    if value is None:
        return None
    if isinstance(value, list):
        return "\n".join(_part(part) for part in value[: PREVIEW + 1])[:PREVIEW]
    return _text(value)[:PREVIEW]


def _part(value: object) -> str:
    match value:
        case {"text": str(content)}:
            return content
        case {"type": str(kind)}:
            return f"[{kind}]"
    return _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else text.to_json(value, "modelInput")
