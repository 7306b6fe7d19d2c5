"""Logs the events of OpenHands, one by one, as turns, steps, messages, calls and results."""

from collections.abc import Mapping
from typing import Any

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats.shared import chat, facts, times
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.values import as_object, as_text

_CALLING = frozenset(
    {
        "run",
        "run_ipython",
        "read",
        "write",
        "edit",
        "browse",
        "browse_interactive",
        "call_tool_mcp",
        "delegate",
        "think",
        "finish",
        "task_tracking",
    }
)
"""Actions of an agent that are calls even if no model response is logged with them."""
_ENDS = frozenset({"finish", "reject"})
_FAILED_STATES = frozenset({"error", "stopped", "rejected"})
_DONE_STATES = frozenset({"finished", "awaiting_user_input"})
_COMMON = {"id", "timestamp", "source", "message", "tool_call_metadata"}
_ACTION = {*_COMMON, "action", "args", "llm_metrics"}
_OBSERVATION = {*_COMMON, "observation", "content", "cause"}


class EventStream:
    """Logs the events of one run. `metrics` may hold the tokens and latency of each model response.

    Tracks the actions that wait for their observation, and the open step.
    """

    def __init__(self, builder: LogBuilder, warnings: ImportWarnings, metrics: object = None) -> None:
        self.label: str | None = None
        self._builder = builder
        self._warnings = warnings
        self._usages = _by_response(metrics, "token_usages")
        self._latencies = _by_response(metrics, "response_latencies")
        self._response: str | None = None
        self._expected = 0
        self._awaiting: dict[str, tuple[object, int | None]] = {}
        self._latency: float | None = None
        self._ran = 0
        self._last: int | None = None

    def add(self, event: dict[str, Any], location: str) -> None:
        """Log an event. Raises BadInput, with its location, before anything changes."""
        time = times.iso(event.get("timestamp"))
        if isinstance(event.get("action"), str):
            self._action(event, location, time)
        else:
            as_text(event.get("observation"), f"{location}.observation")
            self._observation(event, location, time)
        if time is None:
            self._warnings.add("event", "without a readable time logged without one")
        elif not times.has_zone(event.get("timestamp")):
            self._warnings.add("time", "without a zone taken as UTC")
        self._last = time if time is not None else self._last

    def end_turn(self, *, status: RunStatus = RunStatus.SUCCESS, error: str | None = None) -> None:
        """End the open step and turn, at the last known time of an event."""
        self._builder.end_step(time=self._last)
        self._builder.end_turn(status=status, error=error, time=self._last)

    def _action(self, event: dict[str, Any], location: str, time: int | None) -> None:
        kind, source = event["action"], event.get("source")
        args = as_object(event.get("args") or {}, f"{location}.args")
        if kind == "system":
            self._system(args, location, time)
        elif kind == "message" and source == "user":
            self._user(args, location, time)
        elif kind == "message" and event.get("tool_call_metadata") is None:
            self._answer(args, location, time)
        elif source == "agent" and (kind in _CALLING or isinstance(event.get("tool_call_metadata"), dict)):
            self._call(event, args, location, time)
        else:
            self._custom(kind, event, location, time)
            return
        self._warnings.lost_fields("action", event, _ACTION)

    def _system(self, args: dict[str, Any], location: str, time: int | None) -> None:
        content = as_text(args.get("content"), f"{location}.args.content")
        rest = {name: value for name, value in args.items() if name != "content"}
        encoded_rest = text.to_json(rest, f"{location}.args")
        self._builder.system(content, time=time)
        if rest:
            self._builder.custom("system", encoded_rest, time=time)

    def _user(self, args: dict[str, Any], location: str, time: int | None) -> None:
        content, blocks = _content(args, location)
        if self.label is None:
            self.label = label_of(content)
        self.end_turn()
        self._builder.start_turn(time=time)
        self._builder.user(content, blocks=blocks, time=time)

    def _answer(self, args: dict[str, Any], location: str, time: int | None) -> None:
        content, blocks = _content(args, location)
        self._start_step(None, time)
        self._builder.assistant(content, blocks=blocks, time=time)
        self._builder.end_step(time=time)
        if args.get("wait_for_response") is not False:
            self._builder.end_turn(time=time)

    def _call(self, event: dict[str, Any], args: dict[str, Any], location: str, time: int | None) -> None:
        metadata = event.get("tool_call_metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        response = metadata.get("model_response")
        response = response if isinstance(response, dict) else {}
        message = _message(response, args, location)
        call = _called(event, metadata, message, args, location)
        response_id = response.get("id")
        response_id = response_id if isinstance(response_id, str) and response_id else None
        if response_id is None or response_id != self._response or self._builder.step is None:
            self._start_step(response_id, time)
            self._measure(response)
            self._expected = _calls(metadata.get("total_calls_in_response"), len(message.calls))
            self._builder.assistant(message.content, reasoning=message.reasoning, blocks=message.blocks, time=time)
        if (key := _key(event.get("id"))) is not None:
            self._awaiting[key] = (call.id, time)
        self._builder.call(call.id, call.name, call.args, time=time)
        if event["action"] in _ENDS:
            self._builder.end_step(time=time)
            self._builder.end_turn(time=time)

    def _start_step(self, response: str | None, time: int | None) -> None:
        self._builder.end_step(time=self._last)
        self._builder.start_step(time=time)
        self._response = response
        self._expected = 1
        self._latency = None
        self._ran = 0

    def _measure(self, response: Mapping[str, Any]) -> None:
        usage = response.get("usage")
        usage = usage if isinstance(usage, dict) else self._usages.get(self._response, {})
        self._latency = facts.amount(self._latencies.get(self._response, {}).get("latency"), 1000)
        self._builder.record_step(
            token_count=facts.total(usage.get("prompt_tokens"), usage.get("completion_tokens")),
            duration_ms=facts.whole(self._latency),
        )

    def _observation(self, event: dict[str, Any], location: str, time: int | None) -> None:
        kind, cause = event["observation"], _key(event.get("cause"))
        awaited = self._awaiting.get(cause) if cause is not None else None
        if awaited is None and kind != "error":
            self._custom(kind, event, location, time)
            if kind == "agent_state_changed":
                self._state(event.get("extras"), time)
            return
        message = chat.parse_message({"role": "tool", "content": event.get("content")}, location)
        if cause is not None and awaited is not None:
            del self._awaiting[cause]
            self._ran_until(awaited[1], time)
        else:
            self._warnings.add("error", "that names no call logged as a result without a call")
        self._builder.result(
            awaited[0] if awaited is not None else f"error-{_key(event.get('id'))}",
            None if kind == "error" else text.to_json(message.content, location),
            error=message.content if kind == "error" else None,
            blocks=message.blocks,
            time=time,
            ends_step=self._expected <= 0,
        )
        self._warnings.lost_fields("observation", event, _OBSERVATION)

    def _ran_until(self, began: int | None, ended: int | None) -> None:
        """Add the duration of a call to that of its step, if the latency of the model is known."""
        self._expected -= 1
        if began is not None and ended is not None:
            self._ran += max(ended - began, 0)
        if self._latency is not None:
            self._builder.record_step(duration_ms=facts.whole(self._latency + self._ran))

    def _state(self, extras: object, time: int | None) -> None:
        state = extras.get("agent_state") if isinstance(extras, dict) else None
        reason = extras.get("reason") if isinstance(extras, dict) else None
        if not isinstance(state, str):
            return
        if state in _DONE_STATES:
            self._builder.end_step(time=time)
            self._builder.end_turn(time=time)
        elif state in _FAILED_STATES:
            error = reason if isinstance(reason, str) and reason else state
            self._builder.end_step(time=time)
            self._builder.end_turn(status=RunStatus.FAILED, error=error, time=time)

    def _custom(self, kind: str, event: dict[str, Any], location: str, time: int | None) -> None:
        self._builder.custom(kind, text.to_json(event, location), time=time)
        if kind == "condensation":
            self._warnings.add("condensation", "kept as custom, so the surface still shows what it dropped")
        else:
            self._warnings.add("event", "other than messages, calls and results kept as custom")


def _key(id: object) -> str | None:
    """The id of an event, which is a number, or in some logs a string."""
    if isinstance(id, str) and id:
        return id
    return str(id) if isinstance(id, int) and not isinstance(id, bool) and abs(id) < 2**64 else None


def _content(args: Mapping[str, Any], location: str) -> tuple[str, JsonText | None]:
    """The text of a message, and its parts if it has images."""
    content = as_text(args.get("content"), f"{location}.args.content")
    urls = args.get("image_urls")
    images = [url for url in urls if isinstance(url, str)] if isinstance(urls, list) else []
    if not images:
        return content, None
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return content, text.to_json([{"type": "text", "text": content}, *parts], location)


def _message(response: Mapping[str, Any], args: Mapping[str, Any], location: str) -> chat.ChatMessage:
    """The assistant message of a model response; if it is missing or broken, the thought of the action."""
    match response.get("choices"):
        case [{"message": dict(message)}, *_]:
            try:
                return chat.parse_message({**message, "role": "assistant"}, f"{location}.tool_call_metadata")
            except errors.BadInput:
                pass
    thought = args.get("thought")
    return chat.ChatMessage("assistant", thought if isinstance(thought, str) else "")


def _called(
    event: Mapping[str, Any], metadata: Mapping[str, Any], message: chat.ChatMessage, args: object, location: str
) -> chat.ChatCall:
    """The call of an action as the model wrote it, else as the action has it."""
    call_id = metadata.get("tool_call_id") or _key(event.get("id"))
    for call in message.calls:
        if isinstance(call_id, str) and call.id == call_id:
            return call
    name = metadata.get("function_name")
    return chat.ChatCall(
        call_id, name if isinstance(name, str) else event["action"], text.to_json(args, f"{location}.args")
    )


def _calls(given: object, named: int) -> int:
    """The number of calls that a model response asked for."""
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else max(named, 1)


def _by_response(metrics: object, name: str) -> dict[str | None, dict[str, Any]]:
    """The measures of a run's model calls by response id."""
    measures = metrics.get(name) if isinstance(metrics, dict) else None
    return {
        measure["response_id"]: measure
        for measure in (measures if isinstance(measures, list) else ())
        if isinstance(measure, dict) and isinstance(measure.get("response_id"), str) and measure["response_id"]
    }
