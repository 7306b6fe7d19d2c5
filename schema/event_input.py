"""Event inputs: one kind per input, converted straight into the domain's drafts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import strawberry
from pydantic import ValidationError
from strawberry import UNSET

from schema.scalars import JSON, DateTime
from storage import cards, errors, events
from storage.events import ChunkKind, RunStatus, SurfaceOpKind


@strawberry.input
class SurfaceOpInput:
    """How a message changes the surface."""

    op: SurfaceOpKind = SurfaceOpKind.APPEND
    start: int | None = UNSET
    end: int | None = UNSET


@strawberry.input
class TurnStartInput:
    """Fields of a turn/start event."""

    turn_id: strawberry.ID
    query: str | None = UNSET
    agent_flow: str | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class TurnEndInput:
    """Fields of a turn/end event."""

    turn_id: strawberry.ID
    status: RunStatus = RunStatus.SUCCESS
    error: str | None = UNSET
    self_evaluation: JSON | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class StepStartInput:
    """Fields of a step/start event."""

    step_id: strawberry.ID
    turn_id: strawberry.ID | None = UNSET
    agent_name: str | None = UNSET
    model_input: JSON | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class StepEndInput:
    """Fields of a step/end event."""

    step_id: strawberry.ID
    turn_id: strawberry.ID | None = UNSET
    model_output: JSON | None = UNSET
    thought: str | None = UNSET
    token_count: float | None = UNSET
    duration_ms: float | None = UNSET
    error: str | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class UserMessageInput:
    """Fields of a user/message event."""

    content: str
    blocks: JSON | None = UNSET
    surface_op: SurfaceOpInput | None = UNSET
    source_event_seqs: list[int] | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class AssistantMessageInput:
    """Fields of an assistant/message event."""

    content: str
    reasoning: str | None = UNSET
    blocks: JSON | None = UNSET
    interrupted: bool = False
    surface_op: SurfaceOpInput | None = UNSET
    source_event_seqs: list[int] | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class SystemMessageInput:
    """Fields of a system/message event."""

    content: str
    surface_op: SurfaceOpInput | None = UNSET
    source_event_seqs: list[int] | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class AssistantChunkInput:
    """Fields of an assistant/chunk event."""

    delta: str
    kind: ChunkKind = ChunkKind.TEXT
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class ToolCallInput:
    """Fields of a tool/call event."""

    call_id: strawberry.ID
    name: str
    args: JSON
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class RetrievalInput:
    """What a retrieval tool found."""

    layer: str | None = UNSET
    l0_match_count: int | None = UNSET
    l1_match_count: int | None = UNSET
    details: JSON | None = UNSET


@strawberry.input
class ToolResultInput:
    """Fields of a tool/result event."""

    call_id: strawberry.ID
    result: JSON | None = UNSET
    error: str | None = UNSET
    blocks: JSON | None = UNSET
    duration_ms: float | None = UNSET
    truncated: bool = False
    output_length: int | None = UNSET
    retrieval: RetrievalInput | None = UNSET
    surface_op: SurfaceOpInput | None = UNSET
    source_event_seqs: list[int] | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class CardInput:
    """Fields of a card event."""

    card_type: str
    payload: str | None = strawberry.field(default=UNSET, description="YAML. Give this or `card`.")
    card: JSON | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class SurfaceHideInput:
    """Fields of a surface/hide event."""

    from_seq: int
    to_seq: int
    reason: str | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class CustomEventInput:
    """Fields of a custom event."""

    name: str
    data: JSON
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input(one_of=True)
class EventInput:
    """One event to append: exactly one of its fields."""

    turn_start: TurnStartInput | None = UNSET
    turn_end: TurnEndInput | None = UNSET
    step_start: StepStartInput | None = UNSET
    step_end: StepEndInput | None = UNSET
    user_message: UserMessageInput | None = UNSET
    assistant_message: AssistantMessageInput | None = UNSET
    system_message: SystemMessageInput | None = UNSET
    assistant_chunk: AssistantChunkInput | None = UNSET
    tool_call: ToolCallInput | None = UNSET
    tool_result: ToolResultInput | None = UNSET
    card: CardInput | None = UNSET
    surface_hide: SurfaceHideInput | None = UNSET
    custom: CustomEventInput | None = UNSET


DRAFTS: Mapping[str, type[events.Event]] = {
    "turnStart": events.TurnStart,
    "turnEnd": events.TurnEnd,
    "stepStart": events.StepStart,
    "stepEnd": events.StepEnd,
    "userMessage": events.UserMessage,
    "assistantMessage": events.AssistantMessage,
    "systemMessage": events.SystemMessage,
    "assistantChunk": events.AssistantChunk,
    "toolCall": events.ToolCall,
    "toolResult": events.ToolResult,
    "card": events.CardEvent,
    "surfaceHide": events.SurfaceHide,
    "custom": events.CustomEvent,
}


def draft(value: Mapping[str, Any], path: str) -> events.Event:
    """The draft that an `EventInput` describes. Raises BadInput naming the bad field: `events[3].toolCall.callId`."""
    ((kind, fields),) = value.items()
    # A null field counts as left out: no event distinguishes the two.
    given = {name: item for name, item in fields.items() if item is not None}
    path = f"{path}.{kind}"
    if kind == "card":
        given = _card(given, path)
    try:
        return DRAFTS[kind].model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise errors.BadInput(f"{path}.{name}: {first['msg']}, is {str(first['input'])[:80]!r}") from error


def _card(given: dict[str, Any], path: str) -> dict[str, Any]:
    """The fields of a card event, its payload as YAML."""
    card = given.pop("card", None)
    if (card is None) == ("payload" not in given):
        raise errors.BadInput(f"{path}: give payload or card, one of them")
    if card is not None:
        given["payload"] = cards.to_yaml(card, given["cardType"])
    return given
