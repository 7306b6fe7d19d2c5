"""Dry runs: whole imports into a scratch store, which leave the space itself untouched."""

from typing_extensions import override

from storage.lifecycle import NewSession
from storage.session import SessionMeta
from storage.store import Store
from storage.transfer.formats.shared.foreign import ForeignSession
from storage.transfer.importing.target import ForkPoint, Target

_PAGE = 1_000


class DryRun(Target):
    """A space of a scratch store. Sessions of the `original` store, if there is one, are copied in when asked for."""

    def __init__(self, scratch: Store, original: Store | None, space: str, *, parent_id: str | None = None) -> None:
        super().__init__(scratch, space, parent_id=parent_id)
        self._original = original
        self._copied: set[str] = set()

    @override
    async def session(self, id: str) -> SessionMeta | None:
        found = await super().session(id)
        if found is None and self._original is not None:
            original = await self._original.sessions.get(self.space, id)
            if original is not None:
                await self._copy(self._original, original)
                self._copied.add(id)
                found = await super().session(id)
        return found

    @override
    async def fork_point(self, id: str) -> ForkPoint | None:
        if id in self._copied and self._original is not None:
            return await Target(self._original, self.space).fork_point(id)
        return await super().fork_point(id)

    @override
    async def catch_up(self, session: ForeignSession, id: str, head: int) -> bool:
        # A copy lacks slots that the original has.
        return id not in self._copied and await super().catch_up(session, id, head)

    async def _copy(self, original: Store, meta: SessionMeta) -> None:
        new = NewSession(id=meta.id, label=meta.label, workflow_mode=meta.workflow_mode, metadata=meta.metadata)
        await self.store.tree.create(self.space, new)
        copied = 0
        while copied < meta.head:
            page = await original.sessions.events(meta, from_seq=copied, first=_PAGE)
            await self.store.sessions.append(self.space, meta.id, page.events, expected_head=copied)
            copied += len(page.events)
        await self.store.sessions.set_status(self.space, meta.id, meta.status)
