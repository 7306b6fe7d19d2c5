"""SessionTree: the forest of a space. Nothing here reads the content of sessions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from storage import deletion, errors, lifecycle, topology
from storage.database import Queries, Transaction, Work
from storage.lifecycle import Fork, NewSession
from storage.scope import Scope, children_queue, node_queue, session_queue
from storage.session import SessionConfig, SessionMeta, SessionStatus
from storage.topology import NodeDocument, TopologyNode

MAX_CREATED = 1_000
"""Sessions that one call creates."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes in depth-first order, the roots among them, and the references between them."""

    roots: list[str]
    nodes: list[TopologyNode]
    refs: list[tuple[str, str]]


class SessionTree:
    """Parents, children, references and lineage; also creates and deletes sessions."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def create(self, space: str, new: NewSession) -> SessionMeta:
        """Creates an empty session, as `storage.lifecycle.create`."""
        work = _creation(space, new)
        return await self._scope.transact(work.run, queue=work.queue)

    async def create_many(self, space: str, wanted: Sequence[NewSession]) -> list[SessionMeta | errors.SapwoodError]:
        """Creates up to 1,000 sessions in the order given, each with its session or the reason it was refused.

        A session may be the parent of later ones. Raises PayloadTooLarge for more than 1,000.
        """
        if len(wanted) > MAX_CREATED:
            raise errors.PayloadTooLarge(f"inputs: at most {MAX_CREATED}, got {len(wanted)}")
        return await self._scope.transact_each([_creation(space, new) for new in wanted])

    async def fork(self, space: str, wanted: Fork) -> SessionMeta:
        """Creates a session that shares events of another, as `storage.lifecycle.fork`."""
        queue = [session_queue(space, wanted.source_id), children_queue(space, wanted.under)]
        return await self._scope.transact(lambda tx: lifecycle.fork(tx, space, wanted), queue=queue)

    async def delete(self, space: str, id: str, cascade: bool = False) -> list[str]:
        """Deletes a session, with `cascade` its subtree too, as `storage.deletion.delete`. Returns the deleted ids."""
        deleted: deletion.Deletion = await self._scope.transact(
            lambda tx: deletion.delete(tx, space, id, cascade), queue=[session_queue(space, id)]
        )
        await self._scope.release(deleted.logs)
        return deleted.ids

    async def move(self, space: str, id: str, parent_id: str | None) -> SessionMeta:
        """Moves a node and its subtree under another parent, or to the roots. Returns the node's session.

        Moving to the same parent changes nothing.

        Raises NotFound, Cycle, InvalidRef (a reference would connect ancestor and descendant), BadInput.
        """

        async def work(tx: Transaction) -> SessionMeta:
            node = await tx.node(space, id)
            if node is None:
                raise errors.no_session("id", id)
            if node.parent_id != parent_id:
                parent = None if parent_id is None else await tx.node(space, parent_id)
                if parent_id is not None and parent is None:
                    raise errors.no_session("parentId", parent_id)
                await _move(tx, space, node, parent)
            return await _session(tx, space, id, "id")

        queue = [children_queue(space, parent_id), node_queue(space, id)]
        return await self._scope.transact(work, queue=queue)

    async def add_ref(self, space: str, from_id: str, to_id: str) -> tuple[TopologyNode, TopologyNode]:
        """Adds a reference from one node to another and returns both. A repeat changes nothing.

        Raises NotFound or InvalidRef.
        """

        async def work(tx: Transaction) -> tuple[TopologyNode, TopologyNode]:
            source, target = await _ends(tx, space, from_id, to_id)
            topology.check_ref(source, target)
            if to_id not in source.refs:
                await tx.change_node(source, {"refs": (*source.refs, to_id)})
                await tx.change_node(target, {})
            return await _shown_ends(tx, space, from_id, to_id)

        return await self._scope.transact(work, queue=[node_queue(space, from_id), node_queue(space, to_id)])

    async def remove_ref(self, space: str, from_id: str, to_id: str) -> tuple[TopologyNode, TopologyNode]:
        """Removes a reference, if there is one, and returns both nodes. Raises NotFound."""

        async def work(tx: Transaction) -> tuple[TopologyNode, TopologyNode]:
            source, target = await _ends(tx, space, from_id, to_id)
            if to_id in source.refs:
                await tx.change_node(source, {"refs": tuple(ref for ref in source.refs if ref != to_id)})
                await tx.change_node(target, {})
            return await _shown_ends(tx, space, from_id, to_id)

        return await self._scope.transact(work, queue=[node_queue(space, from_id), node_queue(space, to_id)])

    async def put_config(self, space: str, id: str, config: SessionConfig) -> SessionMeta:
        """Replaces the whole config and returns the session. Raises NotFound, PayloadTooLarge."""
        lifecycle.check_config(config)

        async def work(tx: Transaction) -> SessionMeta:
            node = await tx.node(space, id)
            if node is None:
                raise errors.no_session("sessionId", id)
            await tx.change_node(node, {"config": config})
            return await _session(tx, space, id, "sessionId")

        return await self._scope.transact(work, queue=[node_queue(space, id)])

    async def node(self, space: str, id: str) -> TopologyNode | None:
        """The node, or None if the space has none with that id."""
        return (await self.nodes(space, [id])).get(id)

    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, TopologyNode]:
        """Nodes by id; unknown ids are left out."""

        return await self._scope.read(lambda queries: _nodes(queries, space, ids))

    async def children(self, space: str, parents: Collection[str]) -> dict[str, list[TopologyNode]]:
        """The children of each parent, by index."""

        async def query(queries: Queries) -> list[TopologyNode]:
            return await _joined(queries, space, await queries.children(space, parents))

        found: dict[str, list[TopologyNode]] = {parent: [] for parent in parents}
        for node in sorted(await self._scope.read(query), key=lambda node: node.document.index):
            if node.parent_id is not None:
                found[node.parent_id].append(node)
        return found

    async def referrers(self, space: str, ids: Collection[str]) -> dict[str, list[str]]:
        """Ids of the nodes that refer to each of these, sorted."""
        found: dict[str, list[str]] = {id: [] for id in ids}
        for node in await self._scope.read(lambda queries: queries.referrers(space, ids)):
            for target in node.refs:
                if target in found:
                    found[target].append(node.id)
        return {id: sorted(names) for id, names in found.items()}

    async def roots(self, space: str) -> list[TopologyNode]:
        """The roots by index. A node whose parent is missing counts as one."""

        async def query(queries: Queries) -> list[TopologyNode]:
            return await _joined(queries, space, topology.rooted(topology.depth_first(await queries.roots(space))))

        return await self._scope.read(query)

    async def forest(
        self,
        space: str,
        root_id: str | None = None,
        max_depth: int | None = None,
        status: SessionStatus | None = None,
    ) -> Forest | None:
        """The forest, or one node's tree, to a depth counted from its root; None if that node is unknown."""
        if max_depth is not None and max_depth < 0:
            raise errors.BadInput(f"maxDepth: must not be negative, is {max_depth}")
        return await self._scope.read(lambda queries: read_forest(queries, space, root_id, max_depth, status))


def _creation(space: str, new: NewSession) -> Work:
    return Work(lambda tx: lifecycle.create(tx, space, new), [children_queue(space, new.parent_id)])


async def read_forest(
    queries: Queries, space: str, root_id: str | None, max_depth: int | None, status: SessionStatus | None
) -> Forest | None:
    """The forest as of one read, as `SessionTree.forest`."""
    ordered = topology.depth_first(await queries.subtree(space, root_id))
    if root_id is not None and not ordered:
        return None
    above = ordered[0].parent_id if root_id is not None else None
    if above is None or await queries.node(space, above) is None:
        ordered = topology.rooted(ordered)
    metas = {meta.id: meta for meta in await queries.sessions_in(space, root_id)}
    nodes = [TopologyNode(node, metas[node.id]) for node in ordered if node.id in metas]
    if status is not None:
        nodes = topology.matching(nodes, status)
    base = next((node.depth for node in nodes if node.id == root_id), 0)
    if max_depth is not None:
        nodes = [node for node in nodes if node.depth - base <= max_depth]
    shown = {node.id for node in nodes}
    roots = [node.id for node in nodes if node.id == root_id or (root_id is None and node.depth == 0)]
    refs = [(node.id, target) for node in nodes for target in node.document.refs if target in shown]
    return Forest(roots, nodes, refs)


async def _nodes(queries: Queries, space: str, ids: Collection[str]) -> dict[str, TopologyNode]:
    found = await queries.nodes(space, ids)
    parents = {node.parent_id for node in found.values() if node.parent_id is not None}
    missing = parents - found.keys()
    known = {**(await queries.nodes(space, missing) if missing else {}), **found}
    joined = await _joined(queries, space, [_shown(node, known) for node in found.values()])
    return {node.id: node for node in joined}


async def _shown_ends(tx: Transaction, space: str, from_id: str, to_id: str) -> tuple[TopologyNode, TopologyNode]:
    """Both ends of a reference as the forest shows them after a change. Raises NotFound."""
    found = await _nodes(tx, space, {from_id, to_id})
    for name, id in (("fromId", from_id), ("toId", to_id)):
        if id not in found:
            raise errors.no_session(name, id)
    return found[from_id], found[to_id]


async def _session(tx: Transaction, space: str, id: str, name: str) -> SessionMeta:
    """The session of a node. Raises NotFound, naming the argument that has its id."""
    meta = await tx.session(space, id)
    if meta is None:
        raise errors.no_session(name, id)
    return meta


def _shown(node: NodeDocument, known: Mapping[str, NodeDocument]) -> NodeDocument:
    """The node, shown as a root if its parent is missing."""
    if node.parent_id is None or node.parent_id in known:
        return node
    return node.model_copy(update={"parent_id": None, "ancestors": ()})


async def _joined(queries: Queries, space: str, documents: Sequence[NodeDocument]) -> list[TopologyNode]:
    metas = await queries.sessions(space, {document.id for document in documents})
    return [TopologyNode(document, metas[document.id]) for document in documents if document.id in metas]


async def _ends(tx: Transaction, space: str, from_id: str, to_id: str) -> tuple[NodeDocument, NodeDocument]:
    found = await tx.nodes(space, {from_id, to_id})
    for path, id in (("fromId", from_id), ("toId", to_id)):
        if id not in found:
            raise errors.no_session(path, id)
    return found[from_id], found[to_id]


async def _move(tx: Transaction, space: str, node: NodeDocument, parent: NodeDocument | None) -> None:
    subtree = await tx.subtree(space, node.id, topology.MAX_MOVE + 1)
    lineage: list[NodeDocument] = []
    if parent is not None:
        above = await tx.nodes(space, parent.ancestors)
        lineage = [parent, *(above[id] for id in parent.ancestors if id in above)]
    topology.check_move(node, subtree, lineage)
    if node.parent_id is not None and (old := await tx.node(space, node.parent_id)) is not None:
        await tx.change_node(old, {"child_count": old.child_count - 1})
    position = await lifecycle.claim_position(tx, space, parent.id if parent else None)
    heads = {head.id: head.head for head in await tx.heads(space, node.id)}
    moved = {
        "parent_id": parent.id if parent else None,
        "index": position.index,
        "ancestors": position.ancestors,
        "moved_at_head": heads.get(node.id),
        "moved_from": node.ancestors,
    }
    await tx.change_node(node, moved)
    await tx.move_nodes(
        [_below(member, node.id, position.ancestors, heads) for member in subtree if member.id != node.id]
    )


def _below(member: NodeDocument, moved: str, ancestors: tuple[str, ...], heads: Mapping[str, int]) -> NodeDocument:
    """A node of a moved subtree at its new position."""
    own = member.ancestors[: member.ancestors.index(moved) + 1]
    position = {"ancestors": (*own, *ancestors), "moved_at_head": heads.get(member.id), "moved_from": member.ancestors}
    return member.model_copy(update=position)
