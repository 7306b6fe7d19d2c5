"""Mutations for which the server writes events of its own: hides, and the repair of what a crash left open."""

from __future__ import annotations

import strawberry
from strawberry import UNSET

from schema.append import AppendEventsPayload
from schema.context import Info
from schema.inputs import given
from schema.session_mutation import SessionPayload


@strawberry.type
class MaintenanceMutation:
    """Mutations for which the server writes events of its own."""

    @strawberry.mutation(
        description="Keeps the newest `keepRecent` records visible, tool groups whole; 0 hides all, more than there "
        "are changes nothing, negative is refused."
    )
    async def trim_records(
        self, info: Info, session_id: strawberry.ID, keep_recent: int, expected_head: int | None = UNSET
    ) -> SessionPayload:
        """Hide all but the newest records."""
        context = info.context
        kept = await context.store.maintenance.trim(context.space, session_id, keep_recent, given(expected_head))
        return SessionPayload.from_domain(kept.session)

    @strawberry.mutation(description="Hides the last text or card of the conversation.")
    async def remove_last_entry(
        self, info: Info, session_id: strawberry.ID, expected_head: int | None = UNSET
    ) -> SessionPayload:
        """Hide the last text or card of the conversation."""
        context = info.context
        kept = await context.store.maintenance.remove_last(context.space, session_id, given(expected_head))
        return SessionPayload.from_domain(kept.session)

    @strawberry.mutation(description="Hides all that was appended so far.")
    async def clear_conversation(
        self, info: Info, session_id: strawberry.ID, expected_head: int | None = UNSET
    ) -> SessionPayload:
        """Hide everything appended so far."""
        context = info.context
        kept = await context.store.maintenance.clear(context.space, session_id, given(expected_head))
        return SessionPayload.from_domain(kept.session)

    @strawberry.mutation(
        description="Ends what a crash left open: an error result per unanswered call, step/end, turn/end FAILED. "
        "Nothing to mend, nothing written. One call writes at most 1,000 events."
    )
    async def repair_session(
        self, info: Info, session_id: strawberry.ID, expected_head: int | None = UNSET
    ) -> AppendEventsPayload:
        """End what a crash left open."""
        context = info.context
        kept = await context.store.maintenance.repair(context.space, session_id, given(expected_head))
        if kept.appended is None:
            return AppendEventsPayload.unchanged(kept.session)
        return AppendEventsPayload.from_domain(kept.appended)
