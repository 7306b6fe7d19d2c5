"""The conversation: what a user interface shows of a session."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import strawberry

from schema.context import Info
from schema.invocation import ToolInvocation
from schema.scalars import JSON, DateTime
from storage.readers.conversation import ConversationPage as Page
from storage.views import conversation, conversation_entry
from storage.views.conversation_entry import Entry
from storage.views.message import Role

logger = logging.getLogger("sapwood.cards")


@strawberry.interface
class ConversationEntry:
    """What all entries share."""

    seq: int
    timestamp: DateTime
    turn_id: strawberry.ID | None
    step_id: strawberry.ID | None


@strawberry.type
class TextEntry(ConversationEntry):
    role: Role
    content: str
    blocks: JSON | None
    partial: bool = strawberry.field(description="An answer still being streamed, or one that was cut off.")


@strawberry.type
class CardEntry(ConversationEntry):
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
    invocation: ToolInvocation


@strawberry.type(
    description="Stands for a card that can't be read: unknown type or broken payload. Never fails the page."
)
class PlaceholderEntry(ConversationEntry):
    text: str
    reason: str


TYPES = (TextEntry, CardEntry, ToolEntry, PlaceholderEntry)


@strawberry.type
class ConversationPage:
    entries: list[ConversationEntry]
    next_seq: int
    prev_seq: int | None
    head: int

    @classmethod
    async def load(cls, info: Info, session_id: str, page: Page) -> ConversationPage:
        """A page whose forms are degraded where their definition is not there. Cards that can't be read are logged."""
        entries = await with_forms(info, page.entries)
        for entry in entries:
            if isinstance(entry, conversation_entry.PlaceholderEntry):
                logger.warning("session %s, event %d: %s: %s", session_id, entry.seq, entry.text, entry.reason)
        return cls(
            entries=[from_domain(entry) for entry in entries],
            next_seq=page.next_seq,
            prev_seq=page.prev_seq,
            head=page.head,
        )


async def with_forms(info: Info, entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries as they are with the form definitions of today."""
    wanted = conversation.form_ids(entries)
    if not wanted:
        return entries
    return conversation.with_forms(entries, await info.context.store.forms.get(info.context.space, wanted))


def from_domain(entry: Entry) -> ConversationEntry:
    """The entry as its GraphQL type."""
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
