"""Events as writers give them: exactly one kind a time, turned straight into the domain's drafts."""

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
    op: SurfaceOpKind = SurfaceOpKind.APPEND
    start: int | None = UNSET
    end: int | None = UNSET


@strawberry.input
class TurnStartInput:
    turn_id: strawberry.ID
    query: str | None = UNSET
    agent_flow: str | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class TurnEndInput:
    turn_id: strawberry.ID
    status: RunStatus = RunStatus.SUCCESS
    error: str | None = UNSET
    self_evaluation: JSON | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class StepStartInput:
    step_id: strawberry.ID
    turn_id: strawberry.ID | None = UNSET
    agent_name: str | None = UNSET
    model_input: JSON | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class StepEndInput:
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
    content: str
    blocks: JSON | None = UNSET
    surface_op: SurfaceOpInput | None = UNSET
    source_event_seqs: list[int] | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class AssistantMessageInput:
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
    content: str
    surface_op: SurfaceOpInput | None = UNSET
    source_event_seqs: list[int] | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class AssistantChunkInput:
    delta: str
    kind: ChunkKind = ChunkKind.TEXT
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class ToolCallInput:
    call_id: strawberry.ID
    name: str
    args: JSON
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class RetrievalInput:
    layer: str | None = UNSET
    l0_match_count: int | None = UNSET
    l1_match_count: int | None = UNSET
    details: JSON | None = UNSET


@strawberry.input
class ToolResultInput:
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
    card_type: str
    payload: str | None = strawberry.field(default=UNSET, description="YAML. Give this or `card`.")
    card: JSON | None = UNSET
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class SurfaceHideInput:
    from_seq: int
    to_seq: int
    reason: str | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input
class CustomEventInput:
    name: str
    data: JSON
    turn_id: strawberry.ID | None = UNSET
    step_id: strawberry.ID | None = UNSET
    timestamp: DateTime | None = UNSET


@strawberry.input(one_of=True)
class EventInput:
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


def draft(value: Mapping[str, Any], place: str) -> events.Event | errors.BadInput:
    """The draft of an `EventInput`, or why it can't be one, naming its place: `events[3].toolCall.callId`.

    The refusal is not raised here, so that one bad append does not cost the others of a batch.
    """
    ((kind, fields),) = value.items()
    # A field that is null counts as left out: no event's field tells the two apart.
    held = {name: item for name, item in fields.items() if item is not None}
    place = f"{place}.{kind}"
    try:
        if kind == "card":
            held = _card(held, place)
        return DRAFTS[kind].model_validate(held)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        return errors.BadInput(f"{place}.{name}: {first['msg']}, is {str(first['input'])[:80]!r}")
    except errors.BadInput as error:
        return error


def _card(held: dict[str, Any], place: str) -> dict[str, Any]:
    card = held.pop("card", None)
    if (card is None) == ("payload" not in held):
        raise errors.BadInput(f"{place}: give payload or card, one of them")
    if card is not None:
        held["payload"] = cards.to_yaml(card)
    return held
