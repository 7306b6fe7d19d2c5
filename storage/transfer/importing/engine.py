"""Importing the steps of a source: all or nothing, or merged step by step into what a space holds.

A step is a session, an event of one, or a label (`storage.transfer.formats.shared.foreign`). Events wait in an
`ImportedLog` until there are enough for a commit; then the `resolver` finds or creates their session, and the events
are compared or appended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from typing_extensions import override

from storage import errors
from storage.log.append import now
from storage.store import Store
from storage.transfer.formats.shared.foreign import (
    ForeignDocument,
    ForeignLabel,
    ForeignSession,
    ImportWarnings,
    Step,
)
from storage.transfer.importing import fitting
from storage.transfer.importing.log import ImportedLog
from storage.transfer.importing.resolver import Logs, Resolver
from storage.transfer.importing.result import ImportResult
from storage.transfer.importing.session import ImportedSession, SuspendedLog
from storage.transfer.importing.target import Target
from storage.transfer.importing.timeline import Timeline

OPEN_LOGS = 64
"""How many logs may be open: with events pending, or recently added to."""
PENDING_WEIGHT = 8 * 1024 * 1024
"""How many characters of events may be pending, over all logs."""


class MissingSessions(Exception):
    """The sessions `needed`, of other sources, must be imported before the session `id`. Its step was not applied."""

    def __init__(self, needed: frozenset[str], id: str | None) -> None:
        super().__init__(needed, id)
        self.needed = needed
        self.id = id


async def missing_sessions(target: Target, session: ForeignSession) -> MissingSessions | None:
    """The sessions of other sources that this one needs and that are not there yet; None if it can be imported."""
    if session.id is not None and await target.has(session.id):
        return None
    missing = set()
    for id, events in ((session.parent_id, 0), (session.repeats, session.repeats_at_most or 0)):
        stored = None if id is None else await target.session(id)
        if id is not None and (stored is None or stored.head < events):
            missing.add(id)
    return MissingSessions(frozenset(missing), session.id) if missing else None


async def import_reading(
    store: Store, space: str, reading: ForeignDocument, *, parent_id: str | None = None
) -> ImportResult:
    """Creates all sessions of a reading or none. Its roots become children of `parent_id` if one is given.

    When something is refused (an id that is taken, an event that breaks a rule) or the import is cancelled, the
    sessions created so far are deleted again. The refusal is raised, with the session's key in its message. An import
    that is killed leaves what it has created.
    """
    run = Import(Target(store, space, parent_id=parent_id), reading.format, ImportWarnings())
    try:
        await run.apply(reading.sessions)
        result = await run.finish()
    except BaseException as error:
        left = await run.undo()
        if left and isinstance(error, errors.SapwoodError):
            error.message += f"; these sessions could not be deleted again, delete them by hand: {', '.join(left)}"
            error.args = (error.message,)
        raise
    result.warnings = [*reading.warnings, *result.warnings]
    return result


class Import(Logs):
    """Imports the steps of one source into a space.

    `merge`: a session that already exists is compared and continued; one that differs becomes a fork; an event that a
    log refuses costs a warning, and a session that is refused costs only itself. Otherwise all sessions must be new,
    and a refusal is raised. `defer`: raises MissingSessions for sessions of other sources that are named but not there;
    otherwise it does without them.

    Events without a time get that of a neighbor. In a log without times they all get the time of the import, or of the
    last `flush`: events of one time have no durations.
    """

    def __init__(
        self, target: Target, format: str, warnings: ImportWarnings, *, merge: bool = False, defer: bool = False
    ) -> None:
        self.result = ImportResult(warnings)
        self._target = target
        self._merge = merge
        self._defer = defer
        self._open: dict[str, ImportedSession] = {}
        self._suspended: dict[str, SuspendedLog] = {}
        self._resolver = Resolver(target, format, self, self.result, merge=merge)
        self._keys: list[str] = []
        self._timeline = Timeline()
        self._recorded_at = now()

    async def apply(self, steps: Sequence[Step]) -> None:
        """Imports steps in order. Raises what the store refuses, naming the session's key, and MissingSessions."""
        await self._apply(self._timeline.add(steps))

    async def _apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, ForeignSession):
                await self._begin(step)
            elif step.key not in self.result.refused:
                session = self._open.get(step.key) or await self._resume(step.key)
                if isinstance(step, ForeignLabel):
                    session.rename(step.label)
                elif session.log.add(step):
                    await self._flush_in_order(session)

    async def flush(self) -> None:
        """Writes all pending events. From then on, `defer` no longer holds: missing sessions are done without."""
        await self._apply(self._timeline.settle())
        await self._flush_all(ended=False)
        self._defer = False
        self._recorded_at = now()

    async def finish(self) -> ImportResult:
        """Writes all pending events, then what needs all sessions: late parents, refs, slots and archiving."""
        await self._apply(self._timeline.settle())
        await self._flush_all(ended=True)
        for work in (self._resolver.link, self._resolver.complete):
            for foreign in self._resolver.incomplete:
                if foreign.key not in self.result.refused:
                    await self._attempt(foreign.key, work(foreign))
        for existing in self._resolver.existing:
            if existing.foreign.key not in self.result.refused:
                await self._attempt(existing.foreign.key, self._resolver.catch_up(existing))
        self._resolver.incomplete.clear()
        self._resolver.existing.clear()
        self.result.ids = {key: self.result.ids[key] for key in self._keys if key in self.result.ids}
        self.result.warnings = self.result.warning_counts.messages()
        return self.result

    async def undo(self) -> list[str]:
        """Deletes the sessions created, newest first. Returns the ids of those that could not be deleted."""
        return await self._resolver.undo()

    # Which logs are open

    async def _begin(self, foreign: ForeignSession) -> None:
        if self._defer and (missing := await missing_sessions(self._target, foreign)) is not None:
            raise missing
        if len(self._open) >= OPEN_LOGS or sum(each.log.weight for each in self._open.values()) > PENDING_WEIGHT:
            await self._flush_all(ended=False)
        self._keys.append(foreign.key)
        self._open_log(fitting.fit_session(foreign, self.result.warning_counts) if self._merge else foreign)

    def _open_log(self, foreign: ForeignSession) -> ImportedSession:
        start = foreign.at_seq or 0 if foreign.source is not None else 0
        log = ImportedLog(
            self._target,
            self.result.warning_counts,
            start=start,
            lenient=self._merge,
            recorded_at=lambda: self._recorded_at,
        )
        session = self._open[foreign.key] = ImportedSession(foreign, log)
        return session

    async def _resume(self, key: str) -> ImportedSession:
        """Opens a suspended log again, where it was."""
        if len(self._open) >= OPEN_LOGS:
            await self._flush_all(ended=False)
        suspended = self._suspended.pop(key)
        session = self._open_log(suspended.foreign or ForeignSession(key, None))
        session.id = suspended.id
        session.log.id, session.log.position, session.log.shifts = suspended.id, suspended.position, suspended.shifts
        session.labels = suspended.labels
        session.resolved = True
        stored = await self._target.session(suspended.id) if suspended.foreign is not None else None
        if stored is not None:
            session.compare_with(stored)
        return session

    # Writing pending events

    async def _flush_in_order(self, session: ImportedSession) -> None:
        """Writes a log that is due. If its session is not created yet, writes all logs, to keep sessions in order."""
        if session.resolved:
            await self._attempt(session.foreign.key, self._flush(session))
        else:
            await self._flush_all(ended=False)

    async def _flush_all(self, *, ended: bool) -> None:
        """Writes all open logs, concurrently where they don't depend on each other, and suspends them."""
        waiting = dict(self._open)
        while waiting:
            ready = _ready(waiting, lambda each: each.foreign.key if each.id is None and not self._merge else each.id)
            await self._concurrently(ready, self._resolve)
            accepted = [each for each in ready if each.foreign.key not in self.result.refused]
            await self._concurrently(accepted, lambda each: self._flush(each, ended=ended))
            for each in ready:
                del waiting[each.foreign.key]
        for key, session in list(self._open.items()):
            if session.resolved and not session.copies:
                log = session.log
                foreign = None if session.stored is None else session.foreign
                self._suspended[key] = SuspendedLog(log.id, log.position, log.shifts, session.labels, foreign)
                del self._open[key]

    async def _concurrently(
        self, sessions: Sequence[ImportedSession], work: Callable[[ImportedSession], Awaitable[None]]
    ) -> None:
        """Starts the work for each session in order. When all have ended, raises the first error."""
        attempts = (self._attempt(each.foreign.key, work(each)) for each in sessions)
        for result in await asyncio.gather(*attempts, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _attempt(self, key: str, work: Awaitable[None]) -> None:
        """Does the work for a session. When merging, a refusal is recorded; otherwise it is raised with the key."""
        try:
            await work
        except errors.SapwoodError as error:
            if not self._merge or isinstance(error, errors.Unavailable):
                raise type(error)(f"session {key}: {error.message}", **error.details) from error
            self.result.refused[key] = error.message
            self._open.pop(key, None)
            self._suspended.pop(key, None)

    async def _resolve(self, session: ImportedSession) -> None:
        if not session.resolved:
            session.placement = await self._resolver.resolve(session)

    async def _flush(self, session: ImportedSession, *, ended: bool = False) -> None:
        """Compares or appends the pending events. `ended`: the source has no more of them.

        Creates the session first, so that siblings whose flushes start in order are created in order.
        """
        if session.placement is not None:
            await self._resolver.create(session, session.placement)
            session.placement = None
        session.resolved = True
        log = session.log
        while log.pending or (ended and session.copies):
            if session.stored is None:
                await self._write(session)
            elif not await log.skip_stored(session.stored, session.limit, own=not session.copies):
                await self._resolver.diverge(session, session.stored)
            elif session.copies and (log.pending or ended):
                await self._resolver.fork_copied(session, session.stored)
            elif log.pending:
                session.stored = None
        if session.renamed and not session.copies and session.label is not None:
            await self._target.rename(log.id, session.label, session.labels)
            session.renamed = False

    async def _write(self, session: ImportedSession) -> None:
        """Appends the pending events. If another writer has appended meanwhile, compares with that first."""
        log = session.log
        before = log.written
        try:
            await log.write()
        except (errors.Conflict, errors.Archived) as error:
            stored = await self._target.session(log.id)
            if not self._merge or stored is None:
                raise
            if isinstance(error, errors.Conflict) or stored.head > log.next_seq:
                session.compare_with(stored)
            elif session.foreign.archived:  # its source archived it too, so it is archived again at the end
                await self._target.restore(log.id)
            else:
                raise
        finally:
            self.result.events += log.written - before

    # Logs, for the resolver

    @override
    async def log_of(self, key: str) -> ImportedLog | SuspendedLog:
        if key in self.result.refused:
            raise errors.BadInput(f"its source, session {key}, was refused")
        session = self._open.get(key)
        if session is None:
            return self._suspended[key]
        if session.copies and session.stored is not None:
            await self._resolver.fork_copied(session, session.stored)
        return session.log

    @override
    def has(self, key: str) -> bool:
        return key in self._open or key in self._suspended


def _ready(waiting: dict[str, ImportedSession], name: Callable[[ImportedSession], str | None]) -> list[ImportedSession]:
    """The sessions that need none of the others, are surely distinct, and whose elder siblings are ready too.

    Two sessions of the same `name` may be one. Where all wait for each other, the order of siblings gives way.
    """
    ready: dict[str | None, ImportedSession] = {}
    independent: dict[str | None, ImportedSession] = {}
    blocked_parents: set[str | None] = set()
    for each in waiting.values():
        needed = {each.foreign.parent, each.foreign.source} & waiting.keys() - {each.foreign.key}
        if not needed:
            independent.setdefault(name(each), each)
        if not needed and name(each) not in ready and (each.resolved or each.parent_ref not in blocked_parents):
            ready[name(each)] = each
        elif not each.resolved:
            blocked_parents.add(each.parent_ref)
    return list((ready or independent).values()) or [next(iter(waiting.values()))]
