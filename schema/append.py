"""Appending events to logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import strawberry
from strawberry import UNSET

from schema import event
from schema.context import Info
from schema.event import SessionEvent
from schema.event_input import EventInput, draft
from schema.session import Session
from storage import errors
from storage.log.append import Appended
from storage.session import SessionMeta
from storage.session_storage import Append, check_batch

ParsedInput: TypeAlias = Mapping[str, Any]
"""An `AppendEventsInput` as graphql-core has parsed and checked it: fields by their GraphQL names."""


@strawberry.input
class AppendEventsInput:
    """One append to one session."""

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


@strawberry.type
class AppendEventsPayload:
    """The answer to an append."""

    session_id: strawberry.ID
    first_seq: int
    head: int
    duplicate: bool
    meta: strawberry.Private[SessionMeta]
    appended: strawberry.Private[Appended | None]

    @strawberry.field
    def session(self) -> Session:
        """The session after the append."""
        return Session.from_domain(self.meta)

    @strawberry.field
    def events(self) -> list[SessionEvent]:
        """The appended events as stored."""
        return [] if self.appended is None else [event.from_domain(item) for item in self.appended.events]

    @classmethod
    def from_domain(cls, appended: Appended) -> AppendEventsPayload:
        """The answer to an append."""
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
        """The answer of an operation that had nothing to append."""
        id = strawberry.ID(meta.id)
        return cls(session_id=id, first_seq=meta.head, head=meta.head, duplicate=False, meta=meta, appended=None)


@strawberry.type
class AppendResult:
    """What became of one input of a batch."""

    session_id: strawberry.ID
    payload: AppendEventsPayload | None = None
    code: str | None = None
    message: str | None = None
    head: int | None = None

    @classmethod
    def from_domain(cls, id: str, result: Appended | errors.SapwoodError) -> AppendResult:
        """The answer to one append, or the reason it was refused."""
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
    """The results of a batch, in the order of its inputs."""

    results: list[AppendResult]


def _read(wanted: ParsedInput) -> Append:
    """The append that an input asks for. Raises BadInput for the first event that can't be read."""
    return Append(
        wanted["sessionId"],
        [draft(event, f"events[{index}]") for index, event in enumerate(wanted["events"])],
        expected_head=wanted.get("expectedHead"),
        key=wanted.get("idempotencyKey"),
    )


def _read_or_refuse(wanted: ParsedInput) -> Append | errors.BadInput:
    try:
        return _read(wanted)
    except errors.BadInput as error:
        return error


async def append_events(root: None, info: Info, input: AppendEventsInput) -> AppendEventsPayload:
    """Appends to one session. Its input comes unconverted; see `UNCONVERTED`."""
    wanted = _read(cast(ParsedInput, input))
    appended = await info.context.store.sessions.append(
        info.context.space,
        wanted.session_id,
        wanted.drafts,
        expected_head=wanted.expected_head,
        key=wanted.key,
    )
    return AppendEventsPayload.from_domain(appended)


async def append_batch(root: None, info: Info, inputs: list[AppendEventsInput]) -> AppendBatchPayload:
    """Appends to several sessions. Its inputs come unconverted; one that can't be read does not cost the others."""
    check_batch(len(inputs))
    parsed = cast(list[ParsedInput], inputs)
    read = [_read_or_refuse(wanted) for wanted in parsed]
    appends = [item for item in read if isinstance(item, Append)]
    appended = iter(await info.context.store.sessions.append_batch(info.context.space, appends))
    results = [next(appended) if isinstance(item, Append) else item for item in read]
    return AppendBatchPayload(
        results=[
            AppendResult.from_domain(wanted["sessionId"], result)
            for wanted, result in zip(parsed, results, strict=True)
        ]
    )


UNCONVERTED = {"appendEvents": append_events, "appendBatch": append_batch}
"""Resolvers that graphql-core calls itself, with inputs as it parsed them.

Strawberry's conversion of arguments takes a sixth of the time of a small append.
"""


@strawberry.type
class AppendMutation:
    """Mutations that append events given by the caller."""

    append_events: AppendEventsPayload = strawberry.mutation(resolver=append_events)
    append_batch: AppendBatchPayload = strawberry.mutation(resolver=append_batch, description="At most 100 inputs.")
