"""The messages of a log of pi, and the paths through it that they stand on."""

from collections.abc import Callable
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats import times
from storage.transfer.formats.dialogue import Dialogue, label_of
from storage.transfer.formats.facts import instant
from storage.transfer.formats.foreign import ImportWarnings
from storage.transfer.formats.values import measure

_ASSISTANT = ("role", "content", "timestamp")
_TOKENS = ("input", "output", "cacheRead", "cacheWrite")
_BROKEN_OFF = ("aborted", "error")


class Line:
    """One path through a log: the session, or a branch that shares the first `at` events of `source`.

    `tip` is its last entry, `time` that of its last entry that has one, `label` what it could be called. Compactions
    are told by the seq of their message and the one from which on they kept what was there.
    """

    def __init__(self, dialogue: Dialogue, source: "Line | None" = None) -> None:
        self.dialogue = dialogue
        self.source = source
        self.at = dialogue.head
        self.tip: str | None = None
        self.time: int | None = None
        self.label: str | None = None
        self.named = False
        self.compactions: list[tuple[int, int]] = []
        if source is not None:
            self.compactions += [each for each in source.compactions if each[0] < self.at]

    def shows(self, other: "Line", seq: int) -> bool:
        """Whether an event of a path is on this one too."""
        line: Line | None = self
        until = self.dialogue.head
        while line is not None:
            if line is other:
                return seq < until
            until = min(until, line.at)
            line = line.source
        return False


Act = Callable[[Line], None]
"""Logs an entry that was read without a fault."""


def user(message: dict[str, Any], place: str, written: int | None, losses: ImportWarnings) -> Act:
    """A message of the user, which starts a turn."""
    content, blocks = _content(message.get("content"), f"{place}.content")
    losses.fields("user message", message, ("role", "content", "timestamp"))
    time = _begun(message, written, losses)

    def act(line: Line) -> None:
        line.dialogue.end_step(time=line.time or time)
        line.dialogue.end_turn(time=line.time or time)
        line.dialogue.start_turn(time=time)
        line.dialogue.user(content, blocks=blocks, time=time)
        line.label = line.label or label_of(content)

    return act


def injected(message: dict[str, Any], place: str, time: int | None) -> Act:
    """A message that an extension put in: the model takes it for one of the user, but it starts no turn."""
    content, blocks = _content(message.get("content"), place)
    kept = {name: value for name, value in message.items() if name not in ("role", "content", "customType")}
    facts = text.to_json(kept, place)
    name = message.get("customType")

    def act(line: Line) -> None:
        line.dialogue.custom(name if isinstance(name, str) else "custom_message", facts, time=time)
        line.dialogue.user(content, blocks=blocks, time=time)

    return act


def assistant(message: dict[str, Any], place: str, written: int | None, losses: ImportWarnings) -> Act:
    """A model call: a step that ends with the last result of its calls, or with its answer, which ends the turn too.

    It began at the message's own time and was complete when it was written.
    """
    parts = _parts(message.get("content"), f"{place}.content", losses)
    calls = [(part.get("id"), part["name"], text.to_json(part.get("arguments"), place)) for part in parts.calls]
    begun = _begun(message, written, losses)
    output = {name: value for name, value in message.items() if name not in _ASSISTANT}
    model_output = text.to_json(output, place) if output else None
    stop, why = message.get("stopReason"), message.get("errorMessage")
    error = (why if isinstance(why, str) and why else str(stop)) if stop in _BROKEN_OFF else None

    def act(line: Line) -> None:
        dialogue = line.dialogue
        dialogue.end_step(time=line.time or begun)
        dialogue.start_step(time=begun)
        dialogue.measure(token_count=_tokens(message.get("usage")), model_output=model_output)
        dialogue.assistant(
            parts.content,
            reasoning=parts.thoughts,
            blocks=parts.blocks,
            interrupted=error is not None,
            time=written,
        )
        for call in calls:
            dialogue.call(*call, time=written)
        if error is not None:
            dialogue.end_step(time=written, error=error)
            dialogue.end_turn(status=RunStatus.FAILED, error=error, time=written)
        elif not calls:
            dialogue.end_step(time=written)
            dialogue.end_turn(time=written)

    return act


def result(message: dict[str, Any], place: str, written: int | None, losses: ImportWarnings) -> Act:
    """A tool's result; what the tool tells of itself besides stands before it."""
    content, blocks = _content(message.get("content"), f"{place}.content")
    known = ("role", "content", "toolCallId", "toolName", "isError", "details", "timestamp")
    losses.fields("tool result", message, known)
    time = _begun(message, written, losses)
    details, call_id = message.get("details"), message.get("toolCallId")
    facts = text.to_json({"toolCallId": call_id, "details": details}, f"{place}.details") if details else None
    failed = message.get("isError") is True
    output = None if failed else text.to_json(content, place)
    truncation = details.get("truncation") if isinstance(details, dict) else None
    truncated = isinstance(truncation, dict) and truncation.get("truncated") is True

    def act(line: Line) -> None:
        if facts is not None:
            line.dialogue.custom("toolResult/details", facts, time=time)
        error = (content or "error") if failed else None
        line.dialogue.result(call_id, output, error=error, blocks=blocks, time=time, truncated=truncated)

    return act


class _Parts(NamedTuple):
    content: str
    thoughts: str | None
    calls: list[dict[str, Any]]
    blocks: JsonText | None


def _parts(content: object, place: str, losses: ImportWarnings) -> _Parts:
    texts, thoughts, calls, others = [], [], [], []
    for part in _listed(content, place):
        match part:
            case {"type": "text", "text": str(told)}:
                texts.append(told)
                losses.fields("text", part, ("type", "text"))
            case {"type": "thinking", "thinking": str(told)}:
                thoughts.append(told)
                losses.fields("thought", part, ("type", "thinking"))
            case {"type": "toolCall", "name": str()}:
                calls.append(part)
                losses.fields("tool call", part, ("type", "id", "name", "arguments"))
            case _:
                others.append(part)
    shown = [part for part in _listed(content, place) if part not in calls] if others else []
    blocks = text.to_json(shown, place) if shown else None
    return _Parts("\n".join(texts), "\n\n".join(thoughts) or None, calls, blocks)


def _content(content: object, place: str) -> tuple[str, JsonText | None]:
    """The text of a message, and its parts where some are other than text."""
    parts = _listed(content, place)
    texts = [part["text"] for part in parts if _is_text(part)]
    return "\n".join(texts), None if len(texts) == len(parts) else text.to_json(parts, place)


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _listed(content: object, place: str) -> list[Any]:
    match content:
        case None:
            return []
        case str():
            return [{"type": "text", "text": content}]
        case list():
            return content
    raise errors.BadInput(f"{place}: must be a string, a list of parts or null")


def _begun(message: dict[str, Any], written: int | None, losses: ImportWarnings) -> int | None:
    return instant(message.get("timestamp"), times.milliseconds, losses) or written


def _tokens(usage: object) -> float | None:
    if not isinstance(usage, dict):
        return None
    return sum(measure(usage.get(name)) or 0 for name in _TOKENS) or None
