"""The sessions of an import: finding what there is of one, making it, and tying it to others."""

import itertools
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from storage import errors
from storage.lifecycle import DEFAULT_LABELS
from storage.session import MAX_LABEL, SessionMeta
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings
from storage.transfer.importing import ids as import_ids
from storage.transfer.importing.log import ImportedLog, Shift
from storage.transfer.importing.target import Point, Target

_BASE_CHARACTERS = 118
"""Of an id, so that with a number behind it is still one of at most 128."""


@dataclass(slots=True)
class Imported:
    """What an import has made.

    `ids` are the sessions by the key that each has in the source, those that were there already included. Of those
    made, `sessions` are sessions in the source's own count; `forks` share events of another, whether counted or not;
    `nodes` are neither. `known` is how many were there already, `events` how many were appended. `refused` says by its
    key why a session did not come in whole.
    """

    losses: ImportWarnings
    ids: dict[str, str] = field(default_factory=dict)
    sessions: int = 0
    forks: int = 0
    nodes: int = 0
    known: int = 0
    events: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Place(NamedTuple):
    """Where a session is to be made: under a parent or among the roots, and where it comes from."""

    parent_id: str | None
    source: Point | None


class Session:
    """A session of the source and its log. Until it is `settled`, it may have to be made, at `place`.

    `there` is the log to compare with, up to `limit`: its own one, or the one that it `copies` the beginning of.
    """

    def __init__(self, given: ForeignSession, log: ImportedLog) -> None:
        self.given = replace(given, events=())
        self.log = log
        self.id = given.id
        self.label = given.label
        self.labels: tuple[str, ...] = DEFAULT_LABELS if given.label is None else (given.label[:MAX_LABEL],)
        self.renamed = False
        self.settled = False
        self.place: Place | None = None
        self.there: SessionMeta | None = None
        self.limit = 0
        self.copies = False

    def rename(self, label: str) -> None:
        """Takes another label. `labels` are all that its source gave it: one that is none of them was given here."""
        self.label, self.renamed = label, True
        if label[:MAX_LABEL] not in self.labels:
            self.labels = (*self.labels, label[:MAX_LABEL])

    @property
    def siblings(self) -> str | None:
        """What those have in common that have one parent by their source's word."""
        return self.given.parent if self.given.parent is not None else self.given.parent_id

    @property
    def forks(self) -> bool:
        """Whether the source says what it shares with another of its sessions."""
        return self.given.source is not None and self.given.at_seq is not None

    def compare_with(self, there: SessionMeta, limit: int | None = None, *, copies: bool = False) -> None:
        """From now on what comes is compared with this log, up to the limit or its head."""
        self.there = there
        self.limit = there.head if limit is None else min(limit, there.head)
        self.copies = copies


class PutAway(NamedTuple):
    """A log that is not in use now: its id and how far it has come. `given` where there is more of it to compare."""

    id: str
    position: int
    shifts: tuple[Shift, ...]
    labels: tuple[str, ...]
    given: ForeignSession | None


class Known(NamedTuple):
    """A session that was there already, and its head when it was found."""

    given: ForeignSession
    head: int


class Logs(Protocol):
    """The logs of the sessions that were told so far."""

    async def known(self, key: str) -> ImportedLog | PutAway:
        """The log of a session told before, which must have an id by now. Raises BadInput if it was refused."""

    def is_told(self, key: str) -> bool:
        """Whether a session was told."""


class Places:
    """Finds or makes the sessions of one source, the places of other ones known by `logs`.

    `again`: a session may be there already; else all must be new. `unfinished` are those made that need all others,
    `known` those found that may lack something of what their source tells beside the events.
    """

    def __init__(self, target: Target, format: str, logs: Logs, done: Imported, *, again: bool) -> None:
        self.unfinished: list[ForeignSession] = []
        self.known: list[Known] = []
        self._target = target
        self._format = format
        self._logs = logs
        self._done = done
        self._losses = done.losses
        self._again = again
        self._made: dict[str, str] = {}
        self._claimed: set[str] = set()

    async def look_for(self, session: Session) -> Place | None:
        """Finds what there is of a session; where it is to be made, if there is nothing of it."""
        given = session.given
        source = await self._source(session)
        if self._again and (found := await self._found(session, source)) is not None:
            self._find(session, found)
            return None
        if given.repeats is not None:
            other = await self._target.session(given.repeats)
            if other is not None:
                session.compare_with(other, given.repeats_at_most, copies=True)
                return None
            self._losses.add("session", "lost the one whose events it begins with, which is not here")
        return Place(await self._parent(given), source)

    async def make(self, session: Session, place: Place) -> None:
        """Makes a session, unless another import has made it meanwhile: then that one is gone on with."""
        try:
            await self._make(session, place)
        except errors.DuplicateId:
            found = await self._found(session, place.source) if self._again else None
            if found is None:
                raise
            self._find(session, found)

    async def _source(self, session: Session) -> Point | None:
        """Where it comes from by its source's word, with the cut as it stands here."""
        given = session.given
        if given.source is None:
            return None
        log = await self._logs.known(given.source)
        if given.at_seq is None:
            return Point(log.id, None)
        session.log.shifts = tuple(shift for shift in log.shifts if shift.seq < given.at_seq)
        if given.label is None and (above := await self._target.session(log.id)) is not None:
            session.labels = (*session.labels, above.label)  # which a fork inherits
        return Point(log.id, session.log.here)

    async def _found(self, session: Session, source: Point | None) -> SessionMeta | None:
        """The session of an import before, if there is one; names the session where it has no id."""
        if session.id is None:
            return await self._found_by_content(session, source)
        found = await self._target.session(session.id)
        if found is None or not session.forks or await self._target.point(found.id) == source:
            return found
        session.id, found = await self._variant(session, source)
        return found

    async def _found_by_content(self, session: Session, source: Point | None) -> SessionMeta | None:
        bases = import_ids.of_content(self._format, session.given, source, session.log.waiting)
        for base in (*bases, import_ids.of_facts(self._format, session.given, source)):
            found = None if base in self._claimed else await self._target.session(base)
            if found is not None and (base in bases or await self._began_empty(session, found)):
                self._claimed.add(base)
                session.id = base
                return found
        session.id = next(id for id in _variants(bases[0]) if id not in self._claimed)
        self._claimed.add(session.id)
        return await self._target.session(session.id)

    async def _began_empty(self, session: Session, found: SessionMeta) -> bool:
        """Whether a log that had no events when it came may be this one."""
        return found.head == session.log.here or await session.log.agrees(found, import_ids.TOLD_BY)

    async def _variant(self, session: Session, source: Point | None) -> tuple[str, SessionMeta | None]:
        """Another session of its id, that parts there and goes on as it does; or a free id for one."""
        for id in itertools.islice(_variants(session.given.id or session.id or ""), 1, None):
            found = await self._target.session(id)
            if found is None:
                return id, None
            if id in self._claimed or await self._target.point(id) != source:
                continue
            if await session.log.agrees(found, 1):
                return id, found
        raise AssertionError("ids have no end")

    def _find(self, session: Session, found: SessionMeta) -> None:
        session.log.id = found.id
        session.compare_with(found)
        self._done.ids[session.given.key] = found.id
        self._done.known += 1
        given = session.given
        if self._is_late(given) or given.parent_id is not None or _has_more(given) or given.system_prompt is not None:
            self.known.append(Known(given, found.head))

    def _is_late(self, given: ForeignSession) -> bool:
        """Whether its parent is told after it, if at all."""
        return given.parent is not None and not self._logs.is_told(given.parent)

    async def _make(self, session: Session, place: Place) -> None:
        """Makes the session, without events of its own."""
        given = replace(session.given, label=session.label)
        shares = place.source is not None and place.source.seq is not None
        id = await self._make_under(place, given, session.id)
        session.log.id = session.id = id
        session.there, session.copies, session.renamed = None, False, False
        self._made[given.key] = self._done.ids[given.key] = id
        await self._target.furnish(given, id, forked=shares)
        self._done.forks += shares
        self._done.sessions += given.counted
        self._done.nodes += not given.counted and not shares
        late = self._is_late(given)
        if late or _has_more(given):
            self.unfinished.append(given if late else replace(given, parent=None))

    async def _make_under(self, place: Place, given: ForeignSession, id: str | None) -> str:
        """Makes it under its parent, or beside that where nothing can stand deeper."""
        parent, source = place
        try:
            return await self._target.make(given, id, parent, source, self._losses)
        except errors.BadInput as error:
            if not self._again or parent is None or "depth" not in error.details:
                raise
        self._losses.add("session", "put beside the parent, as nothing can stand deeper")
        return await self._target.make(given, id, (await self._target.node(parent)).parent_id, source, self._losses)

    async def leave(self, session: Session, there: SessionMeta) -> None:
        """Ends the comparison with the log that this one repeats: what it shares is what was the same."""
        here = session.log.here
        await self.make(session, Place(await self._parent(session.given), Point(there.id, here) if here else None))

    async def part(self, session: Session, there: SessionMeta) -> None:
        """Goes on beside a log that differs from here on."""
        if session.copies:
            await self.leave(session, there)
            return
        here = session.log.here
        point = Point(there.id, here) if here else None
        session.id, found = await self._variant(session, point)
        if found is not None:
            session.log.id = self._done.ids[session.given.key] = found.id
            session.compare_with(found)
            return
        self._losses.add("session", "differed from the one here and became a fork of it")
        self._done.known -= session.given.key not in self._made
        await self.make(session, Place(await self._parent(session.given), point))

    async def _parent(self, given: ForeignSession) -> str | None:
        """The id of the parent, as far as it is known yet; None for a root."""
        if given.parent is not None:
            if given.parent in self._done.refused:
                raise errors.BadInput(f"session {given.parent}, its parent, was refused")
            if self._logs.is_told(given.parent):
                return (await self._logs.known(given.parent)).id
        elif given.parent_id is not None:
            if await self._target.has(given.parent_id):
                return given.parent_id
            self._losses.add("session", "lost its parent, which is not here")
        return self._target.parent_id

    async def tie(self, given: ForeignSession) -> None:
        """Ties a session that was made to others of its source, now that all are known."""
        id = self._done.ids[given.key]
        if given.parent is not None and given.parent in self._done.ids:
            await self._tied("parent", self._target.move(id, self._done.ids[given.parent]))
        elif given.parent is not None:
            self._losses.add("session", "lost its parent, which is not in the file")
        for key in given.refs:
            if key in self._done.ids:
                await self._tied("reference", self._target.refer(id, self._done.ids[key]))
            else:
                self._losses.add("reference", "lost its end, which is not in the file")

    async def _tied(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except (errors.Cycle, errors.InvalidRef):
            if not self._again:
                raise
            self._losses.add(what, "refused by the forest left out")

    async def catch_up(self, known: Known) -> None:
        """Gives a session that was there what it lacks: its import was cut off, or what it names came later."""
        given = known.given
        if given.key in self._made:
            return
        id = self._done.ids[given.key]
        await self._adopted(given, id)
        if await self._target.catch_up(given, id, known.head):
            for key in given.refs:
                if key in self._done.ids:
                    await self._tied("reference", self._target.refer(id, self._done.ids[key]))

    async def _adopted(self, given: ForeignSession, id: str) -> None:
        """Puts a session under a parent that was made after it, unless it has been moved since."""
        parent_id = given.parent_id if given.parent is None else self._done.ids.get(given.parent)
        parent = None if parent_id is None else await self._target.session(parent_id)
        if parent is None:
            return
        node = await self._target.node(id)
        came_first = node.session.created_at <= parent.created_at and node.document.moved_at_head is None
        if came_first and node.parent_id == self._target.parent_id:
            await self._tied("parent", self._target.move(id, parent.id))

    async def complete(self, given: ForeignSession) -> None:
        await self._target.complete(given, self._done.ids[given.key])

    async def undo(self) -> list[str]:
        """Deletes what was made, the newest first; which of it could not be deleted."""
        return [id for id in reversed(self._made.values()) if not await self._target.delete(id)]


def _has_more(given: ForeignSession) -> bool:
    """Whether it has something that can only come when all sessions and its log are there."""
    return bool(given.refs) or given.archived or given.memory is not None or given.insight is not None


def _variants(base: str) -> Iterator[str]:
    """The id, and others made of it, without end."""
    yield base
    for number in itertools.count(2):
        yield f"{base[:_BASE_CHARACTERS]}.{number}"
