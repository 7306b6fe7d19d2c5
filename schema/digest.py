"""Digests: what an orchestrator fetches for thousands of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry import UNSET

from schema.connection import PageInfo
from schema.context import Info
from schema.inputs import given
from schema.scalars import DateTime
from schema.slot import Slot
from storage import errors, session
from storage.digests import DigestPage
from storage.session import SessionFilter, SessionStatus

if TYPE_CHECKING:
    from schema.topology import TopologyNode


@strawberry.type(
    description="What an orchestrator reflects on. Fetching digests costs a constant number of database queries."
)
class Digest:
    """What an orchestrator reads of a session, without its log."""

    id: strawberry.ID
    label: str
    status: SessionStatus
    memory: Slot | None
    insight: Slot | None
    turn_count: int
    head: int
    last_event_at: DateTime | None
    updated_at: DateTime

    @strawberry.field
    async def node(self, info: Info) -> Annotated[TopologyNode, strawberry.lazy("schema.topology")]:
        """The session's node in the forest."""
        from schema.topology import TopologyNode

        found = await info.context.nodes.load(self.id)
        if found is None:
            raise errors.just_deleted(self.id)
        return TopologyNode.from_domain(found)

    @classmethod
    def from_domain(cls, digest: session.Digest) -> Digest:
        """Convert a digest."""
        meta = digest.session
        return cls(
            id=strawberry.ID(meta.id),
            label=meta.label,
            status=meta.status,
            memory=Slot.from_domain(digest.memory),
            insight=Slot.from_domain(digest.insight),
            turn_count=meta.turn_count,
            head=meta.head,
            last_event_at=None if meta.last_event_at is None else DateTime(meta.last_event_at),
            updated_at=DateTime(meta.updated_at),
        )


@strawberry.type
class DigestEdge:
    """A digest with its cursor."""

    cursor: str
    node: Digest


@strawberry.type
class DigestConnection:
    """A page of digests."""

    nodes: list[Digest]
    page_info: PageInfo
    as_of: DateTime = strawberry.field(
        description="Pass as `updatedSince` or `appendedSince` of the next collection: nothing is missed, repeats are "
        "possible. The same on every page of one collection."
    )
    page: strawberry.Private[DigestPage]

    @strawberry.field
    def edges(self) -> list[DigestEdge]:
        """The digests with their cursors."""
        rows = zip(self.page.digests, self.nodes, strict=True)
        return [DigestEdge(cursor=self.page.cursor(digest), node=node) for digest, node in rows]

    @classmethod
    def from_domain(cls, page: DigestPage, after: str | None) -> DigestConnection:
        """Convert a page."""
        rows = page.digests
        ends = (page.cursor(rows[0]), page.cursor(rows[-1])) if rows else None
        return cls(
            nodes=[Digest.from_domain(digest) for digest in rows],
            page_info=PageInfo.of(ends, page.more, after),
            as_of=DateTime(page.as_of),
            page=page,
        )


@strawberry.type
class DigestQuery:
    """Queries for digests."""

    @strawberry.field
    async def digest(self, info: Info, id: strawberry.ID) -> Digest | None:
        """One session's digest; null when it is unknown."""
        page = await info.context.store.sessions.digests(info.context.space, SessionFilter(ids=(id,)), 1, None)
        return Digest.from_domain(page.digests[0]) if page and page.digests else None

    @strawberry.field(
        description="Filters combine by AND; unknown ids are left out. `memoryBehind`: events were appended after "
        "what the memory reflects. At most 10,000 a page and 16 MiB."
    )
    async def digests(
        self,
        info: Info,
        ids: list[strawberry.ID] | None = UNSET,
        under_id: strawberry.ID | None = UNSET,
        status: SessionStatus | None = UNSET,
        updated_since: DateTime | None = UNSET,
        appended_since: DateTime | None = UNSET,
        memory_behind: bool | None = UNSET,
        first: int = 1000,
        after: str | None = UNSET,
    ) -> DigestConnection | None:
        """A page of digests; null when `under_id` is unknown."""
        wanted = given(ids)
        selection = SessionFilter(
            ids=None if wanted is None else tuple(wanted),
            under=given(under_id),
            status=given(status),
            updated_since=given(updated_since),
            appended_since=given(appended_since),
            behind=given(memory_behind),
        )
        page = await info.context.store.sessions.digests(info.context.space, selection, first, given(after))
        return None if page is None else DigestConnection.from_domain(page, given(after))
