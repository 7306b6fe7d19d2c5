"""Finding or creating the sessions of an import, and linking them to parents, sources and refs."""

import itertools
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import Protocol

from storage import errors
from storage.session import SessionMeta
from storage.transfer.formats.shared.foreign import ForeignSession
from storage.transfer.importing import ids as import_ids
from storage.transfer.importing.log import ImportedLog
from storage.transfer.importing.result import ImportResult
from storage.transfer.importing.session import ExistingSession, ImportedSession, Placement, SuspendedLog
from storage.transfer.importing.target import ForkPoint, Target

_BASE_CHARACTERS = 118
"""How much of an id is kept, so that it stays within 128 characters with a number appended."""


class Logs(Protocol):
    """The logs of the sessions read so far."""

    async def log_of(self, key: str) -> ImportedLog | SuspendedLog:
        """The log of a session read before, which must have an id by now. Raises BadInput if it was refused."""

    def has(self, key: str) -> bool:
        """Whether this session was read."""


class Resolver:
    """Finds or creates the sessions of one source; `logs` gives the logs of the others.

    `merge`: a session may already exist; otherwise all must be new. `incomplete` are the sessions created that need
    all others to be there before they can be completed, `existing` the sessions found that may lack some of what their
    source says beside the events.
    """

    def __init__(self, target: Target, format: str, logs: Logs, result: ImportResult, *, merge: bool) -> None:
        self.incomplete: list[ForeignSession] = []
        self.existing: list[ExistingSession] = []
        self._target = target
        self._format = format
        self._logs = logs
        self._result = result
        self._warnings = result.warning_counts
        self._merge = merge
        self._created: dict[str, str] = {}
        self._claimed: set[str] = set()

    async def resolve(self, session: ImportedSession) -> Placement | None:
        """Finds a stored session to compare with. Where there is none, returns where to create it."""
        foreign = session.foreign
        source = await self._source(session)
        if self._merge and (found := await self._find(session, source)) is not None:
            self._use(session, found)
            return None
        if foreign.repeats is not None:
            other = await self._target.session(foreign.repeats)
            if other is not None:
                session.compare_with(other, foreign.repeats_at_most, copies=True)
                return None
            self._warnings.add("session", "lost the session that it repeats, which is not in this space")
        return Placement(await self._parent(foreign), source)

    async def create(self, session: ImportedSession, placement: Placement) -> None:
        """Creates a session. If another import has created it meanwhile, continues that one."""
        try:
            await self._create(session, placement)
        except errors.DuplicateId:
            found = await self._find(session, placement.source) if self._merge else None
            if found is None:
                raise
            self._use(session, found)

    async def _source(self, session: ImportedSession) -> ForkPoint | None:
        """The fork point that the source names, as a seq of the stored log."""
        foreign = session.foreign
        if foreign.source is None:
            return None
        log = await self._logs.log_of(foreign.source)
        if foreign.at_seq is None:
            return ForkPoint(log.id, None)
        session.log.shifts = tuple(shift for shift in log.shifts if shift.seq < foreign.at_seq)
        if foreign.label is None and (stored := await self._target.session(log.id)) is not None:
            session.labels = (*session.labels, stored.label)  # which a fork inherits
        return ForkPoint(log.id, session.log.next_seq)

    # Finding

    async def _find(self, session: ImportedSession, source: ForkPoint | None) -> SessionMeta | None:
        """The session as an earlier import left it, if any. Gives the session an id where it has none."""
        if session.id is None:
            return await self._find_by_content(session, source)
        found = await self._target.session(session.id)
        if found is None or not session.is_declared_fork or await self._target.fork_point(found.id) == source:
            return found
        session.id, found = await self._find_variant(session, source)
        return found

    async def _find_by_content(self, session: ImportedSession, source: ForkPoint | None) -> SessionMeta | None:
        bases = import_ids.of_content(self._format, session.foreign, source, session.log.pending)
        for base in (*bases, import_ids.of_facts(self._format, session.foreign, source)):
            found = None if base in self._claimed else await self._target.session(base)
            if found is not None and (base in bases or await self._began_empty(session, found)):
                self._claimed.add(base)
                session.id = base
                return found
        session.id = next(id for id in _variants(bases[0]) if id not in self._claimed)
        self._claimed.add(session.id)
        return await self._target.session(session.id)

    async def _began_empty(self, session: ImportedSession, found: SessionMeta) -> bool:
        """Whether a stored log that had no events when it was first imported may be this one."""
        return found.head == session.log.next_seq or await session.log.agrees_with(found, import_ids.NAMING_EVENTS)

    async def _find_variant(self, session: ImportedSession, source: ForkPoint | None) -> tuple[str, SessionMeta | None]:
        """A numbered variant of the id that forks at the same point and continues alike, else the first free id."""
        for id in itertools.islice(_variants(session.foreign.id or session.id or ""), 1, None):
            found = await self._target.session(id)
            if found is None:
                return id, None
            if id in self._claimed or await self._target.fork_point(id) != source:
                continue
            if await session.log.agrees_with(found, 1):
                return id, found
        raise AssertionError("there is always another variant of an id")

    def _use(self, session: ImportedSession, found: SessionMeta) -> None:
        """Continues a session that already exists."""
        session.log.id = found.id
        session.compare_with(found)
        self._result.ids[session.foreign.key] = found.id
        self._result.known += 1
        foreign = session.foreign
        names_parent = self._is_before_parent(foreign) or foreign.parent_id is not None
        if names_parent or _needs_completion(foreign) or foreign.system_prompt is not None:
            self.existing.append(ExistingSession(foreign, found.head))

    # Creating

    async def _create(self, session: ImportedSession, placement: Placement) -> None:
        """Creates the session without events of its own."""
        foreign = replace(session.foreign, label=session.label)
        shares = placement.source is not None and placement.source.seq is not None
        id = await self._create_at(placement, foreign, session.id)
        session.log.id = session.id = id
        session.stored, session.copies, session.renamed = None, False, False
        self._created[foreign.key] = self._result.ids[foreign.key] = id
        await self._target.initialize(foreign, id, forked=shares)
        self._result.forks += shares
        self._result.sessions += foreign.counted
        self._result.nodes += not foreign.counted and not shares
        is_before_parent = self._is_before_parent(foreign)
        if is_before_parent or _needs_completion(foreign):
            self.incomplete.append(foreign if is_before_parent else replace(foreign, parent=None))

    async def _create_at(self, placement: Placement, foreign: ForeignSession, id: str | None) -> str:
        """Creates the session under its parent, or beside it where the forest can't be deeper."""
        parent, source = placement
        try:
            return await self._target.create(foreign, id, parent, source, self._warnings)
        except errors.BadInput as error:
            if not self._merge or parent is None or "depth" not in error.details:
                raise
        self._warnings.add("session", "placed beside the parent, at the greatest depth of the forest")
        grandparent = (await self._target.node(parent)).parent_id
        return await self._target.create(foreign, id, grandparent, source, self._warnings)

    async def fork_copied(self, session: ImportedSession, stored: SessionMeta) -> None:
        """Ends the comparison with the log that this session copies: it becomes a fork after the last equal event."""
        seq = session.log.next_seq
        point = ForkPoint(stored.id, seq) if seq else None
        await self.create(session, Placement(await self._parent(session.foreign), point))

    async def diverge(self, session: ImportedSession, stored: SessionMeta) -> None:
        """Continues in a fork of the stored log, which differs from here on."""
        if session.copies:
            await self.fork_copied(session, stored)
            return
        seq = session.log.next_seq
        point = ForkPoint(stored.id, seq) if seq else None
        session.id, found = await self._find_variant(session, point)
        if found is not None:
            session.log.id = self._result.ids[session.foreign.key] = found.id
            session.compare_with(found)
            return
        self._warnings.add("session", "differed from the stored one and became a fork of it")
        self._result.known -= session.foreign.key not in self._created
        await self.create(session, Placement(await self._parent(session.foreign), point))

    async def undo(self) -> list[str]:
        """Deletes the sessions created, newest first. Returns the ids of those that could not be deleted."""
        return [id for id in reversed(self._created.values()) if not await self._target.delete(id)]

    # Linking

    def _is_before_parent(self, foreign: ForeignSession) -> bool:
        """Whether the source names a parent that was not read yet, if it is there at all."""
        return foreign.parent is not None and not self._logs.has(foreign.parent)

    async def _parent(self, foreign: ForeignSession) -> str | None:
        """The id of the parent, as far as it is known yet; None for a root."""
        if foreign.parent is not None:
            if foreign.parent in self._result.refused:
                raise errors.BadInput(f"its parent, session {foreign.parent}, was refused")
            if self._logs.has(foreign.parent):
                return (await self._logs.log_of(foreign.parent)).id
        elif foreign.parent_id is not None:
            if await self._target.has(foreign.parent_id):
                return foreign.parent_id
            self._warnings.add("session", "lost its parent, which is not in this space")
        return self._target.parent_id

    async def link(self, foreign: ForeignSession) -> None:
        """Links a session that was created to its parent and refs, now that all sessions are known."""
        id = self._result.ids[foreign.key]
        if foreign.parent is not None and foreign.parent in self._result.ids:
            await self._try("parent", self._target.move(id, self._result.ids[foreign.parent]))
        elif foreign.parent is not None:
            self._warnings.add("session", "lost its parent, which is not in the file")
        for key in foreign.refs:
            if key in self._result.ids:
                await self._try("reference", self._target.add_ref(id, self._result.ids[key]))
            else:
                self._warnings.add("reference", "lost its target, which is not in the file")

    async def _try(self, noun: str, work: Awaitable[None]) -> None:
        """Moves or links a node. When merging, what the rules of the forest forbid is only a warning."""
        try:
            await work
        except (errors.Cycle, errors.InvalidRef):
            if not self._merge:
                raise
            self._warnings.add(noun, "refused by the forest and left out")

    async def complete(self, foreign: ForeignSession) -> None:
        """Sets the slots and the status of a session that was created, now that its log is complete."""
        await self._target.complete(foreign, self._result.ids[foreign.key])

    async def catch_up(self, existing: ExistingSession) -> None:
        """Adds what an existing session lacks: its import was interrupted, or what it names was imported later."""
        foreign = existing.foreign
        if foreign.key in self._created:
            return
        id = self._result.ids[foreign.key]
        await self._move_under_late_parent(foreign, id)
        if await self._target.catch_up(foreign, id, existing.head):
            for key in foreign.refs:
                if key in self._result.ids:
                    await self._try("reference", self._target.add_ref(id, self._result.ids[key]))

    async def _move_under_late_parent(self, foreign: ForeignSession, id: str) -> None:
        """Moves a session under its parent if that was created later, unless someone has moved the session since."""
        parent_id = foreign.parent_id if foreign.parent is None else self._result.ids.get(foreign.parent)
        parent = None if parent_id is None else await self._target.session(parent_id)
        if parent is None:
            return
        node = await self._target.node(id)
        came_first = node.session.created_at <= parent.created_at and node.document.moved_at_head is None
        if came_first and node.parent_id == self._target.parent_id:
            await self._try("parent", self._target.move(id, parent.id))


def _needs_completion(foreign: ForeignSession) -> bool:
    """Whether the session has anything that must wait until all sessions and its whole log are there."""
    return bool(foreign.refs) or foreign.archived or foreign.memory is not None or foreign.insight is not None


def _variants(base: str) -> Iterator[str]:
    """The id itself, then the id with a number appended: 2, 3, … without end."""
    yield base
    for number in itertools.count(2):
        yield f"{base[:_BASE_CHARACTERS]}.{number}"
