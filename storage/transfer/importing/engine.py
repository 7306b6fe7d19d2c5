"""Importing what a reader of logs tells: at once and whole, or step by step onto what is there already.

A step is a session, an event of one, or a label (`storage.transfer.formats.shared.foreign`). Events wait in an
`ImportedLog` until there are enough for a commit; then the `resolver` finds or creates their session, and they are
compared or appended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from storage import errors
from storage.store import Store
from storage.transfer.formats.shared.foreign import (
    ForeignDocument,
    ForeignEvent,
    ForeignLabel,
    ForeignSession,
    ImportWarnings,
    Step,
)
from storage.transfer.importing import fitting
from storage.transfer.importing.log import ImportedLog
from storage.transfer.importing.resolver import Imported, Places, PutAway, Session
from storage.transfer.importing.target import Target

OPEN_LOGS = 64
"""Logs of which events wait, or that were added to lately."""
WAITING_WEIGHT = 8 * 1024 * 1024
"""Characters of events that wait, over all logs."""


class NotYet(Exception):
    """The sessions `needed`, of other sources, must be there before the session `id`; nothing of the step was taken."""

    def __init__(self, needed: frozenset[str], id: str | None) -> None:
        super().__init__(needed, id)
        self.needed = needed
        self.id = id


async def has_to_wait(target: Target, given: ForeignSession) -> NotYet | None:
    """What a session that is not there yet has to wait for, if sessions of other sources that it needs are missing."""
    if given.id is not None and await target.has(given.id):
        return None
    missing = set()
    for id, events in ((given.parent_id, 0), (given.repeats, given.repeats_at_most or 0)):
        there = None if id is None else await target.session(id)
        if id is not None and (there is None or there.head < events):
            missing.add(id)
    return NotYet(frozenset(missing), given.id) if missing else None


async def import_reading(
    store: Store, space: str, reading: ForeignDocument, *, parent_id: str | None = None
) -> Imported:
    """Makes the sessions of a reading, its roots under `parent_id` if one is given, else as roots: all, or none.

    When something is refused (an id that is taken, an event that breaks a rule) or the import is cancelled, what it
    has made is deleted again; the error that is raised is the refusal's, with the session's key in its message. An
    import that is killed leaves what it has made.
    """
    run = Import(Target(store, space, parent_id=parent_id), reading.format, ImportWarnings())
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


class Import:
    """Takes the steps of one source into a space.

    `again`: what is there already is compared and gone on with, what differs from it becomes a fork, what a log does
    not take costs a loss, and what is refused of a session only that session; else all sessions must be new, and what
    is refused is raised. `defer`: raises NotYet for sessions of other sources that are named but not there; else it
    does without them.
    """

    def __init__(
        self, target: Target, format: str, losses: ImportWarnings, *, again: bool = False, defer: bool = False
    ) -> None:
        self.done = Imported(losses)
        self._target = target
        self._again = again
        self._defer = defer
        self._open: dict[str, Session] = {}
        self._put_away: dict[str, PutAway] = {}
        self._places = Places(target, format, self, self.done, again=again)
        self._told: list[str] = []

    async def take(self, steps: Sequence[Step]) -> None:
        """Takes steps in order. Raises what the store refuses, naming the session's key; NotYet."""
        for step in steps:
            if isinstance(step, ForeignSession):
                await self._begin(step)
            elif step.key not in self.done.refused:
                session = self._open.get(step.key) or await self._taken_up(step.key)
                if isinstance(step, ForeignLabel):
                    session.rename(step.label)
                elif session.log.add(step):
                    await self._settle_in_order(session)

    async def settle(self) -> None:
        """Brings in all that waits. It stays then: what is named later and not there is not waited for."""
        await self._settle_all(ended=False)
        self._defer = False

    async def finish(self) -> Imported:
        """Brings in all that waits, and what needs all sessions: parents told late, references, slots, archiving."""
        await self._settle_all(ended=True)
        for work in (self._places.tie, self._places.complete):
            for given in self._places.unfinished:
                if given.key not in self.done.refused:
                    await self._named(given.key, work(given))
        for known in self._places.known:
            if known.given.key not in self.done.refused:
                await self._named(known.given.key, self._places.catch_up(known))
        self._places.unfinished.clear()
        self._places.known.clear()
        self.done.ids = {key: self.done.ids[key] for key in self._told if key in self.done.ids}
        self.done.warnings = self.done.losses.messages()
        return self.done

    async def undo(self) -> list[str]:
        """Deletes what was made, the newest first; which of it could not be deleted."""
        return await self._places.undo()

    # Which logs are open

    async def _begin(self, given: ForeignSession) -> None:
        if self._defer and (not_yet := await has_to_wait(self._target, given)) is not None:
            raise not_yet
        if len(self._open) >= OPEN_LOGS or sum(each.log.weight for each in self._open.values()) > WAITING_WEIGHT:
            await self._settle_all(ended=False)
        self._told.append(given.key)
        told = replace(given, events=())  # which wait in its log alone
        self._opened(fitting.session_fitted(told, self.done.losses) if self._again else told)
        await self.take([ForeignEvent(given.key, event) for event in given.events])

    def _opened(self, given: ForeignSession) -> Session:
        start = given.at_seq or 0 if given.source is not None else 0
        session = Session(given, ImportedLog(self._target, self.done.losses, start=start, lenient=self._again))
        self._open[given.key] = session
        return session

    async def _taken_up(self, key: str) -> Session:
        """A log that was put away, to go on where it was."""
        if len(self._open) >= OPEN_LOGS:
            await self._settle_all(ended=False)
        put = self._put_away.pop(key)
        session = self._opened(put.given or ForeignSession(key, None))
        session.id = put.id
        session.log.id, session.log.position, session.log.shifts = put.id, put.position, put.shifts
        session.labels = put.labels
        session.settled = True
        there = await self._target.session(put.id) if put.given is not None else None
        if there is not None:
            session.compare_with(there)
        return session

    # Settling

    async def _settle_in_order(self, session: Session) -> None:
        """Brings in a log of which enough waits; sessions are made in the order in which they were told."""
        if session.settled:
            await self._named(session.given.key, self._settle(session))
        else:
            await self._settle_all(ended=False)

    async def _settle_all(self, *, ended: bool) -> None:
        """Brings in all logs, those side by side that do not need each other, and puts them away."""
        waiting = dict(self._open)
        while waiting:
            ready = _ready(waiting, lambda each: each.given.key if each.id is None and not self._again else each.id)
            await self._side_by_side(ready, self._look)
            taken = [each for each in ready if each.given.key not in self.done.refused]
            await self._side_by_side(taken, lambda each: self._settle(each, ended=ended))
            for each in ready:
                del waiting[each.given.key]
        for key, session in list(self._open.items()):
            if session.settled and not session.copies:
                log = session.log
                given = None if session.there is None else session.given
                self._put_away[key] = PutAway(log.id, log.position, log.shifts, session.labels, given)
                del self._open[key]

    async def _side_by_side(self, sessions: Sequence[Session], work: Callable[[Session], Awaitable[None]]) -> None:
        """Does the work of each, begun in their order; when all have ended, raises the first error."""
        named = (self._named(each.given.key, work(each)) for each in sessions)
        for result in await asyncio.gather(*named, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

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

    async def _look(self, session: Session) -> None:
        if not session.settled:
            session.place = await self._places.look_for(session)

    async def _settle(self, session: Session, *, ended: bool = False) -> None:
        """Compares or appends what waits. `ended`: the source has no more of it.

        That a session is made comes first, so that siblings of which this is begun in order are made in order.
        """
        if session.place is not None:
            await self._places.make(session, session.place)
            session.place = None
        session.settled = True
        log = session.log
        while log.waiting or (ended and session.copies):
            if session.there is None:
                await self._write(session)
            elif not await log.pass_over(session.there, session.limit, own=not session.copies):
                await self._places.part(session, session.there)
            elif session.copies and (log.waiting or ended):
                await self._places.leave(session, session.there)
            elif log.waiting:
                session.there = None
        if session.renamed and not session.copies and session.label is not None:
            await self._target.rename(log.id, session.label, session.labels)
            session.renamed = False

    async def _write(self, session: Session) -> None:
        """Appends what waits; where another one has appended meanwhile, it is compared with that first."""
        log = session.log
        before = log.written
        try:
            await log.write()
        except (errors.Conflict, errors.Archived) as error:
            there = await self._target.session(log.id)
            if not self._again or there is None:
                raise
            if isinstance(error, errors.Conflict) or there.head > log.here:
                session.compare_with(there)
            elif session.given.archived:  # by its source too, and so again in the end
                await self._target.restore(log.id)
            else:
                raise
        finally:
            self.done.events += log.written - before

    async def known(self, key: str) -> ImportedLog | PutAway:
        """The log of a session told before, which must have an id by now."""
        if key in self.done.refused:
            raise errors.BadInput(f"session {key}, which it comes from, was refused")
        session = self._open.get(key)
        if session is None:
            return self._put_away[key]
        if session.copies and session.there is not None:
            await self._places.leave(session, session.there)
        return session.log

    def is_told(self, key: str) -> bool:
        """Whether a session was told."""
        return key in self._open or key in self._put_away


def _ready(waiting: dict[str, Session], name: Callable[[Session], str | None]) -> list[Session]:
    """Those that need none of the others, that can't be one and the same, and whose elder siblings are ready too.

    Two of one `name` can be one and the same. Where all wait for each other, the order of siblings gives way.
    """
    ready: dict[str | None, Session] = {}
    independent: dict[str | None, Session] = {}
    held: set[str | None] = set()
    for each in waiting.values():
        needed = {each.given.parent, each.given.source} & waiting.keys() - {each.given.key}
        if not needed:
            independent.setdefault(name(each), each)
        if not needed and name(each) not in ready and (each.settled or each.siblings not in held):
            ready[name(each)] = each
        elif not each.settled:
            held.add(each.siblings)
    return list((ready or independent).values()) or [next(iter(waiting.values()))]
