"""Sessions: the type, pages of sessions and the queries for them."""

from __future__ import annotations

from collections.abc import Sequence

import strawberry
from strawberry import UNSET

from schema.connection import PageInfo
from schema.context import Info
from schema.conversation import ConversationPage
from schema.digest import Digest
from schema.enums import EventType
from schema.event import EventPage
from schema.inputs import given
from schema.message import Message, PromptContext, Surface
from schema.run import Run
from schema.scalars import JSON, DateTime
from schema.slot import Slot
from schema.stats import SessionStats
from schema.topology import TopologyNode
from storage import errors, session
from storage.session import SessionFilter, SessionMeta, SessionOrder, SessionStatus
from storage.session_storage import SessionPage
from storage.views.message import Role


@strawberry.type
class SessionConfig:
    """How agents run the session."""

    system_prompt: str | None
    skills: list[str] | None

    @classmethod
    def from_domain(cls, config: session.SessionConfig | None) -> SessionConfig | None:
        """Convert a config; null when none was ever written."""
        return None if config is None else cls(system_prompt=config.system_prompt, skills=config.skills)


@strawberry.type(description="A pure dialogue unit. It knows nothing of the tree; its place in the forest is `node`.")
class Session:
    """A session: its log and the views of it."""

    id: strawberry.ID
    label: str
    status: SessionStatus
    workflow_mode: str | None
    metadata: JSON | None = strawberry.field(description="The application's own fields.")
    created_at: DateTime
    updated_at: DateTime = strawberry.field(
        description="Last change of what a digest shows of the session (not of its node), by the database's clock."
    )
    turn_count: int = strawberry.field(description="turn/end events in the visible log, inherited ones included.")
    head: int = strawberry.field(description="Next seq to be assigned = number of events, inherited ones included.")
    meta: strawberry.Private[SessionMeta]

    @strawberry.field
    async def node(self, info: Info) -> TopologyNode:
        """The session's node in the forest."""
        found = await info.context.nodes.load(self.id)
        if found is None:
            raise errors.just_deleted(self.id)
        return TopologyNode.from_domain(found)

    @strawberry.field
    async def config(self, info: Info) -> SessionConfig | None:
        """The config; null when none was ever written."""
        found = await info.context.nodes.load(self.id)
        return None if found is None else SessionConfig.from_domain(found.document.config)

    @strawberry.field
    async def system_prompt(self, info: Info) -> Slot | None:
        """The system prompt slot."""
        slots = await info.context.slots.load(self.id)
        return None if slots is None else Slot.from_domain(slots.system_prompt)

    @strawberry.field(description="The one-shot inbox. Reading it here never consumes it.")
    async def insight(self, info: Info) -> Slot | None:
        """The insight slot."""
        slots = await info.context.slots.load(self.id)
        return None if slots is None else Slot.from_domain(slots.insight)

    @strawberry.field(
        description="The outside view of the session, for orchestrators. "
        "Never part of `context`, `surface` or `prompt`."
    )
    async def memory(self, info: Info) -> Slot | None:
        """The memory slot."""
        slots = await info.context.slots.load(self.id)
        return None if slots is None else Slot.from_domain(slots.memory)

    @strawberry.field(
        description="The log in seq order: forward from fromSeq (first), or the last ones before beforeSeq (last). "
        "A page ends before 4 MiB but holds at least one event."
    )
    async def events(
        self,
        info: Info,
        from_seq: int | None = UNSET,
        before_seq: int | None = UNSET,
        first: int | None = UNSET,
        last: int | None = UNSET,
        types: list[EventType] | None = UNSET,
    ) -> EventPage:
        """A page of the log."""
        page = await info.context.store.sessions.events(
            self.meta,
            from_seq=given(from_seq),
            before_seq=given(before_seq),
            first=given(first),
            last=given(last),
            types=wire_names(types),
        )
        return EventPage.from_domain(page)

    @strawberry.field(description="Messages for a model, projected from the log.")
    async def surface(self, info: Info, at_seq: int | None = UNSET) -> Surface:
        """The surface, at the head or at an earlier seq."""
        return Surface.from_domain(await info.context.store.messages.surface(self.meta, given(at_seq)))

    @strawberry.field(description="What the next send would give the model: system prompt, insight, surface.")
    async def context(self, info: Info) -> PromptContext:
        """What the next request to the model contains."""
        return PromptContext.from_domain(await info.context.store.messages.context(info.context.space, self.id))

    @strawberry.field(
        description="Message records (L3). Filters first, then offset, then limit. `sinceMemory`: those that events "
        "after what the memory reflects have helped to make."
    )
    async def records(
        self,
        info: Info,
        role: Role | None = UNSET,
        from_seq: int | None = UNSET,
        since_memory: bool = False,
        offset: int = 0,
        limit: int | None = UNSET,
    ) -> list[Message]:
        """Message records, filtered."""
        found = await info.context.store.messages.records(
            self.meta,
            role=given(role),
            from_seq=given(from_seq),
            since_memory=since_memory,
            offset=offset,
            limit=given(limit),
        )
        return [Message.from_domain(item) for item in found]

    @strawberry.field(
        description="What a user interface shows: texts, cards and tool calls in order. Pages as `events` does; "
        "200 entries by default, at most 1,000 and 4 MiB."
    )
    async def conversation(
        self,
        info: Info,
        from_seq: int | None = UNSET,
        before_seq: int | None = UNSET,
        first: int | None = UNSET,
        last: int | None = UNSET,
        include_system: bool = False,
    ) -> ConversationPage:
        """A page of the conversation."""
        page = await info.context.store.conversations.page(
            self.meta,
            from_seq=given(from_seq),
            before_seq=given(before_seq),
            first=given(first),
            last=given(last),
            include_system=include_system,
        )
        return ConversationPage.from_domain(page)

    @strawberry.field(
        description="Text history for a model that takes no cards: a card becomes one short placeholder line."
    )
    async def prompt(self, info: Info, guide_prompt: str | None = UNSET) -> list[Message]:
        """The text history."""
        found = await info.context.store.messages.prompt(self.meta, given(guide_prompt))
        return [Message.from_domain(item) for item in found]

    @strawberry.field(description="Audit view: one run per turn, newest first.")
    async def runs(self, info: Info, first: int = 50, before_seq: int | None = UNSET) -> list[Run]:
        """The session's runs, newest first."""
        found = await info.context.store.runs.of_session(self.meta, first, given(before_seq))
        return [Run.from_domain(run) for run in found]

    @strawberry.field
    def stats(self) -> SessionStats:
        """Totals of the log."""
        return SessionStats.from_domain(self.meta)

    @strawberry.field
    async def digest(self, info: Info) -> Digest:
        """The session's digest."""
        return Digest.from_domain(session.Digest.of(self.meta, await info.context.slots.load(self.id)))

    @classmethod
    def from_domain(cls, meta: SessionMeta) -> Session:
        """Convert a session."""
        return cls(
            id=strawberry.ID(meta.id),
            label=meta.label,
            status=meta.status,
            workflow_mode=meta.workflow_mode,
            metadata=None if meta.metadata is None else JSON(meta.metadata),
            created_at=DateTime(meta.created_at),
            updated_at=DateTime(meta.updated_at),
            turn_count=meta.turn_count,
            head=meta.head,
            meta=meta,
        )


def wire_names(types: Sequence[EventType] | None) -> list[str] | None:
    """The wire names of event types; None for all types. Raises BadInput for an empty list."""
    wanted = given(types)
    if wanted is not None and not wanted:
        raise errors.BadInput("types: names no type; leave it out for events of all types")
    return None if wanted is None else [kind.value for kind in wanted]


@strawberry.type
class SessionEdge:
    """A session with its cursor."""

    cursor: str
    node: Session


@strawberry.type
class SessionConnection:
    """A page of sessions."""

    nodes: list[Session]
    page_info: PageInfo
    page: strawberry.Private[SessionPage]
    selection: strawberry.Private[SessionFilter]

    @strawberry.field
    def edges(self) -> list[SessionEdge]:
        """The sessions with their cursors."""
        return [SessionEdge(cursor=self.page.cursor(node.meta), node=node) for node in self.nodes]

    @strawberry.field
    async def total_count(self, info: Info) -> int:
        """The number of sessions on all pages."""
        return await info.context.store.sessions.count(info.context.space, self.selection)

    @classmethod
    def from_domain(cls, page: SessionPage, selection: SessionFilter, after: str | None) -> SessionConnection:
        """Convert a page."""
        rows = page.sessions
        ends = (page.cursor(rows[0]), page.cursor(rows[-1])) if rows else None
        return cls(
            nodes=[Session.from_domain(meta) for meta in rows],
            page_info=PageInfo.of(ends, page.more, after),
            page=page,
            selection=selection,
        )


@strawberry.type
class SessionQuery:
    """Queries for sessions."""

    @strawberry.field(description="null when unknown, or not in the caller's space.")
    async def session(self, info: Info, id: strawberry.ID) -> Session | None:
        """One session; null when it is unknown."""
        meta = await info.context.store.sessions.get(info.context.space, id)
        return None if meta is None else Session.from_domain(meta)

    @strawberry.field(description="In the order asked, null for each unknown id. At most 1,000 ids.")
    async def sessions(self, info: Info, ids: list[strawberry.ID]) -> list[Session | None]:
        """Sessions by id."""
        found = await info.context.store.sessions.get_many(info.context.space, ids)
        return [None if meta is None else Session.from_domain(meta) for meta in found]

    @strawberry.field(
        description="Each row once, whatever changes meanwhile; in UPDATED_DESC rows may repeat. "
        "`labelContains` ignores case; `underId` includes the node itself."
    )
    async def list_sessions(
        self,
        info: Info,
        status: SessionStatus | None = UNSET,
        label_contains: str | None = UNSET,
        under_id: strawberry.ID | None = UNSET,
        updated_since: DateTime | None = UNSET,
        order_by: SessionOrder = SessionOrder.CREATED_DESC,
        first: int = 50,
        after: str | None = UNSET,
    ) -> SessionConnection | None:
        """A page of sessions; null when `under_id` is unknown."""
        selection = SessionFilter(
            under=given(under_id),
            status=given(status),
            label_contains=given(label_contains),
            updated_since=given(updated_since),
        )
        page = await info.context.store.sessions.page(info.context.space, selection, order_by, first, given(after))
        return None if page is None else SessionConnection.from_domain(page, selection, given(after))
