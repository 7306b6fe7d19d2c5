"""Decodes the messages of a pi log, and tracks the threads that they belong to."""

from collections.abc import Callable
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.facts import read_time
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.values import measure

_ASSISTANT = ("role", "content", "timestamp")
_TOKENS = ("input", "output", "cacheRead", "cacheWrite")
_BROKEN_OFF = ("aborted", "error")


class Thread:
    """One path through a log: the session, or a branch that shares the first `at` events of `source`.

    `tip` is the id of its last entry, `time` the last time of an entry, and `label` a proposal. Each of `compactions`
    is the seq of its message and the first seq that it kept.
    """

    def __init__(self, builder: LogBuilder, source: "Thread | None" = None) -> None:
        self.builder = builder
        self.source = source
        self.at = builder.head
        self.tip: str | None = None
        self.time: int | None = None
        self.label: str | None = None
        self.named = False
        self.compactions: list[tuple[int, int]] = []
        if source is not None:
            self.compactions += [each for each in source.compactions if each[0] < self.at]

    def shows(self, other: "Thread", seq: int) -> bool:
        """Whether the event `seq` of another thread is part of this one."""
        thread: Thread | None = self
        until = self.builder.head
        while thread is not None:
            if thread is other:
                return seq < until
            until = min(until, thread.at)
            thread = thread.source
        return False


Apply = Callable[[Thread], None]
"""Logs a decoded entry to its thread. Decoding comes first, so that a broken entry logs nothing."""


def user(message: dict[str, Any], location: str, written: int | None, warnings: ImportWarnings) -> Apply:
    """Decode a user message, which starts a turn."""
    content, blocks = _content(message.get("content"), f"{location}.content")
    warnings.lost_fields("user message", message, ("role", "content", "timestamp"))
    time = _begun(message, written, warnings)

    def apply(thread: Thread) -> None:
        thread.builder.end_step(time=thread.time or time)
        thread.builder.end_turn(time=thread.time or time)
        thread.builder.start_turn(time=time)
        thread.builder.user(content, blocks=blocks, time=time)
        thread.label = thread.label or label_of(content)

    return apply


def injected(message: dict[str, Any], location: str, time: int | None) -> Apply:
    """Decode a message inserted by an extension: the model sees it as a user message, but it starts no turn."""
    content, blocks = _content(message.get("content"), location)
    kept = {name: value for name, value in message.items() if name not in ("role", "content", "customType")}
    facts = text.to_json(kept, location)
    name = message.get("customType")

    def apply(thread: Thread) -> None:
        thread.builder.custom(name if isinstance(name, str) else "custom_message", facts, time=time)
        thread.builder.user(content, blocks=blocks, time=time)

    return apply


def assistant(message: dict[str, Any], location: str, written: int | None, warnings: ImportWarnings) -> Apply:
    """Decode a model call: a step that ends with the last tool result, or with an answer, which ends the turn too.

    The step starts at the message's own time; the answer gets the time at which the entry was written.
    """
    parts = _parts(message.get("content"), f"{location}.content", warnings)
    calls = [(part.get("id"), part["name"], text.to_json(part.get("arguments"), location)) for part in parts.calls]
    begun = _begun(message, written, warnings)
    output = {name: value for name, value in message.items() if name not in _ASSISTANT}
    model_output = text.to_json(output, location) if output else None
    stop, reason = message.get("stopReason"), message.get("errorMessage")
    error = (reason if isinstance(reason, str) and reason else str(stop)) if stop in _BROKEN_OFF else None

    def apply(thread: Thread) -> None:
        builder = thread.builder
        builder.end_step(time=thread.time or begun)
        builder.start_step(time=begun)
        builder.record_step(token_count=_tokens(message.get("usage")), model_output=model_output)
        builder.assistant(
            parts.content,
            reasoning=parts.thoughts,
            blocks=parts.blocks,
            interrupted=error is not None,
            time=written,
        )
        for call in calls:
            builder.call(*call, time=written)
        if error is not None:
            builder.end_step(time=written, error=error)
            builder.end_turn(status=RunStatus.FAILED, error=error, time=written)
        elif not calls:
            builder.end_step(time=written)
            builder.end_turn(time=written)

    return apply


def result(message: dict[str, Any], location: str, written: int | None, warnings: ImportWarnings) -> Apply:
    """Decode a tool result; further details from the tool are logged before it."""
    content, blocks = _content(message.get("content"), f"{location}.content")
    known = ("role", "content", "toolCallId", "toolName", "isError", "details", "timestamp")
    warnings.lost_fields("tool result", message, known)
    time = _begun(message, written, warnings)
    details, call_id = message.get("details"), message.get("toolCallId")
    facts = text.to_json({"toolCallId": call_id, "details": details}, f"{location}.details") if details else None
    failed = message.get("isError") is True
    output = None if failed else text.to_json(content, location)
    truncation = details.get("truncation") if isinstance(details, dict) else None
    truncated = isinstance(truncation, dict) and truncation.get("truncated") is True

    def apply(thread: Thread) -> None:
        if facts is not None:
            thread.builder.custom("toolResult/details", facts, time=time)
        error = (content or "error") if failed else None
        thread.builder.result(call_id, output, error=error, blocks=blocks, time=time, truncated=truncated)

    return apply


class _Parts(NamedTuple):
    content: str
    thoughts: str | None
    calls: list[dict[str, Any]]
    blocks: JsonText | None


def _parts(content: object, location: str, warnings: ImportWarnings) -> _Parts:
    texts, thoughts, calls, others = [], [], [], []
    for part in _listed(content, location):
        match part:
            case {"type": "text", "text": str(value)}:
                texts.append(value)
                warnings.lost_fields("text", part, ("type", "text"))
            case {"type": "thinking", "thinking": str(value)}:
                thoughts.append(value)
                warnings.lost_fields("thought", part, ("type", "thinking"))
            case {"type": "toolCall", "name": str()}:
                calls.append(part)
                warnings.lost_fields("tool call", part, ("type", "id", "name", "arguments"))
            case _:
                others.append(part)
    shown = [part for part in _listed(content, location) if part not in calls] if others else []
    blocks = text.to_json(shown, location) if shown else None
    return _Parts("\n".join(texts), "\n\n".join(thoughts) or None, calls, blocks)


def _content(content: object, location: str) -> tuple[str, JsonText | None]:
    """The text of a message, and its parts if some are not text."""
    parts = _listed(content, location)
    texts = [part["text"] for part in parts if _is_text(part)]
    return "\n".join(texts), None if len(texts) == len(parts) else text.to_json(parts, location)


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _listed(content: object, location: str) -> list[Any]:
    match content:
        case None:
            return []
        case str():
            return [{"type": "text", "text": content}]
        case list():
            return content
    raise errors.BadInput(f"{location}: must be a string, a list of parts or null")


def _begun(message: dict[str, Any], written: int | None, warnings: ImportWarnings) -> int | None:
    return read_time(message.get("timestamp"), times.milliseconds, warnings) or written


def _tokens(usage: object) -> float | None:
    if not isinstance(usage, dict):
        return None
    return sum(measure(usage.get(name)) or 0 for name in _TOKENS) or None
