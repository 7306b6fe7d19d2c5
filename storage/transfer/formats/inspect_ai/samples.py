"""Logs a sample of an Inspect log: its messages with their times, and between them its other events."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from storage import text
from storage.events import Event, RunStatus
from storage.transfer.formats.inspect_ai.content import Attachments, as_chat, message_key
from storage.transfer.formats.shared import chat, facts, times
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.unreadable import keep_unreadable, objects_in, skip_unreadable
from storage.transfer.formats.shared.values import as_list, as_object, nonempty_text

_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "function", "error")
_MODEL = ("event", "timestamp", "completed", "working_time", "output")
_TOOL = ("event", "timestamp", "completed", "working_time", "id", "type", "function", "arguments", "result", "error")
_COPIES = frozenset({"input", "tools", "call"})
"""Fields of a model event that repeat other events."""


class Sample:
    """A sample, logged as the session `key`. Raises BadInput, with the location, if it has no list of messages."""

    def __init__(self, key: str, fields: Mapping[str, Any], location: str, warnings: ImportWarnings) -> None:
        self.key = key
        self._fields = fields
        self._location = location
        self._warnings = warnings
        self._messages = as_list(fields.get("messages"), f"{location} messages")
        attachments: dict[str, Any] = {}
        with skip_unreadable(warnings):
            attachments = as_object(fields.get("attachments") or {}, f"{location} attachments")
        self._attachments = Attachments(attachments, warnings)
        self._builder = LogBuilder(key, warnings)
        events = objects_in(fields.get("events") or [], f"{location} events", warnings)
        self._sample_events = _SampleEvents([event for event, _ in events])
        self._calls: set[object] = set()
        self._logged_keys: set[str] = set()
        self._inputs: set[str] = set()
        self._started_at: int | None = None
        self._last: int | None = None

    def events(self) -> list[Event]:
        """Return the events of the session. In strict reading a broken message raises BadInput."""
        for index, message in enumerate(self._messages):
            location = f"{self._location} messages[{index}]"
            with skip_unreadable(self._warnings):
                whole = self._attachments.resolve(message, location)
                with keep_unreadable(whole, self._builder, self._warnings):
                    self._add(as_object(whole, location), location)
        self._end()
        return self._builder.take_events()

    def repeats_input(self, value: object) -> bool:
        """Whether a user message has exactly this content."""
        return isinstance(value, str) and value in self._inputs

    def _add(self, message: dict[str, Any], location: str) -> None:
        converted = as_chat(message, location)
        parsed = chat.parse_message(converted, location)._replace(thoughts=[converted.get("reasoning")])
        match parsed.role:
            case "assistant":
                self._assistant(parsed, message)
            case "tool":
                self._result(parsed, message, location)
            case _:
                if parsed.role == "user":
                    self._end_turn()
                time = self._sample_events.started_at if message.get("source") == "input" else None
                chat.add_message(self._builder, converted, location, self._warnings, time=time)
        if parsed.role == "user":
            self._inputs.add(parsed.content)
        self._warnings.lost_fields("message", message, _MESSAGE)
        for call in message.get("tool_calls") or ():
            self._warnings.lost_fields("tool call", call, ("id", "function", "arguments", "type"))

    def _assistant(self, parsed: chat.ChatMessage, message: dict[str, Any]) -> None:
        key = message_key(message)
        event = self._reach(self._sample_events.model(key))
        started_at, ended = times.iso(event.get("timestamp")), times.iso(event.get("completed"))
        self._builder.end_step(time=self._last)
        self._builder.start_step(time=started_at)
        self._started_at = started_at
        output = event.get("output")
        usage = output.get("usage") if isinstance(output, dict) else None
        usage = usage if isinstance(usage, dict) else {}
        self._builder.record_step(token_count=facts.total(usage.get("input_tokens"), usage.get("output_tokens")))
        self._record_duration(ended, facts.amount(event.get("working_time"), 1000))
        chat.add_answer(self._builder, parsed, self._warnings, time=ended if ended is not None else started_at)
        self._logged_keys.add(key)
        self._calls.update(call.id for call in parsed.calls if isinstance(call.id, str))
        if not parsed.calls:
            self._builder.end_step(time=ended)
            self._builder.end_turn(time=ended)
        self._warnings.lost_fields("model event", event, _MODEL)

    def _result(self, parsed: chat.ChatMessage, message: dict[str, Any], location: str) -> None:
        event = self._reach(self._sample_events.tool(parsed.call_id))
        ended = times.iso(event.get("completed"))
        self._reach_inner(ended)
        error = _failure(message.get("error"))
        content = (
            None if error is not None and parsed.content in ("", error) else text.to_json(parsed.content, location)
        )
        self._record_duration(ended, None)
        self._builder.result(
            parsed.call_id,
            content,
            error=error,
            blocks=parsed.blocks,
            duration_ms=_duration(event),
            time=ended,
            **_cut(event.get("truncated")),
        )
        self._warnings.lost_fields("tool event", event, (*_TOOL, "truncated"))

    def _record_duration(self, ended: int | None, otherwise: float | None) -> None:
        """Set the duration of the open step: from the model call to `ended` if both are known, else `otherwise`."""
        self._last = ended if ended is not None else self._last
        if self._started_at is not None and ended is not None:
            self._builder.record_step(duration_ms=facts.amount(ended - self._started_at))
        elif otherwise is not None:
            self._builder.record_step(duration_ms=facts.whole(otherwise))

    def _reach(self, index: int | None) -> Mapping[str, Any]:
        """Log the events before `index`, and return the one there; an empty one if `index` is None."""
        if index is None:
            return {}
        for event in self._sample_events.until(index):
            self._custom(event)
        return self._sample_events.at(index)

    def _reach_inner(self, ended: int | None) -> None:
        """Log the events inside a tool that ended at `ended`."""
        while (event := self._sample_events.inner(ended)) is not None:
            self._custom(event)

    def _custom(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "tool" and nonempty_text(event.get("id")) in self._calls:
            return
        if kind == "model":
            if _output_key(event) in self._logged_keys:
                return
            self._warnings.lost_fields("model event", event, event.keys() - _COPIES)
            event = {name: value for name, value in event.items() if name not in _COPIES}
        with skip_unreadable(self._warnings):
            data = text.to_json(self._attachments.resolve(event, self._location), f"{self._location} events")
            self._warnings.add("event", "other than messages, calls and results kept as custom")
            time = times.iso(event.get("timestamp"))
            self._builder.custom(kind if isinstance(kind, str) else "event", data, time=time)

    def _end(self) -> None:
        """Log what follows the last message and end the turn, if that is known to be the sample's last message."""
        failure = _failure(self._fields.get("error"))
        limit = self._fields.get("limit")
        if failure is None and isinstance(limit, dict):
            failure = f"limit reached: {nonempty_text(limit.get('type')) or 'unknown'}"
        if failure is None and _output_key({"output": self._fields.get("output")}) not in self._logged_keys:
            if held := self._sample_events.left():
                self._warnings.add("event", "at the end of the sample held back until its last message is known", held)
            return
        for event in self._sample_events.until(None):
            self._custom(event)
        self._end_turn(failure)

    def _end_turn(self, failure: str | None = None) -> None:
        """End the open step and turn, at the last time that a call ended."""
        status = RunStatus.SUCCESS if failure is None else RunStatus.FAILED
        self._builder.end_step(time=self._last)
        self._builder.end_turn(status=status, error=failure, time=self._last)


class _SampleEvents:
    """The events of a sample, and which one is logged next."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self._events = events
        self._next = 0
        self._models: defaultdict[str, deque[int]] = defaultdict(deque)
        self._tools: defaultdict[str, deque[int]] = defaultdict(deque)
        self.started_at: int | None = None
        for index, event in enumerate(self._events):
            match event.get("event"):
                case "model" if (key := _output_key(event)) is not None:
                    self._models[key].append(index)
                case "tool" if (call := nonempty_text(event.get("id"))) is not None:
                    self._tools[call].append(index)
                case "sample_init" if self.started_at is None:
                    self.started_at = times.iso(event.get("timestamp"))

    def at(self, index: int) -> dict[str, Any]:
        return self._events[index]

    def model(self, key: str) -> int | None:
        """The index of the model event that produced the message with this key."""
        found = self._models.get(key)
        return found.popleft() if found else None

    def tool(self, call_id: object) -> int | None:
        """The index of the next tool event with this call id."""
        found = self._tools.get(call_id) if isinstance(call_id, str) else None
        return found.popleft() if found else None

    def until(self, index: int | None) -> list[dict[str, Any]]:
        """The events before `index` that are not logged yet, or all; the one at `index` counts as logged."""
        end = len(self._events) if index is None else index
        passed = list(self._events[self._next : end])
        self._next = max(self._next, end + 1)
        return passed

    def inner(self, ended: int | None) -> dict[str, Any] | None:
        """The next event, if it is neither a model nor a tool call and not later than `ended`."""
        if ended is None or self._next >= len(self._events):
            return None
        event = self._events[self._next]
        time = times.iso(event.get("timestamp"))
        if event.get("event") in ("model", "tool") or time is None or time > ended:
            return None
        self._next += 1
        return event

    def left(self) -> int:
        return max(len(self._events) - self._next, 0)


def _output_key(event: Mapping[str, Any]) -> str | None:
    match event.get("output"):
        case {"choices": [{"message": dict(message)}, *_]}:
            return message_key(message)
    return None


def _failure(error: object) -> str | None:
    """The message of an error."""
    if isinstance(error, dict):
        return nonempty_text(error.get("message")) or nonempty_text(error.get("type")) or "an error without a message"
    return nonempty_text(error)


def _duration(event: Mapping[str, Any]) -> float | None:
    """How long a tool ran, in ms, excluding the time that it waited if that is known."""
    if (working := facts.amount(event.get("working_time"), 1000)) is not None:
        return facts.whole(working)
    started_at, ended = times.iso(event.get("timestamp")), times.iso(event.get("completed"))
    return None if started_at is None or ended is None else facts.amount(ended - started_at)


def _cut(truncated: object) -> dict[str, Any]:
    """The fields for a truncated output: the flag and the original length."""
    match truncated:
        case [int(length), int()] if 0 <= length < 2**31:
            return {"truncated": True, "output_length": length}
    return {}
