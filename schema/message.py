"""Messages for models: surface, context, records and prompt."""

from __future__ import annotations

import strawberry

from schema.scalars import JSON, DateTime
from schema.slot import Slot
from storage.views import context, message, surface
from storage.views.message import Role


@strawberry.type
class MessageToolCall:
    """A tool call of an assistant message."""

    id: strawberry.ID
    name: str
    arguments: str

    @classmethod
    def from_domain(cls, call: message.MessageToolCall) -> MessageToolCall:
        """Convert a tool call."""
        return cls(id=strawberry.ID(call.id), name=call.name, arguments=call.arguments)


@strawberry.type
class Message:
    """A message for a model."""

    role: Role
    content: str | None
    reasoning: str | None
    blocks: JSON | None
    tool_calls: list[MessageToolCall] | None
    tool_call_id: strawberry.ID | None
    source_event_seqs: list[int] = strawberry.field(
        description="The events that this message came from. Empty for one supplied to keep the list valid."
    )
    repaired: bool = strawberry.field(
        description="The list was mended here: an interrupted answer, or a result supplied for an unanswered call."
    )
    timestamp: DateTime | None

    @classmethod
    def from_domain(cls, message: message.Message) -> Message:
        """Convert a message."""
        calls = [MessageToolCall.from_domain(call) for call in message.tool_calls or ()]
        return cls(
            role=message.role,
            content=message.content,
            reasoning=message.reasoning,
            blocks=None if message.blocks is None else JSON(message.blocks),
            tool_calls=calls or None,
            tool_call_id=None if message.tool_call_id is None else strawberry.ID(message.tool_call_id),
            source_event_seqs=list(message.source_event_seqs),
            repaired=message.repaired,
            timestamp=None if message.timestamp is None else DateTime(message.timestamp),
        )


@strawberry.type
class Surface:
    """The messages for a model, projected from the log."""

    at_seq: int = strawberry.field(description="seq up to which the log was read (exclusive).")
    domain: strawberry.Private[surface.Surface]

    @strawberry.field
    def messages(self) -> list[Message]:
        """The messages as objects."""
        return [Message.from_domain(item) for item in self.domain.messages()]

    @strawberry.field(
        description="The same list, ready to send to a chat completions endpoint: "
        "role, content, tool_calls, tool_call_id."
    )
    def openai(self) -> JSON:
        """The messages as a list ready to send."""
        return JSON(self.domain.openai_text())

    @classmethod
    def from_domain(cls, domain: surface.Surface) -> Surface:
        """Convert a surface, which must not change any more: it is projected lazily."""
        return cls(at_seq=domain.head, domain=domain)


@strawberry.type
class PromptContext:
    """All that the next request to a model contains."""

    system_prompt: str | None
    insight: Slot | None = strawberry.field(description="Pending, or delivered in the turn that is open.")
    messages: list[Message] = strawberry.field(description="The surface, without system prompt and insight.")
    openai: JSON = strawberry.field(
        description="All of it in sending order: system prompt, insight as a second system message, messages."
    )
    at_seq: int

    @classmethod
    def from_domain(cls, domain: context.PromptContext) -> PromptContext:
        """Convert a prompt context."""
        return cls(
            system_prompt=domain.system_prompt,
            insight=Slot.from_domain(domain.insight),
            messages=[Message.from_domain(item) for item in domain.messages],
            openai=JSON(domain.openai),
            at_seq=domain.at_seq,
        )
