"""A node of the surface: one message and, for an assistant message with calls, the results that follow it."""

from dataclasses import dataclass

from storage import events
from storage.events import AssistantChunk, AssistantMessage, JsonText, SystemMessage, ToolCall, ToolResult, UserMessage
from storage.views import openai
from storage.views.message import Message, MessageToolCall, Role, as_text, result_text

UNKNOWN_OUTCOME = "No result was recorded for this call; its outcome is unknown."

TextMessage = SystemMessage | UserMessage | AssistantMessage

EVENT_BYTES = 1536
"""What an event of a node takes in memory besides its text, measured: the event, its index entries, its rendering."""


def bytes_in_memory(text_bytes: int, events: int) -> int:
    """About the bytes that so many events take as nodes. Their text is held twice: as stored, and as rendered."""
    return 2 * text_bytes + EVENT_BYTES * events


_ROLES: dict[type[TextMessage], Role] = {
    SystemMessage: Role.SYSTEM,
    UserMessage: Role.USER,
    AssistantMessage: Role.ASSISTANT,
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A node's messages, and each as JSON of the chat completions API."""

    messages: tuple[Message, ...]
    openai: tuple[JsonText, ...]


class Node:
    """The events of one message. `chunks` take the place of an `event` that was never logged.

    `calls` and `results` are by call id, results in list order. Only the surface with the same `owner` may change the
    node; others copy it first.
    """

    __slots__ = ("_rendered", "calls", "chunks", "event", "owner", "results")

    def __init__(
        self, owner: object, event: TextMessage | None = None, chunks: tuple[AssistantChunk, ...] = ()
    ) -> None:
        self.owner = owner
        self.event = event
        self.chunks = chunks
        self.calls: dict[str, ToolCall] = {}
        self.results: dict[str, ToolResult] = {}
        self._rendered: Rendered | None = None

    def changeable(self, owner: object) -> "Node":
        """This node if it has that owner, without its rendering; else a copy that has."""
        if self.owner is owner:
            self._rendered = None
            return self
        copy = Node(owner, self.event, self.chunks)
        copy.calls = self.calls.copy()
        copy.results = self.results.copy()
        return copy

    @property
    def seq(self) -> int:
        """The node's id: the seq of the first event of its message."""
        if self.event is not None:
            return self.event.seq
        return self.chunks[0].seq if self.chunks else next(iter(self.calls.values())).seq

    def seqs(self) -> list[int]:
        """The seqs of the events that made the node's messages, ascending within each message."""
        return [*self._message_seqs(), *(result.seq for result in self.results.values())]

    def weight(self) -> int:
        """About the bytes that it takes in memory, once it was rendered."""
        made = () if self.event is None else (self.event,)
        own = (*made, *self.chunks, *self.calls.values(), *self.results.values())
        return bytes_in_memory(sum(map(events.weight, own)), len(own))

    def is_empty(self) -> bool:
        """Whether it has neither content nor calls."""
        if self.calls or any(chunk.delta for chunk in self.chunks):
            return False
        event = self.event
        return event is None or (isinstance(event, AssistantMessage) and not event.content and event.blocks is None)

    def render(self) -> Rendered:
        """The message, its results, then a supplied result for each call without one."""
        if self._rendered is None:
            results = [_result(id, result) for id, result in self.results.items()]
            supplied = [_supplied(id) for id in self.calls if id not in self.results]
            message = self._message()
            texts = [openai.as_object(message)]
            texts += [
                openai.as_object(rendered, parts=result.error is None)
                for rendered, result in zip(results, self.results.values(), strict=True)
            ]
            texts += [openai.as_object(rendered) for rendered in supplied]
            self._rendered = Rendered((message, *results, *supplied), tuple(texts))
        return self._rendered

    def _message_seqs(self) -> list[int]:
        own = [] if self.event is None else [self.event.seq]
        return [*own, *(chunk.seq for chunk in self.chunks), *(call.seq for call in self.calls.values())]

    def _message(self) -> Message:
        event = self.event
        seqs = tuple(self._message_seqs())
        calls = [MessageToolCall(id, call.name, as_text(call.args)) for id, call in self.calls.items()] or None
        match event:
            case None if self.chunks:
                content = "".join(chunk.delta for chunk in self.chunks)
                timestamp = self.chunks[0].timestamp
                return Message(Role.ASSISTANT, content, source_event_seqs=seqs, repaired=True, timestamp=timestamp)
            case None:
                timestamp = next(iter(self.calls.values())).timestamp
                return Message(Role.ASSISTANT, None, tool_calls=calls, source_event_seqs=seqs, timestamp=timestamp)
        return Message(
            role=_ROLES[type(event)],
            content=None if calls and not event.content else event.content,
            reasoning=event.reasoning if isinstance(event, AssistantMessage) else None,
            blocks=None if isinstance(event, SystemMessage) else event.blocks,
            tool_calls=calls,
            source_event_seqs=seqs,
            timestamp=event.timestamp,
        )


def _result(id: str, event: ToolResult) -> Message:
    return Message(
        role=Role.TOOL,
        content=result_text(event),
        blocks=event.blocks,
        tool_call_id=id,
        source_event_seqs=(event.seq,),
        timestamp=event.timestamp,
    )


def _supplied(id: str) -> Message:
    return Message(Role.TOOL, UNKNOWN_OUTCOME, tool_call_id=id, repaired=True)
