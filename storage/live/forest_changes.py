"""The forest, live: a snapshot, then at most four deltas a second with the newest state of what changed."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from storage import errors
from storage.database import Queries
from storage.live.feed import Feed
from storage.live.hub import Pending, Subscription
from storage.session import SessionStatus
from storage.session_tree import Forest, read_forest
from storage.topology import TopologyNode

DELTA_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class ForestDelta:
    """Nodes that are new or changed, parents first, and the ids of those that left the filter."""

    upserted: list[TopologyNode]
    removed_ids: list[str]


async def forest_changes(
    feed: Feed,
    space: str,
    root_id: str | None = None,
    max_depth: int | None = None,
    status: SessionStatus | None = None,
) -> AsyncGenerator[Forest | ForestDelta, None]:
    """A snapshot, then deltas. Ends when the root is deleted. Raises NotFound or BadInput at once."""
    if max_depth is not None and max_depth < 0:
        raise errors.BadInput(f"maxDepth: must not be negative, is {max_depth}")
    async with feed.registered(space) as subscription:
        tail = _ForestTail(feed, subscription, root_id, max_depth, status)
        return tail.changes(await tail.start())


class _ForestTail:
    """The forest as one reader's client knows it."""

    def __init__(
        self,
        feed: Feed,
        subscription: Subscription,
        root_id: str | None,
        max_depth: int | None,
        status: SessionStatus | None,
    ) -> None:
        self._feed = feed
        self._subscription = subscription
        self._root_id = root_id
        self._max_depth = max_depth
        self._status = status
        self._known: dict[str, TopologyNode] = {}
        self._root_is_gone = False

    async def start(self) -> Forest:
        """Reads the snapshot."""
        forest = await self._feed.database.read(self._forest)
        if forest is None:
            raise errors.NotFound(f"rootId: no session {self._root_id!r}")
        self._known = {node.id: node for node in forest.nodes}
        return forest

    async def _forest(self, queries: Queries) -> Forest | None:
        return await read_forest(queries, self._subscription.space, self._root_id, self._max_depth, self._status)

    async def changes(self, snapshot: Forest) -> AsyncGenerator[Forest | ForestDelta, None]:
        """The snapshot, then deltas."""
        try:
            yield snapshot
            while True:
                await self._subscription.wait()
                began = time.monotonic()
                pending, lost = self._subscription.take()
                if self._subscription.closed:
                    return
                delta = await self._delta(pending, lost)
                if delta.upserted or delta.removed_ids:
                    yield delta
                if self._root_is_gone:
                    return
                await asyncio.sleep(max(0.0, began + DELTA_SECONDS - time.monotonic()))
        finally:
            self._feed.hub.unsubscribe(self._subscription)

    async def _delta(self, pending: dict[str, Pending], lost: bool) -> ForestDelta:
        if lost or self._status is not None or self._root_id in pending:
            return await self._compare_all()
        ids = [id for id, change in pending.items() if change.log or change.node or change.session]
        if not ids:
            return ForestDelta([], [])

        async def query(queries: Queries) -> list[TopologyNode]:
            nodes = await queries.nodes(self._subscription.space, ids)
            metas = await queries.sessions(self._subscription.space, ids)
            return [TopologyNode(nodes[id], metas[id]) for id in ids if id in nodes and id in metas]

        found = await self._feed.read(self._subscription, query)
        inside = {node.id: node for node in found if self._in_scope(node)}
        removed = [id for id in ids if id in self._known and id not in inside]
        return self._learn([node for id, node in inside.items() if self._known.get(id) != node], removed)

    def _in_scope(self, node: TopologyNode) -> bool:
        root_depth = 0
        if self._root_id is not None:
            if node.id != self._root_id and self._root_id not in node.document.ancestors:
                return False
            root_depth = self._known[self._root_id].depth
        return self._max_depth is None or node.depth - root_depth <= self._max_depth

    async def _compare_all(self) -> ForestDelta:
        """Reads the forest again and compares it with what the client knows."""
        forest = await self._feed.read(self._subscription, self._forest)
        self._root_is_gone = forest is None
        now = {} if forest is None else {node.id: node for node in forest.nodes}
        changed = [node for id, node in now.items() if self._known.get(id) != node]
        return self._learn(changed, [id for id in self._known if id not in now])

    def _learn(self, upserted: list[TopologyNode], removed: list[str]) -> ForestDelta:
        """The delta of these nodes, which the client knows from now on."""
        for node in upserted:
            self._known[node.id] = node
        for id in removed:
            del self._known[id]
        upserted.sort(key=lambda node: (node.depth, node.document.index, node.id))
        return ForestDelta(upserted, removed)
