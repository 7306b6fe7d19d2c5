"""The context of resolvers: the store, the caller's space and role, and loaders that batch look-ups."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import strawberry

from schema.engine.documents import CheckedDocument
from schema.engine.loader import Loader
from storage.access_key import AccessRole
from storage.session import Slots
from storage.store import Store
from storage.topology import TopologyNode
from storage.views.runs import Run


class Context:
    """One caller's view of the store, for one operation. `document` is set if the document was looked up before.

    `resume_seq` is where to resume a subscription to one session's events. A subscription uses one context for all its
    events, so the loaders do not cache.
    """

    def __init__(
        self,
        store: Store,
        space: str = "default",
        role: AccessRole = AccessRole.ADMIN,
        document: CheckedDocument | None = None,
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
        """The ids of the nodes that refer to a node."""

        async def load(ids: Sequence[str]) -> Sequence[list[str]]:
            found = await self.store.tree.referrers(self.space, set(ids))
            return [found[id] for id in ids]

        return Loader(load)

    @cached_property
    def runs(self) -> Loader[tuple[str, str], Run | None]:
        """Whole runs by session and turn id."""

        return Loader(lambda keys: self.store.runs.many(self.space, keys))

    @cached_property
    def slots(self) -> Loader[str, Slots | None]:
        """The slots of a session."""

        async def load(ids: Sequence[str]) -> Sequence[Slots | None]:
            found = await self.store.sessions.slots(self.space, set(ids))
            return [found.get(id) for id in ids]

        return Loader(load)


Info: TypeAlias = strawberry.Info[Context, None]
