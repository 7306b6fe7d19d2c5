"""The forest: nodes, and the rules of parents, references and moves. Nothing here reads a log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage import errors
from storage.events import Instant, Model
from storage.session import SessionConfig, SessionMeta, SessionStatus

MAX_DEPTH = 256
MAX_CASCADE = 1_000
MAX_MOVE = 10_000


class NodeDocument(Model):
    """A node as stored. `ancestors` nearest first; `next_index` counts the children ever created or moved here.

    `moved_at_head` is the session's head when the node's ancestors last changed, `moved_from` the previous ones.
    """

    space: str
    id: str
    parent_id: str | None = None
    ancestors: tuple[str, ...] = ()
    index: int = 0
    next_index: int = 0
    child_count: int = 0
    refs: tuple[str, ...] = ()
    source_session_id: str | None = None
    fork_seq: int | None = None
    config: SessionConfig | None = None
    moved_at_head: int | None = None
    moved_from: tuple[str, ...] = ()
    updated_at: Instant = 0


@dataclass(frozen=True, slots=True)
class TopologyNode:
    """A node with the session of the same id, as the forest shows it."""

    document: NodeDocument
    session: SessionMeta

    @property
    def id(self) -> str:
        """The id, shared with the session."""
        return self.document.id

    @property
    def parent_id(self) -> str | None:
        """Id of the parent; None for a root."""
        return self.document.parent_id

    @property
    def root_id(self) -> str:
        """The id of the root of its tree; its own for a root."""
        return self.document.ancestors[-1] if self.document.ancestors else self.id

    @property
    def depth(self) -> int:
        """Number of ancestors: 0 for a root."""
        return len(self.document.ancestors)

    @property
    def updated_at(self) -> Instant:
        """Time of the last change of the node or its session, in ms since 1970."""
        return max(self.document.updated_at, self.session.updated_at)


def depth_first(nodes: Iterable[NodeDocument]) -> list[NodeDocument]:
    """Sorts nodes depth first: parents before children, siblings and roots by index.

    A node whose parent is not among them, or that damage has put on a cycle, becomes the root of its own tree.
    """
    by_id = {node.id: node for node in nodes}
    children: dict[str | None, list[NodeDocument]] = {}
    for node in by_id.values():
        parent = node.parent_id if node.parent_id in by_id else None
        children.setdefault(parent, []).append(node)
    for siblings in children.values():
        siblings.sort(key=lambda node: (node.index, node.id))
    ordered = _walk(children.get(None, []), children)
    if len(ordered) < len(by_id):
        reached = {node.id for node in ordered}
        for node in sorted(by_id.values(), key=lambda node: node.id):
            if node.id not in reached:
                found = [member for member in _walk([node], children) if member.id not in reached]
                reached.update(member.id for member in found)
                ordered.extend(found)
    return ordered


def _walk(start: Sequence[NodeDocument], children: dict[str | None, list[NodeDocument]]) -> list[NodeDocument]:
    ordered: list[NodeDocument] = []
    seen: set[str] = set()
    stack = list(reversed(start))
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen.add(node.id)
            ordered.append(node)
            stack.extend(reversed(children.get(node.id, [])))
    return ordered


def rooted(ordered: Sequence[NodeDocument]) -> list[NodeDocument]:
    """Shows nodes whose parent is missing as roots, and corrects the ancestors of their descendants.

    `ordered` must be depth first.
    """
    shown: dict[str, NodeDocument] = {}
    for node in ordered:
        parent = shown.get(node.parent_id) if node.parent_id is not None else None
        position = {
            "parent_id": parent.id if parent else None,
            "ancestors": (parent.id, *parent.ancestors) if parent else (),
        }
        damaged = position["ancestors"] != node.ancestors or position["parent_id"] != node.parent_id
        shown[node.id] = node.model_copy(update=position) if damaged else node
    return list(shown.values())


def matching(ordered: Sequence[TopologyNode], status: SessionStatus) -> list[TopologyNode]:
    """The nodes with that status and all their ancestors, in the order given."""
    shown: set[str] = set()
    for node in ordered:
        if node.session.status is status:
            shown.add(node.id)
            shown.update(node.document.ancestors)
    return [node for node in ordered if node.id in shown]


def check_ref(source: NodeDocument, target: NodeDocument) -> None:
    """Raises InvalidRef for a reference to itself, an ancestor or a descendant."""
    if source.id == target.id:
        raise errors.InvalidRef(f"{source.id} can't refer to itself")
    if target.id in source.ancestors:
        raise errors.InvalidRef(f"{source.id} can't refer to its ancestor {target.id}")
    if source.id in target.ancestors:
        raise errors.InvalidRef(f"{source.id} can't refer to its descendant {target.id}")


def check_move(node: NodeDocument, subtree: Sequence[NodeDocument], lineage: Sequence[NodeDocument]) -> None:
    """Checks that `node` with its `subtree` (itself included) may move under `lineage` (new parent first, then up).

    Raises Cycle for a move under itself or a descendant, InvalidRef if a reference would connect ancestor and
    descendant, BadInput beyond the largest depth or the largest move.
    """
    above = {ancestor.id for ancestor in lineage}
    below = {member.id for member in subtree}
    if node.id in above:
        raise errors.Cycle(f"{node.id} can't move under {lineage[0].id}, which is itself or below it")
    if len(subtree) > MAX_MOVE:
        raise errors.BadInput(f"{node.id} has more than {MAX_MOVE - 1} descendants; one move takes {MAX_MOVE} nodes")
    deepest = max(len(member.ancestors) for member in subtree) - len(node.ancestors)
    if len(lineage) + deepest > MAX_DEPTH:
        raise errors.BadInput(f"{node.id} and its subtree would reach a depth beyond {MAX_DEPTH}")
    for member in subtree:
        for target in member.refs:
            if target in above:
                raise errors.InvalidRef(f"{member.id} refers to {target}, which would become its ancestor")
    for ancestor in lineage:
        for target in ancestor.refs:
            if target in below:
                raise errors.InvalidRef(f"{ancestor.id} refers to {target}, which would become its descendant")
