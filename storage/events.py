"""Events: the immutable facts that a log consists of, as one discriminated union.

A draft is an event as its writer sends it; reading a log fills in `id`, `session_id` and `seq`. Arbitrary JSON
(`args`, `result`, `data`, ...) is held as JSON text, so that it comes back character by character.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from storage import text

Text = Annotated[str, BeforeValidator(text.clean_any)]
JsonText = Annotated[str, Field(json_schema_extra={"json": True})]
"""A JSON value as its text."""
SomeJson = Annotated[JsonText, AfterValidator(text.not_null)]
"""A JSON value other than null."""
Instant = int
"""Milliseconds since 1970-01-01T00:00Z."""
Timestamp = Annotated[int, Field(ge=-62_135_596_800_000, le=253_402_300_799_999)]
"""An instant of the years 1 to 9999."""
Measure = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Seq = Annotated[int, Field(ge=0, lt=2**31)]
Identifier = Annotated[str, Field(min_length=1, max_length=256), BeforeValidator(text.clean_any)]


class RunStatus(StrEnum):
    """The status of a turn."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class ChunkKind(StrEnum):
    """What a chunk of a streamed answer is part of."""

    TEXT = "TEXT"
    REASONING = "REASONING"
    TOOL_ARGS = "TOOL_ARGS"


class SurfaceOpKind(StrEnum):
    """Whether a message is added to the surface or replaces earlier ones."""

    APPEND = "APPEND"
    REPLACE = "REPLACE"


class Model(BaseModel):
    """Immutable, with camelCase names in documents and files."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, frozen=True)


class SurfaceOp(Model):
    """How a message changes the surface. `start` and `end` are seqs, both inclusive, for REPLACE only."""

    op: SurfaceOpKind = SurfaceOpKind.APPEND
    start: Seq | None = None
    end: Seq | None = None


APPEND = SurfaceOp()
"""The default, shared by nearly all messages."""


class Retrieval(Model):
    """What a retrieval tool found: layer L0 (titles), L1 (content) or L0+L1."""

    layer: Text | None = None
    l0_match_count: Annotated[Count | None, Field(alias="l0MatchCount")] = None
    l1_match_count: Annotated[Count | None, Field(alias="l1MatchCount")] = None
    details: JsonText | None = None


class Event(Model):
    """Fields of all events. `timestamp` (ms since 1970) is the writer's; if absent, the time of recording."""

    json_fields: ClassVar[frozenset[str]] = frozenset()
    """Document names of the fields that hold JSON text."""

    type: str
    timestamp: Timestamp | None = None
    turn_id: Identifier | None = None
    step_id: Identifier | None = None

    id: str = Field(default="", exclude=True)
    session_id: str = Field(default="", exclude=True)
    seq: int = Field(default=-1, exclude=True)


E = TypeVar("E", bound=Event)
_set = object.__setattr__


class TurnStart(Event):
    """A turn begins: one request of a user and everything that answers it."""

    type: Literal["turn/start"] = "turn/start"
    query: Text | None = None
    agent_flow: Text | None = None


class TurnEnd(Event):
    """A turn ends. It also ends the turn's open steps."""

    json_fields = frozenset({"selfEvaluation"})
    type: Literal["turn/end"] = "turn/end"
    status: RunStatus = RunStatus.SUCCESS
    error: Text | None = None
    self_evaluation: JsonText | None = None


class StepStart(Event):
    """A step of an agent begins."""

    json_fields = frozenset({"modelInput"})
    type: Literal["step/start"] = "step/start"
    agent_name: Text | None = None
    model_input: JsonText | None = None


class StepEnd(Event):
    """A step of an agent ends, with its measures."""

    json_fields = frozenset({"modelOutput"})
    type: Literal["step/end"] = "step/end"
    model_output: JsonText | None = None
    thought: Text | None = None
    token_count: Measure | None = None
    duration_ms: Measure | None = None
    error: Text | None = None


class Surfacing(Event):
    """An event that adds a message to the surface, or replaces some."""

    surface_op: SurfaceOp = APPEND
    source_event_seqs: list[Seq] | None = None

    @property
    def replaces(self) -> bool:
        """Whether the event replaces nodes of the surface."""
        return self.surface_op.op is SurfaceOpKind.REPLACE


class UserMessage(Surfacing):
    """A message from the user."""

    json_fields = frozenset({"blocks"})
    type: Literal["user/message"] = "user/message"
    content: Text
    blocks: JsonText | None = None


class AssistantMessage(Surfacing):
    """A message from the assistant."""

    json_fields = frozenset({"blocks"})
    type: Literal["assistant/message"] = "assistant/message"
    content: Text
    reasoning: Text | None = None
    blocks: JsonText | None = None
    interrupted: bool = False


class SystemMessage(Surfacing):
    """A system message."""

    type: Literal["system/message"] = "system/message"
    content: Text


class AssistantChunk(Event):
    """A piece of an answer that is still streaming."""

    type: Literal["assistant/chunk"] = "assistant/chunk"
    delta: Text
    kind: ChunkKind = ChunkKind.TEXT


class ToolCall(Event):
    """A call of a tool. `call_id` links it to its result."""

    json_fields = frozenset({"args"})
    type: Literal["tool/call"] = "tool/call"
    call_id: Identifier
    name: Text
    args: SomeJson


class ToolResult(Surfacing):
    """The result of a tool call, or its error."""

    json_fields = frozenset({"result", "blocks"})
    type: Literal["tool/result"] = "tool/result"
    call_id: Identifier
    result: JsonText | None = None
    error: Text | None = None
    blocks: JsonText | None = None
    duration_ms: Measure | None = None
    truncated: bool = False
    output_length: Count | None = None
    retrieval: Retrieval | None = None


class CardEvent(Event):
    """A card shown in the conversation. `payload` is YAML."""

    type: Literal["card"] = "card"
    card_type: Text
    payload: Text


class SurfaceHide(Event):
    """Hides the events `from_seq` to `to_seq`, both inclusive, from views."""

    type: Literal["surface/hide"] = "surface/hide"
    from_seq: Seq
    to_seq: Seq
    reason: Text | None = None


class InsightDelivered(Event):
    """An insight was taken from its slot and delivered to the agent."""

    type: Literal["insight/delivered"] = "insight/delivered"
    content: Text
    version: Annotated[int, Field(ge=1, lt=2**31)]


class RunFeedback(Event):
    """Feedback on a run, during its turn or later."""

    json_fields = frozenset({"selfEvaluation"})
    type: Literal["run/feedback"] = "run/feedback"
    feedback: Text | None = None
    self_evaluation: JsonText | None = None


class CustomEvent(Event):
    """An application's own event."""

    json_fields = frozenset({"data"})
    type: Literal["custom"] = "custom"
    name: Text
    data: SomeJson


AnyEvent = Annotated[
    TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | UserMessage
    | AssistantMessage
    | SystemMessage
    | AssistantChunk
    | ToolCall
    | ToolResult
    | CardEvent
    | SurfaceHide
    | InsightDelivered
    | RunFeedback
    | CustomEvent,
    Field(discriminator="type"),
]
ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)

_OWN_FIELDS = {
    model: tuple(name for name in model.model_fields if name not in Event.model_fields)
    for model in get_args(get_args(AnyEvent)[0])
}
WIRE_TYPES = (
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "user/message",
    "assistant/message",
    "assistant/chunk",
    "system/message",
    "tool/call",
    "tool/result",
    "card",
    "surface/hide",
    "insight/delivered",
    "run/feedback",
    "custom",
)
"""Names of the types in documents and files. Add new ones at the end: SQLite files store positions in this tuple."""


def dump(event: Event) -> dict[str, Any]:
    """The event as stored in a commit: camelCase, defaults left out, seq implied by its index."""
    # `model_dump` does the same but takes a third longer.
    stored: dict[str, Any] = event.__pydantic_serializer__.to_python(
        event, mode="json", by_alias=True, exclude_defaults=True
    )
    stored["type"] = event.type
    return stored


def weight(event: Event) -> int:
    """Approximate size of an event as stored, in bytes: the characters of its texts plus a constant."""
    fields = event.__dict__
    characters = 200
    for name in _OWN_FIELDS[type(event)]:
        value = fields[name]
        if type(value) is str:
            characters += len(value)
    return characters


def load(stored: Mapping[str, Any], log: str, session_id: str, seq: int) -> Event:
    """Loads an event of a commit, at `seq` of the log."""
    return ADAPTER.validate_python({**stored, "id": f"{log}/{seq}", "session_id": session_id, "seq": seq})


def stored(event: E, log: str, session_id: str, seq: int, at: Instant) -> E:
    """The draft as `load` would return it after `dump`, recorded at `at`, without reading it again.

    Every appended event passes here; it takes half the time of `model_copy`.
    """
    fields = {**event.__dict__, "id": f"{log}/{seq}", "session_id": session_id, "seq": seq}
    if event.timestamp is None:
        fields["timestamp"] = at
    return restored(event.__class__, fields, event.__pydantic_fields_set__)


def restored(type: type[E], fields: dict[str, Any], given: set[str]) -> E:
    """Rebuilds an event from the `__dict__` and the given field names of a validated one."""
    made = type.__new__(type)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", given)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made
