"""Imports that write nothing to a space: they are done whole, in a store that is thrown away."""

from storage.lifecycle import NewSession
from storage.session import SessionMeta
from storage.store import Store
from storage.transfer.formats.shared.foreign import ForeignSession
from storage.transfer.importing.target import Point, Target

_PAGE = 1_000


class DryRun(Target):
    """A space of a scratch store, into which the sessions of another store are copied when they are asked for."""

    def __init__(self, scratch: Store, lender: Store | None, space: str, *, parent_id: str | None = None) -> None:
        super().__init__(scratch, space, parent_id=parent_id)
        self._lender = lender
        self._lent: set[str] = set()

    async def session(self, id: str) -> SessionMeta | None:
        """The session, or None."""
        found = await super().session(id)
        if found is None and self._lender is not None:
            lent = await self._lender.sessions.get(self.space, id)
            if lent is not None:
                await self._copy(self._lender, lent)
                self._lent.add(id)
                found = await super().session(id)
        return found

    async def point(self, id: str) -> Point | None:
        """Where a session comes from, None where from no other."""
        if id in self._lent and self._lender is not None:
            return await Target(self._lender, self.space).point(id)
        return await super().point(id)

    async def catch_up(self, session: ForeignSession, id: str, head: int) -> bool:
        """Nothing for a copy, which has less than what it was made of."""
        return id not in self._lent and await super().catch_up(session, id, head)

    async def _copy(self, lender: Store, meta: SessionMeta) -> None:
        new = NewSession(id=meta.id, label=meta.label, workflow_mode=meta.workflow_mode, metadata=meta.metadata)
        await self.store.tree.create(self.space, new)
        copied = 0
        while copied < meta.head:
            page = await lender.sessions.events(meta, from_seq=copied, first=_PAGE)
            await self.store.sessions.append(self.space, meta.id, page.events, expected_head=copied)
            copied += len(page.events)
        await self.store.sessions.set_status(self.space, meta.id, meta.status)
