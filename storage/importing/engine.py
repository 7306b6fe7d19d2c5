"""Importing what a reader of logs tells: at once and whole, or step by step onto what is there already.

A step is a session, an event of one, or a label (`storage.formats.foreign`). Events wait in an `ImportedLog` until
there are enough for a commit; then the session they go to is found or made, and they are compared or appended.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from storage import errors
from storage.formats.foreign import ForeignSession, Logged, Losses, Reading, Renamed, Step
from storage.importing import fitting
from storage.importing import ids as import_ids
from storage.importing.log import ImportedLog, Shift
from storage.importing.target import Point, Target
from storage.session import SessionMeta
from storage.store import Store

OPEN_LOGS = 64
"""Logs of which events wait, or that were added to lately."""
WAITING_WEIGHT = 8 * 1024 * 1024
"""Characters of events that wait, over all logs."""


class NotYet(Exception):
    """A session of another source is needed first; nothing of the step was taken."""


@dataclass(slots=True)
class Imported:
    """What an import has made.

    `ids` are the sessions by the key that each has in the source, those that were there already included. Of those
    made, `sessions` are sessions in the source's own count; `forks` share events of another, whether counted or not;
    `nodes` are neither. `known` is how many were there already, `events` how many were appended. `refused` says by its
    key why a session did not come in whole.
    """

    losses: Losses
    ids: dict[str, str] = field(default_factory=dict)
    sessions: int = 0
    forks: int = 0
    nodes: int = 0
    known: int = 0
    events: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


async def import_reading(store: Store, space: str, reading: Reading, *, parent_id: str | None = None) -> Imported:
    """Makes the sessions of a reading, its roots under `parent_id` if one is given, else as roots: all, or none.

    When something is refused (an id that is taken, an event that breaks a rule) or the import is cancelled, what it
    has made is deleted again; the error that is raised is the refusal's, with the session's key in its message. An
    import that is killed leaves what it has made.
    """
    run = Import(Target(store, space, parent_id=parent_id), reading.format, Losses())
    try:
        await run.take(reading.sessions)
        imported = await run.finish()
    except BaseException as error:
        left = await run.undo()
        if left and isinstance(error, errors.SapwoodError):
            error.message += f"; could not be deleted again, so delete them by hand: {', '.join(left)}"
            error.args = (error.message,)
        raise
    imported.warnings = [*reading.warnings, *imported.warnings]
    return imported


class _PutAway(NamedTuple):
    """A log that is not in use now: its id and how far it has come. `given` where there is more of it to compare."""

    id: str
    position: int
    shifts: tuple[Shift, ...]
    given: ForeignSession | None


class _Session:
    """A session of the source and its log. Until it is `settled`, nobody has looked what of it is there.

    `there` is the log to compare with, up to `limit`: its own one, or the one that it `copies` the beginning of.
    """

    def __init__(self, given: ForeignSession, log: ImportedLog) -> None:
        self.given = replace(given, events=())
        self.log = log
        self.id = given.id
        self.label = given.label
        self.renamed = False
        self.settled = False
        self.there: SessionMeta | None = None
        self.limit = 0
        self.copies = False

    @property
    def forks(self) -> bool:
        """Whether the source says what it shares with another of its sessions."""
        return self.given.source is not None and self.given.at_seq is not None

    def compare_with(self, there: SessionMeta, limit: int | None = None, *, copies: bool = False) -> None:
        self.there = there
        self.limit = there.head if limit is None else min(limit, there.head)
        self.copies = copies


class Import:
    """Takes the steps of one source into a space.

    `again`: what is there already is compared and gone on with, what differs from it becomes a fork, what a log does
    not take costs a loss, and what is refused of a session only that session; else all sessions must be new, and what
    is refused is raised. `defer`: raises NotYet for sessions of other sources that are named but not there; else it
    does without them.
    """

    def __init__(
        self, target: Target, format: str, losses: Losses, *, again: bool = False, defer: bool = False
    ) -> None:
        self.losses = losses
        self.done = Imported(losses)
        self._target = target
        self._format = format
        self._again = again
        self._defer = defer
        self._open: dict[str, _Session] = {}
        self._put_away: dict[str, _PutAway] = {}
        self._made: dict[str, str] = {}
        self._claimed: set[str] = set()
        self._unfinished: list[ForeignSession] = []
        self._told: list[str] = []

    async def take(self, steps: Sequence[Step]) -> None:
        """Takes steps in order. Raises what the store refuses, naming the session's key; NotYet."""
        for step in steps:
            if isinstance(step, ForeignSession):
                await self._begin(step)
            elif step.key not in self.done.refused:
                session = self._open.get(step.key) or await self._taken_up(step.key)
                if isinstance(step, Renamed):
                    session.label, session.renamed = step.label, True
                elif session.log.add(step):
                    await self._settle_in_order(session)

    async def settle(self) -> None:
        """Brings in all that waits. It stays then: what is named later and not there is not waited for."""
        await self._settle_all(ended=False)
        self._defer = False

    async def finish(self) -> Imported:
        """Brings in all that waits, and what needs all sessions: parents told late, references, slots, archiving."""
        await self._settle_all(ended=True)
        for work in (self._tie, self._complete):
            for given in self._unfinished:
                if given.key not in self.done.refused:
                    await self._named(given.key, work(given))
        self._unfinished.clear()
        self.done.ids = {key: self.done.ids[key] for key in self._told if key in self.done.ids}
        self.done.warnings = self.losses.warnings()
        return self.done

    async def undo(self) -> list[str]:
        """Deletes what was made, the newest first; which of it could not be deleted."""
        return [id for id in reversed(self._made.values()) if not await self._target.delete(id)]

    # Which logs are open

    async def _begin(self, given: ForeignSession) -> None:
        if self._defer:
            await self._check_elsewhere(given)
        if len(self._open) >= OPEN_LOGS or sum(each.log.weight for each in self._open.values()) > WAITING_WEIGHT:
            await self._settle_all(ended=False)
        self._told.append(given.key)
        self._opened(fitting.session_fitted(given, self.losses) if self._again else given)
        await self.take([Logged(given.key, event) for event in given.events])

    async def _check_elsewhere(self, given: ForeignSession) -> None:
        if given.id is not None and await self._target.has(given.id):
            return
        for id in (given.parent_id, given.repeats):
            if id is not None and not await self._target.has(id):
                raise NotYet(id)

    def _opened(self, given: ForeignSession) -> _Session:
        start = given.at_seq or 0 if given.source is not None else 0
        session = _Session(given, ImportedLog(self._target, self.losses, start=start, lenient=self._again))
        self._open[given.key] = session
        return session

    async def _taken_up(self, key: str) -> _Session:
        """A log that was put away, to go on where it was."""
        if len(self._open) >= OPEN_LOGS:
            await self._settle_all(ended=False)
        put = self._put_away.pop(key)
        session = self._opened(put.given or ForeignSession(key, None))
        session.id = put.id
        session.log.id, session.log.position, session.log.shifts = put.id, put.position, put.shifts
        session.settled = True
        there = await self._target.session(put.id) if put.given is not None else None
        if there is not None:
            session.compare_with(there)
        return session

    # Settling

    async def _settle_in_order(self, session: _Session) -> None:
        """Brings in a log of which enough waits; sessions are made in the order in which they were told."""
        if session.settled:
            await self._named(session.given.key, self._settle(session))
        else:
            await self._settle_all(ended=False)

    async def _settle_all(self, *, ended: bool) -> None:
        """Brings in all logs, those side by side that do not need each other, and puts them away."""
        waiting = dict(self._open)
        while waiting:
            ready = self._ready(waiting)
            work = (self._named(each.given.key, self._settle(each, ended=ended)) for each in ready)
            for result in await asyncio.gather(*work, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
            for each in ready:
                del waiting[each.given.key]
        for key, session in list(self._open.items()):
            if session.settled and not session.copies:
                log = session.log
                given = None if session.there is None else session.given
                self._put_away[key] = _PutAway(log.id, log.position, log.shifts, given)
                del self._open[key]

    def _ready(self, waiting: dict[str, _Session]) -> list[_Session]:
        """Those that need none of the others, and that can't be one and the same."""
        ready: dict[str | None, _Session] = {}
        for each in waiting.values():
            if not {each.given.parent, each.given.source} & waiting.keys() - {each.given.key}:
                ready.setdefault(each.id if each.id is not None or self._again else each.given.key, each)
        return list(ready.values()) or [next(iter(waiting.values()))]

    async def _named(self, key: str, work: Awaitable[None]) -> None:
        """Does the work. A refusal gets the session's key into its message; it ends the import, or only the session."""
        try:
            await work
        except errors.SapwoodError as error:
            if not self._again or isinstance(error, errors.Unavailable):
                raise type(error)(f"session {key}: {error.message}", **error.details) from error
            self.done.refused[key] = error.message
            self._open.pop(key, None)
            self._put_away.pop(key, None)

    async def _settle(self, session: _Session, *, ended: bool = False) -> None:
        """Compares or appends what waits. `ended`: the source has no more of it."""
        if not session.settled:
            await self._place(session)
            session.settled = True
        log = session.log
        while log.waiting or (ended and session.copies):
            if session.there is None:
                await self._write(session)
            elif not await log.pass_over(session.there, session.limit, own=not session.copies):
                await self._part(session, session.there)
            elif session.copies and (log.waiting or ended):
                await self._leave(session, session.there)
            elif log.waiting:
                session.there = None
        if session.renamed and session.there is None and session.label is not None:
            await self._target.rename(log.id, session.label)
            session.renamed = False

    async def _write(self, session: _Session) -> None:
        """Appends what waits; where another one has appended meanwhile, it is compared with that first."""
        log = session.log
        before = log.written
        try:
            await log.write()
        except errors.Conflict:
            there = await self._target.session(log.id)
            if not self._again or there is None:
                raise
            session.compare_with(there)
        finally:
            self.done.events += log.written - before

    # Finding and making sessions

    async def _place(self, session: _Session) -> None:
        """Finds what there is of a session, or makes it."""
        given = session.given
        source = await self._source(session)
        if self._again and (found := await self._found(session, source)) is not None:
            self._find(session, found)
            return
        if given.repeats is not None:
            other = await self._target.session(given.repeats)
            if other is not None:
                session.compare_with(other, given.repeats_at_most, copies=True)
                return
            self.losses.add("session", "lost the one whose events it begins with, which is not here")
        await self._make(session, source)

    async def _source(self, session: _Session) -> Point | None:
        """Where it comes from by its source's word, with the cut as it stands here."""
        given = session.given
        if given.source is None:
            return None
        log = await self._known_log(given.source)
        if given.at_seq is None:
            return Point(log.id, None)
        session.log.shifts = tuple(shift for shift in log.shifts if shift.seq < given.at_seq)
        return Point(log.id, session.log.here)

    async def _known_log(self, key: str) -> ImportedLog | _PutAway:
        """The log of a session told before, which must have an id by now."""
        if key in self.done.refused:
            raise errors.BadInput(f"session {key}, which it comes from, was refused")
        session = self._open.get(key)
        if session is None:
            return self._put_away[key]
        if session.copies and session.there is not None:
            await self._leave(session, session.there)
        return session.log

    async def _found(self, session: _Session, source: Point | None) -> SessionMeta | None:
        """The session of an import before, if there is one; names the session where it has no id."""
        if session.id is None:
            return await self._found_by_content(session, source)
        found = await self._target.session(session.id)
        if found is None or not session.forks or await self._target.point(found.id) == source:
            return found
        session.id, found = await self._variant(session, source)
        return found

    async def _found_by_content(self, session: _Session, source: Point | None) -> SessionMeta | None:
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

    async def _began_empty(self, session: _Session, found: SessionMeta) -> bool:
        """Whether a log that had no events when it came may be this one."""
        return found.head == session.log.here or await session.log.agrees(found, import_ids.TOLD_BY)

    async def _variant(self, session: _Session, source: Point | None) -> tuple[str, SessionMeta | None]:
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

    def _find(self, session: _Session, found: SessionMeta) -> None:
        session.log.id = found.id
        session.compare_with(found)
        self.done.ids[session.given.key] = found.id
        self.done.known += 1

    async def _make(self, session: _Session, source: Point | None) -> None:
        """Makes the session, without events of its own."""
        given = replace(session.given, label=session.label)
        parent = await self._parent(given)
        shares = source is not None and source.seq is not None
        id = await self._target.make(given, session.id, parent, source, self.losses)
        session.log.id = session.id = id
        session.there, session.copies, session.renamed = None, False, False
        self._made[given.key] = self.done.ids[given.key] = id
        await self._target.furnish(given, id, forked=shares)
        self.done.forks += shares
        self.done.sessions += given.counted
        self.done.nodes += not given.counted and not shares
        late = given.parent is not None and not self._is_told(given.parent)
        if late or given.refs or given.archived or given.memory is not None or given.insight is not None:
            self._unfinished.append(given if late else replace(given, parent=None))

    async def _leave(self, session: _Session, there: SessionMeta) -> None:
        """Ends the comparison with the log that this one repeats: what it shares is what was the same."""
        here = session.log.here
        await self._make(session, Point(there.id, here) if here else None)

    async def _part(self, session: _Session, there: SessionMeta) -> None:
        """Goes on beside a log that differs from here on."""
        if session.copies:
            await self._leave(session, there)
            return
        here = session.log.here
        point = Point(there.id, here) if here else None
        session.id, found = await self._variant(session, point)
        if found is not None:
            session.log.id = self.done.ids[session.given.key] = found.id
            session.compare_with(found)
            return
        self.losses.add("session", "differed from the one here and became a fork of it")
        self.done.known -= session.given.key not in self._made
        await self._make(session, point)

    async def _parent(self, given: ForeignSession) -> str | None:
        """The id of the parent, as far as it is known yet; None for a root."""
        if given.parent is not None:
            if given.parent in self.done.refused:
                raise errors.BadInput(f"session {given.parent}, its parent, was refused")
            if self._is_told(given.parent):
                return (await self._known_log(given.parent)).id
        elif given.parent_id is not None:
            if await self._target.has(given.parent_id):
                return given.parent_id
            self.losses.add("session", "lost its parent, which is not here")
        return self._target.parent_id

    def _is_told(self, key: str) -> bool:
        return key in self._open or key in self._put_away

    # Finishing

    async def _tie(self, given: ForeignSession) -> None:
        """Ties a session that was made to others of its source, now that all are known."""
        id = self.done.ids[given.key]
        if given.parent is not None and given.parent in self.done.ids:
            await self._tied("parent", self._target.move(id, self.done.ids[given.parent]))
        elif given.parent is not None:
            self.losses.add("session", "lost its parent, which is not in the file")
        for key in given.refs:
            if key in self.done.ids:
                await self._tied("reference", self._target.refer(id, self.done.ids[key]))
            else:
                self.losses.add("reference", "lost its end, which is not in the file")

    async def _tied(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except (errors.Cycle, errors.InvalidRef):
            if not self._again:
                raise
            self.losses.add(what, "refused by the forest left out")

    async def _complete(self, given: ForeignSession) -> None:
        await self._target.complete(given, self.done.ids[given.key])


def _variants(base: str) -> Iterator[str]:
    """The id, and others made of it, without end."""
    yield base
    for number in itertools.count(2):
        yield f"{base[:118]}.{number}"
