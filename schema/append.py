"""Appending events to logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import strawberry
from graphql import GraphQLResolveInfo
from strawberry import UNSET
from strawberry.types.arguments import InputContext
from strawberry.types.base import get_object_definition

from schema import event
from schema.context import Context, Info
from schema.event import SessionEvent
from schema.event_input import EventInput, draft
from schema.session import Session
from storage import errors
from storage.log.append import Appended
from storage.session import SessionMeta
from storage.session_storage import Append


@strawberry.input
class AppendEventsInput:
    session_id: strawberry.ID
    events: list[EventInput] = strawberry.field(description="All or none. At most 1,000 events and 8 MiB as stored.")
    expected_head: int | None = strawberry.field(
        default=UNSET, description="Refuse with CONFLICT unless the log's head is this."
    )
    idempotency_key: str | None = strawberry.field(
        default=UNSET,
        description="A repeat with the same key and the same events returns the first answer and writes nothing; "
        "with other events it is refused.",
    )


def _append(_: type, value: Mapping[str, Any], __: InputContext | None) -> Append:
    """The append that an input asks for. It is read here and not field by field, since it is the hottest path."""
    read = [draft(event, f"events[{place}]") for place, event in enumerate(value["events"])]
    return Append(
        value["sessionId"],
        [item for item in read if not isinstance(item, errors.BadInput)],
        value.get("expectedHead"),
        value.get("idempotencyKey"),
        next((item for item in read if isinstance(item, errors.BadInput)), None),
    )


get_object_definition(AppendEventsInput, strict=True).from_input = _append


@strawberry.type
class AppendEventsPayload:
    session_id: strawberry.ID
    first_seq: int
    head: int
    duplicate: bool
    meta: strawberry.Private[SessionMeta]
    appended: strawberry.Private[Appended | None]

    @strawberry.field
    def session(self) -> Session:
        return Session.from_domain(self.meta)

    @strawberry.field
    def events(self) -> list[SessionEvent]:
        return [] if self.appended is None else [event.from_domain(item) for item in self.appended.events]

    @classmethod
    def from_domain(cls, appended: Appended) -> AppendEventsPayload:
        """An append's answer."""
        return cls(
            session_id=strawberry.ID(appended.session.id),
            first_seq=appended.first_seq,
            head=appended.head,
            duplicate=appended.duplicate,
            meta=appended.session,
            appended=appended,
        )

    @classmethod
    def unchanged(cls, meta: SessionMeta) -> AppendEventsPayload:
        """The answer of what had nothing to append."""
        id = strawberry.ID(meta.id)
        return cls(session_id=id, first_seq=meta.head, head=meta.head, duplicate=False, meta=meta, appended=None)


@strawberry.type
class AppendResult:
    session_id: strawberry.ID
    payload: AppendEventsPayload | None = None
    code: str | None = None
    message: str | None = None
    head: int | None = None

    @classmethod
    def from_domain(cls, id: str, result: Appended | errors.SapwoodError) -> AppendResult:
        """One append's answer, or why it was refused."""
        if isinstance(result, errors.SapwoodError):
            head = result.details.get("head")
            return cls(
                session_id=strawberry.ID(id),
                code=result.code,
                message=result.message,
                head=head if isinstance(head, int) else None,
            )
        return cls(session_id=strawberry.ID(id), payload=AppendEventsPayload.from_domain(result))


@strawberry.type(description="Each input is its own append: `code` (and `head` on CONFLICT) where it was refused.")
class AppendBatchPayload:
    results: list[AppendResult]


async def _append_one(context: Context, wanted: Append) -> AppendEventsPayload:
    return AppendEventsPayload.from_domain(await context.store.sessions.append_one(context.space, wanted))


async def append_directly(_: None, info: GraphQLResolveInfo[Context], input: Mapping[str, Any]) -> AppendEventsPayload:
    """Resolves appendEvents without Strawberry's conversion of arguments, a sixth of the time of a small append."""
    return await _append_one(info.context, _append(AppendEventsInput, input, None))


@strawberry.type
class AppendMutation:
    @strawberry.mutation
    async def append_events(self, info: Info, input: AppendEventsInput) -> AppendEventsPayload:
        return await _append_one(info.context, cast(Append, input))

    @strawberry.mutation(description="At most 100 inputs.")
    async def append_batch(self, info: Info, inputs: list[AppendEventsInput]) -> AppendBatchPayload:
        appends = cast(list[Append], inputs)
        results = await info.context.store.sessions.append_batch(info.context.space, appends)
        return AppendBatchPayload(
            results=[
                AppendResult.from_domain(wanted.session_id, result)
                for wanted, result in zip(appends, results, strict=True)
            ]
        )
