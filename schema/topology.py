"""The forest: nodes, references, and the mutations that change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry import UNSET

from schema.context import Info
from schema.inputs import given
from schema.scalars import DateTime
from storage import errors, session_tree, topology
from storage.session import SessionStatus

if TYPE_CHECKING:
    from schema.session import Session
    from schema.session_mutation import SessionPayload

LazySession = Annotated["Session", strawberry.lazy("schema.session")]
LazySessionPayload = Annotated["SessionPayload", strawberry.lazy("schema.session_mutation")]


@strawberry.type(description="A node of the forest. Same id as its session.")
class TopologyNode:
    """A node of the forest."""

    id: strawberry.ID
    label: str
    status: SessionStatus
    parent_id: strawberry.ID | None = strawberry.field(description="null for a root.")
    root_id: strawberry.ID
    depth: int
    index: int = strawberry.field(
        description="Order among siblings (roots: among roots). Counted up per parent and never reused, "
        "so gaps may stay."
    )
    child_count: int
    source_session_id: strawberry.ID | None = strawberry.field(
        description="The session that this one was forked from, and how many of its events it shares."
    )
    fork_seq: int | None
    refs: list[strawberry.ID] = strawberry.field(description="Nodes that this one refers to across the forest.")
    turn_count: int
    head: int
    created_at: DateTime
    updated_at: DateTime = strawberry.field(description="Last change of the node or of its session.")
    domain: strawberry.Private[topology.TopologyNode]

    @strawberry.field
    async def parent(self, info: Info) -> TopologyNode | None:
        """The parent; null for a root."""
        found = await info.context.nodes.load(self.parent_id) if self.parent_id is not None else None
        return None if found is None else TopologyNode.from_domain(found)

    @strawberry.field
    async def children(self, info: Info) -> list[TopologyNode]:
        """The children by index."""
        return [TopologyNode.from_domain(child) for child in await info.context.children.load(self.id)]

    @strawberry.field(description="Nearest first. Empty for a root.")
    async def ancestors(self, info: Info) -> list[TopologyNode]:
        """The ancestors, nearest first."""
        found = await info.context.nodes.load_many(self.domain.document.ancestors)
        return [TopologyNode.from_domain(ancestor) for ancestor in found if ancestor is not None]

    @strawberry.field(description="Other children of the same parent. Empty for a root.")
    async def siblings(self, info: Info) -> list[TopologyNode]:
        """The other children of the parent."""
        family = [] if self.parent_id is None else await info.context.children.load(self.parent_id)
        return [TopologyNode.from_domain(child) for child in family if child.id != self.id]

    @strawberry.field
    async def referenced_by(self, info: Info) -> list[strawberry.ID]:
        """The nodes that refer to this one."""
        return [strawberry.ID(id) for id in await info.context.referrers.load(self.id)]

    @strawberry.field
    def session(self) -> LazySession:
        """The session of the same id."""
        from schema.session import Session

        return Session.from_domain(self.domain.session)

    @classmethod
    def from_domain(cls, node: topology.TopologyNode) -> TopologyNode:
        """Convert a node and its session."""
        document, meta = node.document, node.session
        return cls(
            id=strawberry.ID(node.id),
            label=meta.label,
            status=meta.status,
            parent_id=None if node.parent_id is None else strawberry.ID(node.parent_id),
            root_id=strawberry.ID(node.root_id),
            depth=node.depth,
            index=document.index,
            child_count=document.child_count,
            source_session_id=None if document.source_session_id is None else strawberry.ID(document.source_session_id),
            fork_seq=document.fork_seq,
            refs=[strawberry.ID(ref) for ref in document.refs],
            turn_count=meta.turn_count,
            head=meta.head,
            created_at=DateTime(meta.created_at),
            updated_at=DateTime(node.updated_at),
            domain=node,
        )


@strawberry.type
class Ref:
    """A reference from one node to another."""

    from_id: strawberry.ID
    to_id: strawberry.ID


@strawberry.type(description="Nodes in depth-first order: a parent before its children, siblings and roots by index.")
class Forest:
    """The nodes of a forest, or of a part of it."""

    roots: list[strawberry.ID]
    nodes: list[TopologyNode]
    refs: list[Ref]
    node_count: int

    @classmethod
    def from_domain(cls, forest: session_tree.Forest) -> Forest:
        """Convert a forest."""
        return cls(
            roots=[strawberry.ID(root) for root in forest.roots],
            nodes=[TopologyNode.from_domain(node) for node in forest.nodes],
            refs=[Ref(from_id=strawberry.ID(source), to_id=strawberry.ID(target)) for source, target in forest.refs],
            node_count=len(forest.nodes),
        )


@strawberry.type
class RefPayload:
    """A reference and its ends, after a mutation."""

    ref: Ref
    from_node: TopologyNode
    to_node: TopologyNode

    @classmethod
    def from_domain(cls, source: topology.TopologyNode, target: topology.TopologyNode) -> RefPayload:
        """Convert both ends of a reference."""
        return cls(
            ref=Ref(from_id=strawberry.ID(source.id), to_id=strawberry.ID(target.id)),
            from_node=TopologyNode.from_domain(source),
            to_node=TopologyNode.from_domain(target),
        )


@strawberry.type
class TopologyQuery:
    """Queries for the forest."""

    @strawberry.field
    async def topology_node(self, info: Info, id: strawberry.ID) -> TopologyNode | None:
        """One node; null when it is unknown."""
        found = await info.context.nodes.load(id)
        return None if found is None else TopologyNode.from_domain(found)

    @strawberry.field
    async def roots(self, info: Info) -> list[TopologyNode]:
        """The roots by index."""
        return [TopologyNode.from_domain(root) for root in await info.context.store.tree.roots(info.context.space)]

    @strawberry.field(
        description="The whole forest, or the tree under one node, to a depth counted from that node. "
        "With status: matching nodes and their ancestors."
    )
    async def forest(
        self,
        info: Info,
        root_id: strawberry.ID | None = UNSET,
        max_depth: int | None = UNSET,
        status: SessionStatus | None = UNSET,
    ) -> Forest | None:
        """The forest, or a part of it; null when `root_id` is unknown."""
        found = await info.context.store.tree.forest(
            info.context.space, given(root_id), given(max_depth), given(status)
        )
        return None if found is None else Forest.from_domain(found)


@strawberry.type
class TopologyMutation:
    """Mutations of the forest."""

    @strawberry.mutation(
        description="Under parentId, or to the roots. Refused under itself, a descendant, or where a ref would then "
        "join ancestor and descendant."
    )
    async def move_node(
        self, info: Info, id: strawberry.ID, parent_id: strawberry.ID | None = UNSET, to_root: bool = False
    ) -> LazySessionPayload:
        """Move a node and its subtree."""
        from schema.session_mutation import SessionPayload

        parent = given(parent_id)
        if to_root == (parent is not None):
            raise errors.BadInput("moveNode: name a parentId or say toRoot, one of them")
        return SessionPayload.from_domain(await info.context.store.tree.move(info.context.space, id, parent))

    @strawberry.mutation(
        description="Repeats change nothing. Refused between a node and itself, an ancestor or a descendant."
    )
    async def add_ref(self, info: Info, from_id: strawberry.ID, to_id: strawberry.ID) -> RefPayload:
        """Add a reference."""
        return RefPayload.from_domain(*await info.context.store.tree.add_ref(info.context.space, from_id, to_id))

    @strawberry.mutation
    async def remove_ref(self, info: Info, from_id: strawberry.ID, to_id: strawberry.ID) -> RefPayload:
        """Remove a reference."""
        return RefPayload.from_domain(*await info.context.store.tree.remove_ref(info.context.space, from_id, to_id))
