"""The space that logs are imported into: what an import reads of it and writes to it."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from storage import errors
from storage.events import APPEND, Event, SurfaceOp, SurfaceOpKind
from storage.lifecycle import Fork, NewSession
from storage.session import MAX_LABEL, SessionConfig, SessionMeta, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from storage.topology import TopologyNode
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings


class Point(NamedTuple):
    """A seq of another session, before which something parts from it; None: it shares no events."""

    id: str
    seq: int | None


class Target:
    """A space of a store, its roots-to-be under `parent_id` if one is given."""

    def __init__(self, store: Store, space: str, *, parent_id: str | None = None) -> None:
        self.store = store
        self.space = space
        self.parent_id = parent_id

    async def session(self, id: str) -> SessionMeta | None:
        """The session, or None."""
        return await self.store.sessions.get(self.space, id)

    async def events(self, meta: SessionMeta, seq: int, count: int) -> Sequence[Event]:
        """Up to `count` events of a session's visible log from a seq on, at least one."""
        page = await self.store.sessions.events(meta, from_seq=seq, first=count)
        return page.events

    async def has(self, id: str) -> bool:
        """Whether there is such a session."""
        return await self.session(id) is not None

    async def node(self, id: str) -> TopologyNode:
        """Where a session stands. Raises NotFound."""
        node = await self.store.tree.node(self.space, id)
        if node is None:
            raise errors.NotFound(f"no session {id!r}")
        return node

    async def point(self, id: str) -> Point | None:
        """Where a session comes from, None where from no other."""
        node = await self.store.tree.node(self.space, id)
        if node is None or node.document.source_session_id is None:
            return None
        return Point(node.document.source_session_id, node.document.fork_seq)

    async def make(
        self,
        session: ForeignSession,
        id: str | None,
        parent_id: str | None,
        source: Point | None,
        losses: ImportWarnings,
    ) -> str:
        """Makes a session without events of its own; its id. Raises DuplicateId, NotFound, BadInput."""
        if session.label is not None and len(session.label) > MAX_LABEL:
            losses.add("label", f"cut to {MAX_LABEL} characters")
            session = replace(session, label=session.label[:MAX_LABEL])
        if source is not None and source.seq is not None:
            return await self._fork(session, id, parent_id, source.id, source.seq)
        return await self._create(session, id, parent_id, None if source is None else source.id)

    async def _create(
        self, session: ForeignSession, id: str | None, parent_id: str | None, source_id: str | None
    ) -> str:
        new = NewSession(
            id=id,
            label=session.label,
            parent_id=parent_id,
            source_session_id=source_id,
            workflow_mode=session.workflow_mode,
            metadata=session.metadata,
        )
        return (await self.store.tree.create(self.space, new)).id

    async def _fork(
        self, session: ForeignSession, id: str | None, parent_id: str | None, source_id: str, seq: int
    ) -> str:
        wanted = Fork(
            source_id=source_id,
            at_seq=seq,
            id=id,
            label=session.label,
            parent_id=parent_id,
            as_root=parent_id is None,
            metadata=session.metadata,
            config=SessionConfig(system_prompt=session.system_prompt),
        )
        return (await self.store.tree.fork(self.space, wanted)).id

    async def furnish(self, session: ForeignSession, id: str, *, forked: bool) -> None:
        """Gives a session that was made what its making could not name, and takes what it inherited from it.

        Raises PayloadTooLarge.
        """
        if not forked and session.system_prompt is not None:
            await self._put(id, SlotName.SYSTEM_PROMPT, session.system_prompt)
        if not forked and session.config is None:
            return
        node = await self.node(id)
        given = {"workflow_mode": session.workflow_mode, "metadata": session.metadata}
        if changes := {name: value for name, value in given.items() if getattr(node.session, name) != value}:
            await self.store.sessions.update(self.space, id, changes)
        config = session.config or SessionConfig()
        if (node.document.config or SessionConfig()).given() != config.given():
            await self.store.tree.put_config(self.space, id, config)

    async def append(self, id: str, drafts: Sequence[Event], head: int) -> None:
        """Appends at a head. Raises Conflict, Archived, TurnEnded, BadInput, PayloadTooLarge."""
        await self.store.sessions.append(self.space, id, drafts, expected_head=head)

    async def replacement(self, id: str, first: int, last: int) -> SurfaceOp:
        """What replaces all that the surface holds of the events from a seq to another; APPEND if that is nothing."""
        meta = await self.session(id)
        if meta is None:
            return APPEND
        surface = await self.store.messages.surface(meta)
        seqs = [node.seq for node in surface.nodes() if first <= node.seq <= last]
        return SurfaceOp(op=SurfaceOpKind.REPLACE, start=seqs[0], end=seqs[-1]) if seqs else APPEND

    async def restore(self, id: str) -> None:
        """Lets an archived session take events again."""
        await self.store.sessions.set_status(self.space, id, SessionStatus.ACTIVE)

    async def rename(self, id: str, label: str, labels: Collection[str]) -> None:
        """Sets a label, cut where it is too long, in place of one of these; another one was given here, and stays."""
        meta = await self.session(id)
        if meta is not None and meta.label in labels and meta.label != label[:MAX_LABEL]:
            await self.store.sessions.update(self.space, id, {"label": label[:MAX_LABEL]})

    async def move(self, id: str, parent_id: str) -> None:
        """Puts a session under a parent."""
        await self.store.tree.move(self.space, id, parent_id)

    async def refer(self, id: str, to_id: str) -> None:
        """Adds a reference."""
        await self.store.tree.add_ref(self.space, id, to_id)

    async def complete(self, session: ForeignSession, id: str) -> None:
        """What can only come when the log is complete: slots, then archiving."""
        if session.insight is not None:
            await self._put(id, SlotName.INSIGHT, session.insight)
        if session.memory is not None:
            await self._put(id, SlotName.MEMORY, session.memory, session.memory_at_seq)
        if session.archived:
            await self.store.sessions.set_status(self.space, id, SessionStatus.ARCHIVED)

    async def catch_up(self, session: ForeignSession, id: str, head: int) -> bool:
        """Writes those slots that were never written here; whether it was not complete.

        That is so if it lacked any, or has come on since it had this head; then it is archived too.
        """
        held = (await self.store.sessions.slots(self.space, [id])).get(id)
        if held is not None and held.system_prompt is None and session.system_prompt is not None:
            await self._put(id, SlotName.SYSTEM_PROMPT, session.system_prompt)
        lacks = {
            name: None if held is None or getattr(held, name) is not None else getattr(session, name)
            for name in ("insight", "memory")
        }
        meta = await self.session(id)
        came_on = meta is not None and (meta.head > head or any(lacks.values()))
        archived = session.archived and came_on
        await self.complete(replace(session, insight=lacks["insight"], memory=lacks["memory"], archived=archived), id)
        return came_on

    async def delete(self, id: str) -> bool:
        """Deletes a session; False if that could not be done."""
        try:
            await self.store.tree.delete(self.space, id)
        except errors.NotFound:
            return True
        except errors.SapwoodError:
            return False
        return True

    async def _put(self, id: str, name: SlotName, content: str, at_seq: int | None = None) -> None:
        await self.store.sessions.put_slot(self.space, SlotWrite(id, name, content, at_seq=at_seq))
