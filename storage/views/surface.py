"""The surface: the messages that a model gets, always valid for a chat completions endpoint. A fold over events."""

from collections.abc import Callable, Iterable
from typing import Any, Self

from storage import errors
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    ChunkKind,
    Event,
    InsightDelivered,
    JsonText,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOpKind,
    Surfacing,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.views import openai
from storage.views.message import Message
from storage.views.surface_node import Node, TextMessage
from storage.views.surface_nodes import Nodes, Spot

SURFACE_BYTES = 1024
"""What a surface takes in memory besides its nodes."""
_TEXT, _REPLACE = ChunkKind.TEXT, SurfaceOpKind.REPLACE  # enum attributes are slow to look up


class Surface:
    """The surface of the first `head` events of a log, or of those from some seq on.

    Events must have their turn and step filled in, as stored ones have; a draft without seq gets `head`. Details: a
    tool result is inside a step if it names one or any is open. A replacement that append would refuse changes nothing.
    Chunks without any text make no message; chunks that have not ended are the last node, which can be replaced and
    hidden. A call whose result was replaced or hidden can be answered again.
    """

    def __init__(self) -> None:
        self.head = 0
        self._nodes = Nodes()
        self._chunks: list[AssistantChunk] = []
        self._turn_start = 0
        self._steps: set[tuple[str | None, str | None]] = set()
        self._delivered: dict[str, InsightDelivered] = {}

    def copy(self) -> "Surface":
        """An independent copy; the two share all nodes that neither changes."""
        copy = Surface()
        copy.head = self.head
        copy._nodes = self._nodes.copy()
        copy._chunks = self._chunks.copy()
        copy._turn_start = self._turn_start
        copy._steps = self._steps.copy()
        copy._delivered = self._delivered.copy()
        return copy

    def add(self, event: Event) -> Self:
        """Folds one more event. Raises ValueError for one that was folded before, or is out of order."""
        seq = event.seq
        if seq < self.head:
            if seq >= 0:
                raise ValueError(f"event {seq} cannot be folded onto a surface of {self.head} events")
            seq = self.head
            event = event.model_copy(update={"seq": seq})
        self.head = seq + 1
        rule = _RULES.get(type(event))
        if rule is not None:
            rule(self, event)
        return self

    def add_all(self, events: Iterable[Event]) -> Self:
        """Folds events in order."""
        for event in events:
            self.add(event)
        return self

    def nodes(self) -> list[Node]:
        """Each message with its results, in list order. They must not be changed."""
        if not self._answer_streams():
            return list(self._nodes)
        return [*self._nodes, Node(None, chunks=tuple(self._chunks))]

    def weight(self) -> int:
        """About the bytes that it takes in memory once rendered."""
        return SURFACE_BYTES + sum(node.weight() for node in self.nodes())

    def messages(self) -> list[Message]:
        """All messages in order, supplied results included."""
        return [message for node in self.nodes() for message in node.render().messages]

    def openai(self) -> list[JsonText]:
        """The same messages, each as JSON of the chat completions API."""
        return [message for node in self.nodes() for message in node.render().openai]

    def openai_text(self) -> JsonText:
        """The same messages as one JSON list, ready to send."""
        return openai.as_array(self.openai())

    def delivered(self) -> InsightDelivered | None:
        """The insight that was last delivered in a turn that has not ended."""
        return next(reversed(self._delivered.values()), None)

    def check_replace(self, event: Event, path: str = "event") -> None:
        """Raises BadInput, naming path and rule, if the event is a replacement that does not find its nodes."""
        if isinstance(event, Surfacing) and event.replaces:
            self._bounds(event, path)

    def _bounds(self, event: Surfacing, path: str) -> tuple[Spot, Spot]:
        start = self._spot(event.surface_op.start, f"{path}.surfaceOp.start")
        end = self._spot(event.surface_op.end, f"{path}.surfaceOp.end")
        named = f"{path}.surfaceOp: start {event.surface_op.start}, end {event.surface_op.end}"
        if start > end:
            raise errors.BadInput(f"{named}: start stands after end in the surface")
        if isinstance(event, ToolResult):
            replaced = self._nodes.event(event.surface_op.start or 0)
            if start != end or not isinstance(replaced, ToolResult) or replaced.call_id != event.call_id:
                raise errors.BadInput(f"{named}: a tool result replaces exactly one result of callId {event.call_id!r}")
        return start, end

    def _spot(self, seq: int | None, path: str) -> Spot:
        if seq is not None:
            if self._answer_streams() and self._chunks[0].seq == seq:
                return self._nodes.end()
            if (spot := self._nodes.spot(seq)) is not None:
                return spot
        raise errors.BadInput(
            f"{path}: {seq} is no node of the surface; a node is known by the seq of its message's first event, "
            "a tool result by its own"
        )

    def _answer_streams(self) -> bool:
        """Whether the chunks collected so far are a message at the end of the list."""
        return any(chunk.delta for chunk in self._chunks)

    def _end_chunks(self) -> None:
        if self._chunks:
            if self._answer_streams():
                self._nodes.append(chunks=tuple(self._chunks))
            self._chunks.clear()

    def _replace(self, event: TextMessage) -> None:
        try:
            start, end = self._bounds(event, "")
        except errors.BadInput:
            return
        if end == self._nodes.end():
            self._end_chunks()
        self._nodes.replace(start, end, event)

    def _chunk(self, event: AssistantChunk) -> None:
        if event.kind is _TEXT:
            self._chunks.append(event)

    def _turn_starts(self, event: TurnStart) -> None:
        self._end_chunks()
        self._nodes.open = None
        self._turn_start = event.seq

    def _turn_ends(self, event: TurnEnd) -> None:
        self._end_chunks()
        self._nodes.open = None
        self._steps = {(turn, step) for turn, step in self._steps if turn != event.turn_id}
        self._delivered.pop(event.turn_id or "", None)

    def _step_starts(self, event: StepStart) -> None:
        self._end_chunks()
        self._nodes.open = None
        self._steps.add((event.turn_id, event.step_id))

    def _step_ends(self, event: StepEnd) -> None:
        self._end_chunks()
        self._steps.discard((event.turn_id, event.step_id))

    def _message(self, event: TextMessage) -> None:
        if event.surface_op.op is _REPLACE:
            self._replace(event)
            return
        if isinstance(event, UserMessage):
            self._end_chunks()
        label = self._nodes.append(event)
        self._nodes.open = None
        if isinstance(event, AssistantMessage):
            self._chunks.clear()
            self._nodes.open = label

    def _call(self, event: ToolCall) -> None:
        self._nodes.call(event)

    def _result(self, event: ToolResult) -> None:
        if event.surface_op.op is _REPLACE:
            try:
                spot, _ = self._bounds(event, "")
            except errors.BadInput:
                return
            self._nodes.replace_result(spot, event)
            return
        self._nodes.answer(event, self._turn_start)
        if event.step_id is None and not self._steps:
            self._nodes.open = None

    def _hide(self, event: SurfaceHide) -> None:
        self._nodes.hide(event.from_seq, min(event.to_seq, event.seq))
        self._chunks = [chunk for chunk in self._chunks if not event.from_seq <= chunk.seq < event.to_seq]

    def _insight(self, event: InsightDelivered) -> None:
        if event.turn_id is not None:
            self._delivered.pop(event.turn_id, None)
            self._delivered[event.turn_id] = event


_RULES: dict[type[Event], Callable[[Surface, Any], None]] = {
    TurnStart: Surface._turn_starts,
    TurnEnd: Surface._turn_ends,
    StepStart: Surface._step_starts,
    StepEnd: Surface._step_ends,
    SystemMessage: Surface._message,
    UserMessage: Surface._message,
    AssistantMessage: Surface._message,
    AssistantChunk: Surface._chunk,
    ToolCall: Surface._call,
    ToolResult: Surface._result,
    SurfaceHide: Surface._hide,
    InsightDelivered: Surface._insight,
}
