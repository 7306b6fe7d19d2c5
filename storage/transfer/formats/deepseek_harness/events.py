"""Converts the records of a DeepSeek Harness log to events, and tracks the open turns and steps."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from storage import errors, text
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    ChunkKind,
    CustomEvent,
    Event,
    RunStatus,
    StepEnd,
    StepStart,
    SurfaceOp,
    SurfaceOpKind,
    Surfacing,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.foreign import PLACEHOLDER, ForeignEvent, ForeignLabel, ImportWarnings, Step
from storage.transfer.formats.shared.log_builder import MAX_IDENTIFIER
from storage.transfer.formats.shared.values import as_list, as_object, as_text, validating

_PACKED = {
    "text-chunks": ("texts", ChunkKind.TEXT),
    "reasoning-chunks": ("texts", ChunkKind.REASONING),
    "tool-call-chunks": ("args", ChunkKind.TOOL_ARGS),
}
_DELTAS = {
    "text-delta": ("text", ChunkKind.TEXT),
    "reasoning-delta": ("text", ChunkKind.REASONING),
    "tool-call-delta": ("argumentsDelta", ChunkKind.TOOL_ARGS),
}
_BOUNDS = frozenset({"turn/start", "turn/end", "step/start", "step/end"})
_SURFACING = frozenset({"user/message", "assistant/message", "tool/result"})


class EventConverter:
    """Converts the records of the session `key` to events, and tracks the turns and steps that they open."""

    def __init__(self, key: str, warnings: ImportWarnings) -> None:
        self._key = key
        self._warnings = warnings
        self._left_out = warnings.left_out
        self._open: dict[str, set[str]] = {}
        self._started: dict[str, set[str]] = {}
        self._tokens: dict[tuple[str, str], float] = {}

    def add(self, record: dict[str, Any], location: str) -> list[Step]:
        """Return a record's events: placeholders for records left out before, then one, or several if it is packed.

        Raises BadInput with the location.
        """
        kind = as_text(record.get("type"), f"{location}: type")
        with validating(location):
            if kind in _PACKED:
                events: list[Event] = [*self._packed(kind, record, location)]
            else:
                events = [self._known(kind, record, location) or self._custom(kind, record, location)]
        known = {"type", "data", "time", *(("surfaceOp", "sourceEventSeqs") if kind in _SURFACING else ())}
        self._warnings.lost_fields("line", record, known)
        if record.get("time") not in (None, 0) and _time(record) is None:
            self._warnings.add("record", "lost its time, which cannot be read")
        holes, self._left_out = self._warnings.left_out - self._left_out, self._warnings.left_out
        steps: list[Step] = [
            ForeignEvent(self._key, event, _replaced(event)) for event in (*[PLACEHOLDER] * holes, *events)
        ]
        match record:
            case {"type": "session/title", "data": {"title": str(title)}} if title.strip():
                steps.append(ForeignLabel(self._key, text.clean(title)))
        return steps

    def _known(self, kind: str, record: dict[str, Any], location: str) -> Event | None:
        event: Event | None = None
        match kind:
            case _ if kind in _BOUNDS:
                event = self._bound(kind, _data(record, location), _time(record))
            case "user/message":
                event = self._user(record, location)
            case "assistant/message":
                event = self._assistant(record, location)
            case "assistant/chunk":
                event = self._chunk(record, location)
            case "tool/call":
                event = self._call(record, location)
            case "tool/result":
                event = self._result(record, location)
        return event

    def _custom(self, kind: str, record: dict[str, Any], location: str) -> Event:
        data = {} if record.get("data") is None else record["data"]
        what = "a turn or step out of order" if kind in _BOUNDS else "another type"
        self._warnings.add("record", f"of {what} kept as custom")
        names = self._names(data) if isinstance(data, dict) else {}
        return CustomEvent(name=kind, data=text.to_json(data, f"{location}: data"), timestamp=_time(record), **names)

    def _bound(self, kind: str, data: dict[str, Any], time: int | None) -> Event | None:
        turn, step = _id(data.get("turn")), _id(data.get("step"))
        if turn is None or (kind != "turn/start" and turn not in self._open):
            return None
        match kind:
            case "turn/start" if turn not in self._started:
                self._started[turn] = set()
                self._open[turn] = set()
                return TurnStart(turn_id=turn, timestamp=time)
            case "turn/end":
                del self._open[turn]
                error = _failure(data.get("reason"))
                status = RunStatus.SUCCESS if error is None else RunStatus.FAILED
                return TurnEnd(turn_id=turn, status=status, error=error, timestamp=time)
            case "step/start" if step is not None and step not in self._started[turn]:
                self._started[turn].add(step)
                self._open[turn].add(step)
                return StepStart(turn_id=turn, step_id=step, timestamp=time)
            case "step/end" if step in self._open[turn]:
                self._open[turn].remove(step)
                tokens = self._tokens.pop((turn, step), None)
                return StepEnd(turn_id=turn, step_id=step, token_count=tokens, timestamp=time)
        return None

    def _user(self, record: dict[str, Any], location: str) -> Event:
        data = _data(record, location)
        blocks = _blocks(data.get("content"), f"{location}: data.content")
        self._strip("user/message", data, {"content", "role", "turn", "step"})
        return UserMessage(
            content=_joined(blocks, "text", location),
            blocks=_unless(blocks, ["text"], location),
            **self._placed(record, data),
            **_surfacing(record, location),
        )

    def _assistant(self, record: dict[str, Any], location: str) -> Event:
        data = _data(record, location)
        message = as_object(data.get("message"), f"{location}: data.message")
        blocks = _blocks(message.get("content"), f"{location}: data.message.content")
        event = AssistantMessage(
            content=_joined(blocks, "text", location),
            reasoning=_joined(blocks, "reasoning", location) or None,
            blocks=_unless(blocks, ["text", "reasoning", "tool-call"], location),
            **self._placed(record, data),
            **_surfacing(record, location),
        )
        tokens = _tokens(data.get("usage"))
        if tokens and event.turn_id and event.step_id in self._open.get(event.turn_id, ()):
            step = event.turn_id, event.step_id or ""
            self._tokens[step] = self._tokens.get(step, 0) + sum(tokens)
        self._strip("assistant/message", data | message, {"turn", "step", "message", "usage", "role", "content"})
        return event

    def _chunk(self, record: dict[str, Any], location: str) -> Event | None:
        data = _data(record, location)
        chunk = as_object(data.get("chunk"), f"{location}: data.chunk")
        field, kind = _DELTAS.get(str(chunk.get("type")), ("", ChunkKind.TEXT))
        if not field or not isinstance(chunk.get(field), str):
            return None
        self._strip("assistant/chunk", data | chunk, {"turn", "step", "chunk", "type", field})
        return AssistantChunk(delta=chunk[field], kind=kind, **self._placed(record, data))

    def _packed(self, packed: str, record: dict[str, Any], location: str) -> list[AssistantChunk]:
        data = _data(record, location)
        field, kind = _PACKED[packed]
        deltas = as_list(data.get(field), f"{location}: data.{field}")
        self._strip(packed, data, {"turn", "step", field})
        placed = self._placed(record, data)
        return [AssistantChunk(delta=delta, kind=kind, **placed) for delta in deltas]

    def _call(self, record: dict[str, Any], location: str) -> Event:
        data = _data(record, location)
        self._strip("tool/call", data, {"turn", "step", "callId", "name", "arguments"})
        return ToolCall(
            call_id=data.get("callId", ""),
            name=as_text(data.get("name"), f"{location}: data.name"),
            args=text.to_json(data.get("arguments"), f"{location}: data.arguments"),
            **self._placed(record, data),
        )

    def _result(self, record: dict[str, Any], location: str) -> Event:
        data = _data(record, location)
        message = as_object(data.get("message"), f"{location}: data.message")
        results = _blocks(message.get("content"), f"{location}: data.message.content")
        blocks = [
            block for result in results for block in _blocks(result.get("content"), f"{location}: content of a result")
        ]
        ids = [message.get("source"), *results]
        content = _joined(blocks, "text", location)
        failed = any(result.get("isError") is True for result in results)
        self._strip("tool/result", data | message, {"turn", "step", "message", "role", "content", "source"})
        return ToolResult(
            call_id=next((found for found in map(_call_id, ids) if found), ""),
            result=None if failed else text.to_json(content, location),
            error=content if failed else None,
            blocks=_unless(blocks, ["text"], location),
            **self._placed(record, data, late=True),
            **_surfacing(record, location),
        )

    def _names(self, data: Mapping[str, Any], late: bool = False) -> dict[str, Any]:
        """The turn and step that a record names, if the turn is open or, for a `late` record, has ended."""
        turn, step = _id(data.get("turn")), _id(data.get("step"))
        if turn is None or turn not in (self._started if late else self._open):
            return {}
        return {"turn_id": turn, "step_id": step} if step in self._started[turn] else {"turn_id": turn}

    def _placed(self, record: Mapping[str, Any], data: Mapping[str, Any], late: bool = False) -> dict[str, Any]:
        names = self._names(data, late)
        if len(names) < (data.get("turn") is not None) + (data.get("step") is not None):
            self._warnings.add("record", "named a turn or step that was not open, and is kept without it")
        return {"timestamp": _time(record), **names}

    def _strip(self, kind: str, fields: Mapping[str, Any], known: AbstractSet[str]) -> None:
        self._warnings.lost_fields(f"{kind} record", fields, known)


def _data(record: Mapping[str, Any], location: str) -> dict[str, Any]:
    return as_object(record.get("data"), f"{location}: data")


def _time(record: Mapping[str, Any]) -> int | None:
    return times.milliseconds(record.get("time"))


def _id(value: object) -> str | None:
    id = text.clean(str(value)) if type(value) in (int, str) else ""
    return id if 1 <= len(id) <= MAX_IDENTIFIER else None


def _tokens(usage: object) -> list[int]:
    counts = [usage.get(name) for name in ("inputTokens", "outputTokens")] if isinstance(usage, dict) else []
    return [count for count in counts if type(count) is int and 0 <= count < 2**53]


def _blocks(content: object, location: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_object(block, f"{location}[{index}]") for index, block in enumerate(as_list(content, location))]


def _joined(blocks: list[dict[str, Any]], kind: str, location: str) -> str:
    return "".join(as_text(block.get("text"), f"{location}: text") for block in blocks if block.get("type") == kind)


def _unless(blocks: list[dict[str, Any]], kinds: list[str], location: str) -> str | None:
    """The blocks as JSON, unless all are of these kinds, which the event stores elsewhere."""
    return None if all(block.get("type") in kinds for block in blocks) else text.to_json(blocks, location)


def _call_id(source: object) -> Any:
    return (source.get("callId") or source.get("toolCallId")) if isinstance(source, dict) else None


def _surfacing(record: Mapping[str, Any], location: str) -> dict[str, Any]:
    op = record.get("surfaceOp")
    fields: dict[str, Any] = {"source_event_seqs": record.get("sourceEventSeqs")}
    if isinstance(op, dict):
        found = SurfaceOp.model_validate(op | {"op": str(op.get("op")).upper()})
        if found.op is SurfaceOpKind.REPLACE:
            if found.start is None or found.end is None:
                raise errors.BadInput(f"{location}: surfaceOp replaces, but names no start and end")
            fields["surface_op"] = found
    elif op not in (None, "append"):
        raise errors.BadInput(f"{location}: surfaceOp {repr(op)[:80]} is neither 'append' nor an object")
    return fields


def _replaced(event: Event) -> tuple[int, int] | None:
    """The seqs that an event replaces; some of them may not be on the surface."""
    match event:
        case Surfacing(surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE, start=int(start), end=int(end))):
            return start, end
    return None


def _failure(reason: object) -> str | None:
    """Why a turn did not complete: the kind and, if there is one, the message or the inner kind."""
    if not isinstance(reason, dict):
        return "ended without a reason"
    kind = str(reason.get("kind"))
    if kind == "completed":
        return None
    inner = [part for name in ("failure", "error", "reason") if isinstance(part := reason.get(name), dict)]
    details = [reason.get("message"), *(part.get("message") or part.get("kind") for part in inner)]
    return ": ".join([kind, *[detail for detail in details if isinstance(detail, str)][:1]])
