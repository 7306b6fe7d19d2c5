"""The forest: a node for each session, its parent, its ancestors and what it refers to."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from storage.events import Instant
from storage.topology import NodeDocument

MOVED_FIELDS = ("ancestors", "moved_at_head", "moved_from")
"""Attributes that a move changes of all nodes of a subtree."""


class ForestQueries(Protocol):
    """Reading nodes. All lists are in no order; callers sort siblings by index."""

    async def node(self, space: str, id: str) -> NodeDocument | None:
        """One node; None for an id that is unknown or can't be one."""
        ...

    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, NodeDocument]:
        """Nodes by id. Unknown ids are left out."""
        ...

    async def children(self, space: str, parents: Collection[str]) -> list[NodeDocument]:
        """All nodes that have one of these parents; an unknown parent has none."""
        ...

    async def roots(self, space: str) -> list[NodeDocument]:
        """All nodes without a parent or whose parent is missing."""
        ...

    async def subtree(self, space: str, root: str | None, limit: int | None = None) -> list[NodeDocument]:
        """All nodes of the space, or a node and its descendants, but no more than `limit`; none for an unknown root."""
        ...

    async def referrers(self, space: str, ids: Collection[str]) -> list[NodeDocument]:
        """All nodes that refer to any of these ids, each once."""
        ...


class ForestWrites(Protocol):
    """Writing nodes. Each write makes the node known as a Notification of kind `node`."""

    async def next_root(self, space: str) -> tuple[int, Instant]:
        """The next index among the roots of a space, which no other transaction gets, and the database's time."""
        ...

    async def insert_node(self, node: NodeDocument) -> None:
        """Writes a new node. Its id is that of a session which the same transaction inserted."""
        ...

    async def change_node(self, node: NodeDocument, changes: dict[str, Any]) -> NodeDocument:
        """Sets fields, by attribute name, and updatedAt. Returns the new document.

        `node` is the node as this transaction has read it.
        """
        ...

    async def move_nodes(self, nodes: Sequence[NodeDocument]) -> None:
        """Writes MOVED_FIELDS of each of these nodes as given, and updatedAt; nothing else of them."""
        ...
