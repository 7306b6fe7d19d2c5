"""The conversation: a session as a user interface shows it."""

from __future__ import annotations

from typing import Any

import strawberry

from schema.invocation import ToolInvocation
from schema.scalars import JSON, DateTime
from storage.readers import conversation
from storage.views import conversation_entry
from storage.views.conversation_entry import Entry
from storage.views.message import Role


@strawberry.interface
class ConversationEntry:
    """The fields that all entries share."""

    seq: int
    timestamp: DateTime
    turn_id: strawberry.ID | None
    step_id: strawberry.ID | None


@strawberry.type
class TextEntry(ConversationEntry):
    """A message's text."""

    role: Role
    content: str
    blocks: JSON | None
    partial: bool = strawberry.field(description="An answer still being streamed, or one that was cut off.")


@strawberry.type
class CardEntry(ConversationEntry):
    """A card, at the position of its first version."""

    card_type: str
    card_id: str | None = strawberry.field(
        description="The payload's own id: a later card of the same type and id takes this one's place."
    )
    title: str | None
    card: JSON
    payload: str
    degraded: str | None = strawberry.field(
        description="Why the card is shown read-only, e.g. its form definition is gone."
    )


@strawberry.type
class ToolEntry(ConversationEntry):
    """A tool call and, once recorded, its result."""

    invocation: ToolInvocation


@strawberry.type(
    description="Stands for a card that can't be read: unknown type or broken payload. Never fails the page."
)
class PlaceholderEntry(ConversationEntry):
    """Replaces a card that can't be read."""

    text: str
    reason: str


TYPES = (TextEntry, CardEntry, ToolEntry, PlaceholderEntry)


@strawberry.type
class ConversationPage:
    """A page of the conversation in seq order."""

    entries: list[ConversationEntry]
    next_seq: int
    prev_seq: int | None
    head: int

    @classmethod
    def from_domain(cls, page: conversation.ConversationPage) -> ConversationPage:
        """Convert a page."""
        return cls(
            entries=[from_domain(entry) for entry in page.entries],
            next_seq=page.next_seq,
            prev_seq=page.prev_seq,
            head=page.head,
        )


def from_domain(entry: Entry) -> ConversationEntry:
    """Convert an entry to its GraphQL type."""
    common: dict[str, Any] = {
        "seq": entry.seq,
        "timestamp": DateTime(entry.timestamp),
        "turn_id": entry.turn_id,
        "step_id": entry.step_id,
    }
    match entry:
        case conversation_entry.TextEntry():
            blocks = None if entry.blocks is None else JSON(entry.blocks)
            return TextEntry(**common, role=entry.role, content=entry.content, blocks=blocks, partial=entry.partial)
        case conversation_entry.CardEntry():
            return CardEntry(
                **common,
                card_type=entry.card_type,
                card_id=entry.card_id,
                title=entry.title,
                card=JSON(entry.card),
                payload=entry.payload,
                degraded=entry.degraded,
            )
        case conversation_entry.ToolEntry():
            return ToolEntry(**common, invocation=ToolInvocation.from_domain(entry.invocation))
        case conversation_entry.PlaceholderEntry():
            return PlaceholderEntry(**common, text=entry.text, reason=entry.reason)
    raise TypeError(f"no type for {type(entry).__name__}")
