"""Deleting sessions: the node, session and slots of a subtree go in one transaction, their commits after it."""

from dataclasses import dataclass

from storage import errors, topology
from storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Deletion:
    """The ids of the deleted sessions, and the logs that they read."""

    ids: list[str]
    logs: list[str]


async def delete(tx: Transaction, space: str, id: str, cascade: bool) -> Deletion:
    """Deletes a session, with `cascade` its subtree too. Raises NotFound, HasChildren, BadInput over 1,000 nodes."""
    node = await tx.node(space, id)
    if node is None:
        raise errors.no_session("id", id)
    subtree = await tx.subtree(space, id, topology.MAX_CASCADE + 1)
    if len(subtree) > 1 and not cascade:
        raise errors.HasChildren(f"{id} has children; delete them first, or say cascade")
    if len(subtree) > topology.MAX_CASCADE:
        raise errors.BadInput(f"{id} has more than {topology.MAX_CASCADE - 1} descendants; delete parts of it first")
    ids = [member.id for member in topology.depth_first(subtree)]
    deleted = set(ids)
    for referrer in await tx.referrers(space, ids):
        if referrer.id not in deleted:
            kept = tuple(target for target in referrer.refs if target not in deleted)
            await tx.change_node(referrer, {"refs": kept})
    targets = {target for member in subtree for target in member.refs} - deleted
    for target in (await tx.nodes(space, targets)).values():
        await tx.change_node(target, {})
    if node.parent_id is not None and (parent := await tx.node(space, node.parent_id)) is not None:
        await tx.change_node(parent, {"child_count": parent.child_count - 1})
    metas = await tx.sessions(space, ids)
    await tx.delete(space, ids)
    logs = dict.fromkeys(segment.log for meta in metas.values() for segment in meta.segments)
    return Deletion(ids, list(logs))
