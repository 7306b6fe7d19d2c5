"""What resolvers work with: the store, the caller's space and role, and loaders that batch without remembering."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import strawberry

from schema.engine.documents import Known
from schema.engine.loader import Loader
from storage.access_key import AccessRole
from storage.session import Slots
from storage.store import Store
from storage.topology import TopologyNode
from storage.views.runs import Run


class Context:
    """One caller's view of the store, for one operation, whose document may be known already.

    `resume_seq` is where to resume its feed of a session's events.
    It serves all events of a subscription, so its loaders batch look-ups of one moment and keep none of them.
    """

    def __init__(
        self, store: Store, space: str = "default", role: AccessRole = AccessRole.ADMIN, document: Known | None = None
    ) -> None:
        self.store = store
        self.space = space
        self.role = role
        self.document = document
        self.resume_seq: int | None = None

    @cached_property
    def nodes(self) -> Loader[str, TopologyNode | None]:
        """Nodes by id."""

        async def load(ids: Sequence[str]) -> Sequence[TopologyNode | None]:
            found = await self.store.tree.nodes(self.space, set(ids))
            return [found.get(id) for id in ids]

        return Loader(load)

    @cached_property
    def children(self) -> Loader[str, list[TopologyNode]]:
        """The children of a node, by index."""

        async def load(ids: Sequence[str]) -> Sequence[list[TopologyNode]]:
            found = await self.store.tree.children(self.space, set(ids))
            return [found[id] for id in ids]

        return Loader(load)

    @cached_property
    def referrers(self) -> Loader[str, list[str]]:
        """Ids of the nodes that refer to a node."""

        async def load(ids: Sequence[str]) -> Sequence[list[str]]:
            found = await self.store.tree.referrers(self.space, set(ids))
            return [found[id] for id in ids]

        return Loader(load)

    @cached_property
    def runs(self) -> Loader[tuple[str, str], Run | None]:
        """Whole runs by session and turn id."""

        async def load(keys: Sequence[tuple[str, str]]) -> Sequence[Run | None]:
            ids = list(dict.fromkeys(session for session, _ in keys))
            metas = dict(zip(ids, await self.store.sessions.get_many(self.space, ids), strict=True))

            async def one(session: str, turn: str) -> Run | None:
                meta = metas[session]
                return None if meta is None else await self.store.runs.one(meta, turn)

            return await asyncio.gather(*(one(session, turn) for session, turn in keys))

        return Loader(load)

    @cached_property
    def slots(self) -> Loader[str, Slots | None]:
        """The slots of a session."""

        async def load(ids: Sequence[str]) -> Sequence[Slots | None]:
            found = await self.store.sessions.slots(self.space, set(ids))
            return [found.get(id) for id in ids]

        return Loader(load)


Info: TypeAlias = strawberry.Info[Context, None]
