"""Totals of a session's log."""

from __future__ import annotations

import strawberry

from schema.enums import EventType
from schema.scalars import DateTime
from storage.session import SessionMeta

LARGEST_INT = 2**31 - 1


def saturated(count: int) -> int:
    """The count, capped at the largest GraphQL Int."""
    return min(count, LARGEST_INT)


@strawberry.type
class EventTypeCount:
    """The number of events of one type."""

    type: EventType
    count: int


@strawberry.type(description="Totals of own events are told apart, so that sums over a forest count nothing twice.")
class SessionStats:
    """Totals of a session's log."""

    event_count: int
    own_event_count: int
    inherited_event_count: int
    turn_count: int
    step_count: int
    user_message_count: int
    assistant_message_count: int
    tool_call_count: int
    total_token_count: float
    own_token_count: float
    by_type: list[EventTypeCount]
    first_event_at: DateTime | None = strawberry.field(description="timestamp of the first event of the visible log.")
    last_event_at: DateTime | None = strawberry.field(description="timestamp of the last event of the visible log.")

    @classmethod
    def from_domain(cls, meta: SessionMeta) -> SessionStats:
        """Convert a session's totals."""
        types, totals = meta.totals.types, meta.totals

        def count(wire: str) -> int:
            return saturated(types.get(wire, 0))

        return cls(
            event_count=saturated(meta.head),
            own_event_count=saturated(meta.head - meta.own_start),
            inherited_event_count=saturated(meta.own_start),
            turn_count=count("turn/end"),
            step_count=count("step/start"),
            user_message_count=count("user/message"),
            assistant_message_count=count("assistant/message"),
            tool_call_count=count("tool/call"),
            total_token_count=totals.tokens,
            own_token_count=totals.tokens - meta.inherited.tokens,
            by_type=[
                EventTypeCount(type=kind, count=count(kind.value)) for kind in EventType if types.get(kind.value, 0)
            ],
            first_event_at=None if totals.first_at is None else DateTime(totals.first_at),
            last_event_at=None if totals.last_at is None else DateTime(totals.last_at),
        )
