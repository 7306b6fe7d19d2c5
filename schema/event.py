"""Events as clients read them, one type per event type."""

from __future__ import annotations

import strawberry

from schema.enums import EventType
from schema.scalars import JSON, DateTime
from storage import events
from storage.events import ChunkKind, RunStatus, SurfaceOpKind
from storage.log import reading


@strawberry.interface
class SessionEvent:
    """The fields that all events share."""

    id: strawberry.ID = strawberry.field(
        description="<log>/<seq>: the same for an inherited event in the source and in every fork, and in no other log."
    )
    session_id: strawberry.ID = strawberry.field(
        description="The session that the event was appended to: for an inherited one, the fork's source."
    )
    seq: int = strawberry.field(description="0, 1, 2, ... without a hole.")
    type: EventType
    timestamp: DateTime = strawberry.field(
        description="When it happened, as the writer said, else when it was recorded. Order is by seq, never by this."
    )
    turn_id: strawberry.ID | None = strawberry.field(
        description="The turn and step that it belongs to: as the writer said, "
        "else the one open at the time if there is exactly one."
    )
    step_id: strawberry.ID | None


@strawberry.type(
    description="append, or a replacement of the surface nodes from the one made by seq `start` "
    "to the one made by seq `end`, both inclusive."
)
class SurfaceOp:
    """What an event does to the surface."""

    op: SurfaceOpKind
    start: int | None
    end: int | None


@strawberry.type(description="What a retrieval tool found: layer L0 (titles), L1 (content) or L0+L1.")
class Retrieval:
    """The outcome of a retrieval tool."""

    layer: str | None
    l0_match_count: int | None
    l1_match_count: int | None
    details: JSON | None


@strawberry.type
class TurnStart(SessionEvent):
    """A turn began."""

    query: str | None
    agent_flow: str | None = strawberry.field(description="CHAT, AI_OPS or the writer's own.")


@strawberry.type
class TurnEnd(SessionEvent):
    """A turn ended."""

    status: RunStatus
    error: str | None
    self_evaluation: JSON | None


@strawberry.type
class StepStart(SessionEvent):
    """A step began."""

    agent_name: str | None
    model_input: JSON | None


@strawberry.type
class StepEnd(SessionEvent):
    """A step ended."""

    model_output: JSON | None
    thought: str | None
    token_count: float | None
    duration_ms: float | None
    error: str | None


@strawberry.type(
    description="`content` is the text. `blocks` holds the original content parts where there is more than text "
    "(images, files)."
)
class UserMessage(SessionEvent):
    """A message of the user."""

    content: str
    blocks: JSON | None
    surface_op: SurfaceOp
    source_event_seqs: list[int] | None


@strawberry.type
class AssistantMessage(SessionEvent):
    """A message of the model."""

    content: str
    reasoning: str | None
    blocks: JSON | None
    interrupted: bool
    surface_op: SurfaceOp
    source_event_seqs: list[int] | None


@strawberry.type
class SystemMessage(SessionEvent):
    """A system message."""

    content: str
    surface_op: SurfaceOp
    source_event_seqs: list[int] | None


@strawberry.type(
    description="A piece of a streamed answer. It belongs to the next assistant/message, which carries the whole text."
)
class AssistantChunk(SessionEvent):
    """A piece of a streamed answer."""

    delta: str
    kind: ChunkKind


@strawberry.type(
    description="`args` as a JSON object; a string is arguments text passed on as it is, valid JSON or not."
)
class ToolCall(SessionEvent):
    """A call of a tool."""

    call_id: strawberry.ID
    name: str
    args: JSON


@strawberry.type
class ToolResult(SessionEvent):
    """The result of a tool call."""

    call_id: strawberry.ID
    result: JSON | None
    error: str | None
    blocks: JSON | None
    duration_ms: float | None
    truncated: bool = strawberry.field(
        description="The writer cut the output; `outputLength` is then the length before the cut."
    )
    output_length: int | None
    retrieval: Retrieval | None
    surface_op: SurfaceOp
    source_event_seqs: list[int] | None


@strawberry.type
class CardEvent(SessionEvent):
    """A card for the user interface."""

    card_type: str = strawberry.field(
        description="Form, ParameterSet, Table, ColumnMatch, WorkflowStatus, KnowledgeBase, XyzLoadCard, "
        "GriddingParamCard; others are kept."
    )
    payload: str = strawberry.field(description="YAML.")


@strawberry.type(
    description="Takes what the events with fromSeq <= seq < toSeq made out of surface, records, prompt and "
    "conversation. The log and the audit view keep them."
)
class SurfaceHide(SessionEvent):
    """Hides a range of events from the views."""

    from_seq: int
    to_seq: int
    reason: str | None


@strawberry.type
class InsightDelivered(SessionEvent):
    """The insight was delivered to the session."""

    content: str
    version: int


@strawberry.type
class RunFeedback(SessionEvent):
    """Feedback on a turn."""

    feedback: str | None
    self_evaluation: JSON | None


@strawberry.type
class CustomEvent(SessionEvent):
    """An event of the application's own."""

    name: str
    data: JSON


TYPES: dict[str, type[SessionEvent]] = {
    "turn/start": TurnStart,
    "turn/end": TurnEnd,
    "step/start": StepStart,
    "step/end": StepEnd,
    "user/message": UserMessage,
    "assistant/message": AssistantMessage,
    "system/message": SystemMessage,
    "assistant/chunk": AssistantChunk,
    "tool/call": ToolCall,
    "tool/result": ToolResult,
    "card": CardEvent,
    "surface/hide": SurfaceHide,
    "insight/delivered": InsightDelivered,
    "run/feedback": RunFeedback,
    "custom": CustomEvent,
}
_PUBLISHED = {wire: (kind, EventType(wire)) for wire, kind in TYPES.items()}


def from_domain(event: events.Event) -> SessionEvent:
    """Convert an event to its GraphQL type by copying its attributes, whose names are the same.

    Calling the type's constructor instead takes ten times as long, for each event of a page.
    """
    kind, event_type = _PUBLISHED[event.type]
    published = kind.__new__(kind)
    published.__dict__.update(event.__dict__, type=event_type)
    return published


@strawberry.type
class EventPage:
    """A page of the log in seq order."""

    events: list[SessionEvent]
    next_seq: int = strawberry.field(description="Pass as fromSeq to read on. Equal to `head` when nothing is left.")
    prev_seq: int | None = strawberry.field(description="Pass as beforeSeq to read back. null when nothing is before.")
    head: int

    @classmethod
    def from_domain(cls, page: reading.EventPage) -> EventPage:
        """Convert a page."""
        return cls(
            events=[from_domain(event) for event in page.events],
            next_seq=page.next_seq,
            prev_seq=page.prev_seq,
            head=page.head,
        )
