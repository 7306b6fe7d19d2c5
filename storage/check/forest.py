"""Checks the nodes of a space: parents, ancestors, indexes, counts of children, and references."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from storage import topology
from storage.check.problem import Problem
from storage.database import Database, Transaction
from storage.topology import NodeDocument


async def check_forest(database: Database, space: str, repair: bool) -> list[Problem]:
    """What is wrong with the nodes of a space, parents before children: repairing a parent may repair its children.

    A node whose parent is missing becomes a root, as the forest shows it already, and so does one node of a cycle.
    """
    found: list[Problem] = []
    for id in _cycles(await _nodes(database, space)):
        found += await database.transact(partial(_break_cycle, space=space, id=id, repair=repair))
    for id in _suspects(await _nodes(database, space)):
        found += await database.transact(partial(_examine, space=space, id=id, repair=repair))
    return found


async def _nodes(database: Database, space: str) -> list[NodeDocument]:
    nodes = await database.read(lambda queries: queries.subtree(space, None))
    return [node.model_copy(update={"config": None}) for node in topology.depth_first(nodes)]


def _cycles(nodes: Sequence[NodeDocument]) -> list[str]:
    """The smallest id of each cycle of parents."""
    parents = {node.id: node.parent_id for node in nodes}
    found: list[str] = []
    done: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        id: str | None = start
        while id in parents and id not in done and id not in path:
            path[id] = None
            id = parents[id]
        if id in path:
            members = list(path)
            found.append(min(members[members.index(id) :]))
        done.update(path)
    return found


def _suspects(nodes: Sequence[NodeDocument]) -> list[str]:
    """The ids of the nodes that contradict the others, in the order given."""
    by_id = {node.id: node for node in nodes}
    children: dict[str | None, list[NodeDocument]] = {}
    for node in nodes:
        children.setdefault(node.parent_id, []).append(node)
    repeats = {id for siblings in children.values() for id in _repeats(siblings)}
    return [
        node.id
        for node in nodes
        if node.id in repeats
        or node.ancestors != _ancestors(node, by_id)
        or (node.parent_id is not None and node.parent_id not in by_id)
        or _counters(node, children.get(node.id, ()))
        or any(ref not in by_id or _is_kin(node, by_id[ref]) for ref in node.refs)
    ]


def _ancestors(node: NodeDocument, by_id: Mapping[str, NodeDocument]) -> tuple[str, ...]:
    parent = by_id.get(node.parent_id or "")
    return (parent.id, *parent.ancestors) if parent is not None else ()


def _repeats(siblings: Sequence[NodeDocument]) -> list[str]:
    """The ids of the nodes that share their index with a sibling of smaller id."""
    ordered = sorted(siblings, key=lambda node: (node.index, node.id))
    return [node.id for before, node in pairwise(ordered) if before.index == node.index]


def _counters(node: NodeDocument, children: Sequence[NodeDocument]) -> dict[str, int]:
    """The right values of the counters of a node that its children contradict."""
    next_index = max((child.index + 1 for child in children), default=0)
    wrong: dict[str, int] = {}
    if node.child_count != len(children):
        wrong["child_count"] = len(children)
    if node.next_index < next_index:
        wrong["next_index"] = next_index
    return wrong


def _is_kin(one: NodeDocument, other: NodeDocument) -> bool:
    return one.id == other.id or one.id in other.ancestors or other.id in one.ancestors


async def _break_cycle(tx: Transaction, *, space: str, id: str, repair: bool) -> list[Problem]:
    node = await tx.node(space, id)
    seen: set[str] = set()
    above = node
    while above is not None and above.id not in seen:
        seen.add(above.id)
        above = await tx.node(space, above.parent_id or "")
    if node is None or above is None:
        return []
    if repair:
        index, _ = await tx.next_root(space)
        await tx.change_node(node, {"parent_id": None, "ancestors": (), "index": index})
    return [Problem(space, id, "is an ancestor of itself", "it becomes a root", repaired=repair)]


async def _examine(tx: Transaction, *, space: str, id: str, repair: bool) -> list[Problem]:
    """What is wrong with one node now."""
    node = await tx.node(space, id)
    if node is None:
        return []
    examination = _Examination(tx, node, repair)
    await examination.parent()
    await examination.children()
    await examination.refs()
    await examination.write()
    return examination.found


class _Examination:
    """Checks one node inside a transaction, and collects what to change."""

    def __init__(self, tx: Transaction, node: NodeDocument, repair: bool) -> None:
        self.found: list[Problem] = []
        self._tx = tx
        self._node = node
        self._repair = repair
        self._changes: dict[str, Any] = {}

    def _wrong(self, what: str, remedy: str, **changes: Any) -> None:
        self.found.append(Problem(self._node.space, self._node.id, what, remedy, repaired=self._repair))
        self._changes |= changes

    async def parent(self) -> None:
        """Checks that the parent exists, that the ancestors follow from it, and that no sibling has the same index."""
        tx, node = self._tx, self._node
        parent = None if node.parent_id is None else await tx.node(node.space, node.parent_id)
        ancestors = (parent.id, *parent.ancestors) if parent is not None else ()
        if node.parent_id is not None and parent is None:
            self._wrong(f"has the parent {node.parent_id}, which is missing", "it becomes a root", parent_id=None)
            self._changes |= {"ancestors": (), "index": None}
        elif node.ancestors != ancestors:
            self._wrong("has other ancestors than its parent", "they are set by its parent's", ancestors=ancestors)
        if "index" not in self._changes and await self._index_repeats():
            self._wrong(f"has the index {node.index} of a sibling", "it gets the next one", index=None)

    async def _index_repeats(self) -> bool:
        tx, node = self._tx, self._node
        if node.parent_id is not None:
            siblings = await tx.children(node.space, [node.parent_id])
        else:
            siblings = [root for root in await tx.roots(node.space) if root.parent_id is None]
        return node.id in _repeats(siblings)

    async def children(self) -> None:
        """Checks the counters against the children."""
        wrong = _counters(self._node, await self._tx.children(self._node.space, [self._node.id]))
        if "child_count" in wrong:
            what = f"counts {self._node.child_count} children and has {wrong['child_count']}"
            self._wrong(what, "they are counted again", child_count=wrong["child_count"])
        if "next_index" in wrong:
            what = f"would give the index {self._node.next_index} again"
            self._wrong(what, "it goes on after the largest", next_index=wrong["next_index"])

    async def refs(self) -> None:
        """Checks that each reference leads to a node that is neither ancestor nor descendant."""
        targets = await self._tx.nodes(self._node.space, self._node.refs)
        missing = [ref for ref in self._node.refs if ref not in targets]
        if missing:
            kept = tuple(ref for ref in self._node.refs if ref in targets)
            self._wrong(f"refers to {', '.join(missing)}, which is missing", "the reference is dropped", refs=kept)
        for target in targets.values():
            if _is_kin(self._node, target):
                what = f"refers to {target.id}, which is itself, an ancestor or a descendant"
                by_hand = "remove the reference, or move one of the two"
                self.found.append(Problem(self._node.space, self._node.id, what, by_hand=by_hand))

    async def write(self) -> None:
        """Writes the changes, and the ancestors of descendants that follow from them."""
        tx, node, changes = self._tx, self._node, self._changes
        if not changes or not self._repair:
            return
        if "index" in changes:
            changes["index"] = await self._next_index(changes)
        await tx.change_node(node, changes)
        if "ancestors" in changes:
            descendants = [each for each in await tx.subtree(node.space, node.id) if node.id in each.ancestors]
            await tx.move_nodes([_rebased(each, node.id, changes["ancestors"]) for each in descendants])

    async def _next_index(self, changes: dict[str, Any]) -> int:
        tx, node = self._tx, self._node
        parent_id = changes.get("parent_id", node.parent_id)
        parent = None if parent_id is None else await tx.node(node.space, parent_id)
        if parent is None:
            return (await tx.next_root(node.space))[0]
        await tx.change_node(parent, {"next_index": parent.next_index + 1})
        return parent.next_index


def _rebased(descendant: NodeDocument, id: str, ancestors: tuple[str, ...]) -> NodeDocument:
    """A descendant of `id` with the new ancestors of `id` above it."""
    up_to_id = descendant.ancestors[: descendant.ancestors.index(id) + 1]
    return descendant.model_copy(update={"ancestors": (*up_to_id, *ancestors)})
