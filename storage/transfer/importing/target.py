"""The space that logs are imported into: everything that an import reads from it and writes to it."""

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


class ForkPoint(NamedTuple):
    """The source of a session and the seq before which the two part; None as `seq`: they share no events."""

    id: str
    seq: int | None


class Target:
    """A space of a store. New roots become children of `parent_id` if one is given."""

    def __init__(self, store: Store, space: str, *, parent_id: str | None = None) -> None:
        self.store = store
        self.space = space
        self.parent_id = parent_id

    async def session(self, id: str) -> SessionMeta | None:
        """The session, or None."""
        return await self.store.sessions.get(self.space, id)

    async def events(self, meta: SessionMeta, seq: int, count: int) -> Sequence[Event]:
        """From 1 to `count` events of a session's visible log, from a seq on."""
        page = await self.store.sessions.events(meta, from_seq=seq, first=count)
        return page.events

    async def has(self, id: str) -> bool:
        """Whether there is such a session."""
        return await self.session(id) is not None

    async def node(self, id: str) -> TopologyNode:
        """The topology node of a session. Raises NotFound."""
        node = await self.store.tree.node(self.space, id)
        if node is None:
            raise errors.NotFound(f"no session {id!r}")
        return node

    async def fork_point(self, id: str) -> ForkPoint | None:
        """What a session was forked or derived from; None if it has no source."""
        node = await self.store.tree.node(self.space, id)
        if node is None or node.document.source_session_id is None:
            return None
        return ForkPoint(node.document.source_session_id, node.document.fork_seq)

    async def create(
        self,
        session: ForeignSession,
        id: str | None,
        parent_id: str | None,
        source: ForkPoint | None,
        warnings: ImportWarnings,
    ) -> str:
        """Creates a session without events of its own. Returns its id. Raises DuplicateId, NotFound, BadInput."""
        if session.label is not None and len(session.label) > MAX_LABEL:
            warnings.add("label", f"cut to {MAX_LABEL} characters")
            session = replace(session, label=session.label[:MAX_LABEL])
        if source is not None and source.seq is not None:
            return await self._fork_session(session, id, parent_id, source.id, source.seq)
        return await self._create_session(session, id, parent_id, None if source is None else source.id)

    async def _create_session(
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

    async def _fork_session(
        self, session: ForeignSession, id: str | None, parent_id: str | None, source_id: str, seq: int
    ) -> str:
        fork = Fork(
            source_id=source_id,
            at_seq=seq,
            id=id,
            label=session.label,
            parent_id=parent_id,
            as_root=parent_id is None,
            metadata=session.metadata,
            config=SessionConfig(system_prompt=session.system_prompt),
        )
        return (await self.store.tree.fork(self.space, fork)).id

    async def initialize(self, session: ForeignSession, id: str, *, forked: bool) -> None:
        """Sets what creation could not set, and removes what a fork has inherited. Raises PayloadTooLarge."""
        if not forked and session.system_prompt is not None:
            await self._put(id, SlotName.SYSTEM_PROMPT, session.system_prompt)
        if not forked and session.config is None:
            return
        node = await self.node(id)
        wanted = {"workflow_mode": session.workflow_mode, "metadata": session.metadata}
        if changes := {name: value for name, value in wanted.items() if getattr(node.session, name) != value}:
            await self.store.sessions.update(self.space, id, changes)
        config = session.config or SessionConfig()
        if (node.document.config or SessionConfig()).given() != config.given():
            await self.store.tree.put_config(self.space, id, config)

    async def append(self, id: str, drafts: Sequence[Event], head: int) -> None:
        """Appends events at this head. Raises Conflict, Archived, TurnEnded, BadInput, PayloadTooLarge."""
        await self.store.sessions.append(self.space, id, drafts, expected_head=head)

    async def replacement(self, id: str, first: int, last: int) -> SurfaceOp:
        """The operation that replaces the surface's messages from seq `first` to `last`; APPEND if there are none."""
        meta = await self.session(id)
        if meta is None:
            return APPEND
        surface = await self.store.messages.surface(meta)
        seqs = [node.seq for node in surface.nodes() if first <= node.seq <= last]
        return SurfaceOp(op=SurfaceOpKind.REPLACE, start=seqs[0], end=seqs[-1]) if seqs else APPEND

    async def restore(self, id: str) -> None:
        """Makes an archived session active again."""
        await self.store.sessions.set_status(self.space, id, SessionStatus.ACTIVE)

    async def rename(self, id: str, label: str, labels: Collection[str]) -> None:
        """Sets the label, cut to fit, if the present one is among `labels`; any other was set by a user, and stays."""
        meta = await self.session(id)
        if meta is not None and meta.label in labels and meta.label != label[:MAX_LABEL]:
            await self.store.sessions.update(self.space, id, {"label": label[:MAX_LABEL]})

    async def move(self, id: str, parent_id: str) -> None:
        """Moves a session under a parent."""
        await self.store.tree.move(self.space, id, parent_id)

    async def add_ref(self, id: str, to_id: str) -> None:
        """Adds a ref from one session to another."""
        await self.store.tree.add_ref(self.space, id, to_id)

    async def complete(self, session: ForeignSession, id: str) -> None:
        """Sets what needs the complete log: slots, then the archived status."""
        if session.insight is not None:
            await self._put(id, SlotName.INSIGHT, session.insight)
        if session.memory is not None:
            await self._put(id, SlotName.MEMORY, session.memory, session.memory_at_seq)
        if session.archived:
            await self.store.sessions.set_status(self.space, id, SessionStatus.ARCHIVED)

    async def catch_up(self, session: ForeignSession, id: str, head: int) -> bool:
        """Completes a session that already existed. Writes only slots that were never written.

        Returns whether the session was incomplete: it lacked a slot, or its log has grown since it had this head. Only
        then is it archived too.
        """
        slots = (await self.store.sessions.slots(self.space, [id])).get(id)
        if slots is not None and slots.system_prompt is None and session.system_prompt is not None:
            await self._put(id, SlotName.SYSTEM_PROMPT, session.system_prompt)
        lacks = {
            name: None if slots is None or getattr(slots, name) is not None else getattr(session, name)
            for name in ("insight", "memory")
        }
        meta = await self.session(id)
        incomplete = meta is not None and (meta.head > head or any(lacks.values()))
        archived = session.archived and incomplete
        await self.complete(replace(session, insight=lacks["insight"], memory=lacks["memory"], archived=archived), id)
        return incomplete

    async def delete(self, id: str) -> bool:
        """Deletes a session. Returns False if that failed."""
        try:
            await self.store.tree.delete(self.space, id)
        except errors.NotFound:
            return True
        except errors.SapwoodError:
            return False
        return True

    async def _put(self, id: str, name: SlotName, content: str, at_seq: int | None = None) -> None:
        await self.store.sessions.put_slot(self.space, SlotWrite(id, name, content, at_seq=at_seq))
