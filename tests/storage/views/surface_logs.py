"""Shorthand for the events of small logs, and surfaces as short tuples."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from storage.events import (
    AssistantChunk,
    AssistantMessage,
    Event,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOp,
    SurfaceOpKind,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.views.message import Message
from storage.views.surface import Surface

START, END = TurnStart(turn_id="t"), TurnEnd(turn_id="t")
STEP, STEP_END = StepStart(turn_id="t", step_id="s"), StepEnd(turn_id="t", step_id="s")


def op(start: int | None, end: int | None) -> SurfaceOp:
    return SurfaceOp() if start is None else SurfaceOp(op=SurfaceOpKind.REPLACE, start=start, end=end)


def system(content: str, start: int | None = None, end: int | None = None) -> SystemMessage:
    return SystemMessage(content=content, surface_op=op(start, end))


def user(content: str, start: int | None = None, end: int | None = None) -> UserMessage:
    return UserMessage(content=content, surface_op=op(start, end))


def assistant(content: str, start: int | None = None, end: int | None = None) -> AssistantMessage:
    return AssistantMessage(content=content, surface_op=op(start, end))


def chunk(delta: str, **fields: Any) -> AssistantChunk:
    return AssistantChunk(delta=delta, **fields)


def call(id: str, **fields: Any) -> ToolCall:
    return ToolCall(**{"call_id": id, "name": "f", "args": "{}", **fields})


def result(
    id: str, value: object = "ok", start: int | None = None, end: int | None = None, **fields: Any
) -> ToolResult:
    return ToolResult(call_id=id, result=json.dumps(value), surface_op=op(start, end), **fields)


def hide(start: int, stop: int) -> SurfaceHide:
    return SurfaceHide(from_seq=start, to_seq=stop)


def numbered(events: Iterable[Event], first: int = 0) -> list[Event]:
    """The events with seqs from `first` on, as a log's."""
    return [event.model_copy(update={"seq": first + offset}) for offset, event in enumerate(events)]


def folded(*events: Event) -> Surface:
    return Surface().add_all(numbered(events))


def short(message: Message) -> tuple[Any, ...]:
    """(role, content), followed by ids of calls, or by the id of the call answered; `?` for a supplied result."""
    match message:
        case Message(supplied=True):
            return ("?", message.tool_call_id)
        case Message(tool_calls=None, tool_call_id=None):
            return (message.role.lower(), message.content)
        case Message(tool_calls=None):
            return (message.tool_call_id, message.content)
    return (message.role.lower(), message.content, *(made.id for made in message.tool_calls or ()))


def shown(surface: Surface) -> list[tuple[Any, ...]]:
    return [short(message) for message in surface.messages()]


def seqs(surface: Surface) -> list[Sequence[int]]:
    """The source events of each message; empty for supplied results."""
    return [tuple(message.source_event_seqs) for message in surface.messages()]
