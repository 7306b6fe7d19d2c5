"""Checks logs: that commits follow without gaps, and that what is derived from events is a fold of them."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from storage.check.problem import Problem
from storage.database import MAX_EVENTS, Commit, Database, Queries, Transaction
from storage.events import Event, StepStart, TurnStart
from storage.log import reading
from storage.log.admission import step_mark, turn_mark
from storage.log.commit import read_commit
from storage.log.marks import marked_cards
from storage.log.state import Fold, LogState
from storage.session import Segment, SessionMeta
from storage.slots import empty

BEYOND = 2**31
"""A seq beyond any head."""
RESTORE = "restore a backup, or export what is left of it and delete it"


class _Damaged(Exception):
    """The log can't be read any further; the message says where."""


class LogCheck:
    """Checks the logs of sessions. Reads each part of a log once, however many forks share it."""

    def __init__(self, database: Database, repair: bool) -> None:
        self._database = database
        self._repair = repair
        self._walked: dict[str, LogState] = {}
        self._damaged: set[str] = set()
        self._found: list[Problem] = []

    async def check(self, meta: SessionMeta) -> list[Problem]:
        """What is wrong with the visible log of a session, and with its state in the session's document."""
        self._found = []
        try:
            _check_segments(meta)
            state = LogState()
            for segment in meta.segments[:-1]:
                state = await self._walk(meta, segment, segment.to or 0, state)
            await self._check_own(meta, state)
        except _Damaged as damage:
            if await self._exists(meta):
                self._found.append(Problem(meta.space, meta.id, str(damage), by_hand=RESTORE))
            else:
                # The session was deleted meanwhile; what was deleted with it is no damage to forks that share the rest.
                self._damaged.difference_update(segment.log for segment in meta.segments)
        return self._found

    async def _exists(self, meta: SessionMeta) -> bool:
        now = await self._database.read(lambda queries: queries.session(meta.space, meta.id))
        return now is not None and now.log == meta.log

    async def _check_own(self, meta: SessionMeta, inherited: LogState) -> None:
        """Reads the session's own log to its end, then checks the session's document against it."""
        state = inherited
        now: SessionMeta | None = meta
        while now is not None and now.log == meta.log:
            state = await self._walk(meta, meta.segments[-1], BEYOND, state)
            if now.head > state.head:
                raise _Damaged(f"has the head {now.head}, but its log ends at {state.head}: events are lost")
            changes = await self._database.read(partial(_wrong_state, meta=meta, inherited=inherited, state=state))
            if changes == {}:
                return
            if changes is not None:
                work = partial(_settle, meta=meta, inherited=inherited, state=state, repair=self._repair)
                found = await self._database.transact(work)
                if found is not None:
                    self._found += found
                    return
            now = await self._database.read(lambda queries: queries.session(meta.space, meta.id))

    async def _walk(self, meta: SessionMeta, segment: Segment, stop: int, start: LogState) -> LogState:
        """Reads a log, whose state before its first event is `start`, to `stop` or its end; the state there."""
        if segment.log in self._damaged:
            raise _Damaged(f"shares events of the damaged log {segment.log}")
        known = self._walked.get(segment.log)
        if known is not None and stop < known.head:
            trusted = meta.model_copy(update={"head": BEYOND})
            return await self._database.read(lambda queries: reading.state_at(queries, trusted, stop))
        fold = Fold(known or start)
        reached = fold.done()
        wrong: list[str] = []
        try:
            while fold.head < stop:
                commits = await self._database.read(partial(_next, log=segment.log, low=fold.head, stop=stop))
                if not commits:
                    break
                for commit in commits:
                    events = _read(commit, fold.head)
                    reached = _folded(fold, events, stop)
                    wrong += await self._contradictions(commit, events, fold.done(), stop)
            if stop < BEYOND and fold.head < stop:
                raise _Damaged(f"lacks the events {fold.head} to {stop - 1} of log {segment.log}")
        except _Damaged:
            self._damaged.add(segment.log)
            raise
        self._walked[segment.log] = fold.done()
        if wrong:
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            self._found.append(Problem(meta.space, meta.id, f"{wrong[0]}{more}", by_hand=RESTORE))
        return reached

    async def _contradictions(self, commit: Commit, events: Sequence[Event], state: LogState, stop: int) -> list[str]:
        """Where a commit contradicts its events. `state` is the log's state after it.

        Turns, steps and cards must be found by their marks, except those at `stop` or later, which no session reads.
        """
        turns = {
            turn_mark(commit.log, event.turn_id or ""): event.seq for event in events if isinstance(event, TurnStart)
        }
        steps = {
            step_mark(commit.log, event.turn_id or "", event.step_id or ""): event.seq
            for event in events
            if isinstance(event, StepStart)
        }
        cards = marked_cards(commit.log, commit.first, events)
        card_marks, card_seqs = tuple(mark for mark, _ in cards), tuple(seq for _, seq in cards)
        agreements = {
            "types of events": set(commit.types) == {event.type for event in events},
            "totals": commit.totals == state.totals,
            "open turns and steps": commit.open == state.open,
            "turns": (commit.turns, commit.turn_seqs) == (tuple(turns), tuple(turns.values())),
            "steps": (commit.steps, commit.step_seqs) == (tuple(steps), tuple(steps.values())),
            "cards": (commit.cards, commit.card_seqs) == (card_marks, card_seqs),
        }
        wrong = [f"has a commit at {commit.first} with wrong {name}" for name, right in agreements.items() if not right]
        if turns or steps:
            found = await self._database.read(partial(_marks, turns=list(turns), steps=list(steps)))
            if not {start for start in (*turns.items(), *steps.items()) if start[1] < stop} <= found:
                wrong.append(f"has a commit at {commit.first} that can't be found by the turns and steps it starts")
        if cards:
            indexed = await self._database.read(partial(_cards, spans=[(mark, seq, seq + 1) for mark, seq in cards]))
            if not {card for card in cards if card[1] < stop} <= indexed:
                wrong.append(f"has a commit at {commit.first} that can't be found by the cards it holds")
        return wrong


def _folded(fold: Fold, events: Sequence[Event], stop: int) -> LogState:
    """Folds the events of a commit; the state at `stop`, or after the commit if it ends before."""
    reached: LogState | None = None
    for event in events:
        fold.add(event)
        if fold.head == stop:
            reached = fold.done()
    return reached or fold.done()


async def _next(queries: Queries, *, log: str, low: int, stop: int) -> list[Commit]:
    try:
        return await queries.commits(log, low, stop, max_events=MAX_EVENTS, max_bytes=4 * 1024 * 1024)
    except ValidationError as error:
        raise _Damaged(f"has a commit after {low} in log {log} that can't be read") from error


async def _marks(queries: Queries, *, turns: Collection[str], steps: Collection[str]) -> set[tuple[str, int]]:
    return {*await queries.turn_starts(turns), *await queries.step_starts(steps)}


async def _cards(queries: Queries, *, spans: Collection[tuple[str, int, int]]) -> set[tuple[str, int]]:
    return set(await queries.card_seqs(spans))


def _read(commit: Commit, expected: int) -> list[Event]:
    """The events of a commit, which must be the one that starts with seq `expected`."""
    if commit.first != expected:
        raise _Damaged(f"has a commit at {commit.first} where {expected} comes next in log {commit.log}")
    if len(commit.events) != commit.last - commit.first + 1:
        count = len(commit.events)
        raise _Damaged(f"has a commit of {commit.first} to {commit.last} with {count} events in log {commit.log}")
    try:
        return read_commit(commit)
    except ValidationError as error:
        raise _Damaged(f"has an event that can't be read in the commit at {expected} of log {commit.log}") from error


def _check_segments(meta: SessionMeta) -> None:
    """Raises unless the segments of the visible log follow each other."""
    if not meta.segments:
        raise _Damaged("has no log")
    starts = [segment.start for segment in meta.segments]
    ends = [segment.to for segment in meta.segments]
    if starts[0] != 0 or starts[1:] != ends[:-1] or ends[-1] is not None or meta.head < starts[-1]:
        raise _Damaged(f"reads parts of logs that do not follow each other: {starts} to {ends}, head {meta.head}")


async def _wrong_state(
    queries: Queries, *, meta: SessionMeta, inherited: LogState, state: LogState
) -> dict[str, Any] | None:
    """The right values of the fields of a session's document that its log contradicts; None if the log has grown."""
    now = await queries.session(meta.space, meta.id)
    if now is None or now.log != meta.log:
        return {}
    if now.head > state.head or await queries.commits(meta.log, state.head, BEYOND, max_events=1, max_bytes=1):
        return None
    slots = (await queries.slots(meta.space, [meta.id])).get(meta.id) or empty(meta)
    memory_at_seq = slots.memory.at_seq if slots.memory is not None else 0
    right = {
        "head": state.head,
        "open": state.open,
        "totals": state.totals,
        "inherited": inherited.totals,
        "memory_at_seq": memory_at_seq,
        "behind": state.head > memory_at_seq,
    }
    return {name: value for name, value in right.items() if getattr(now, name) != value}


async def _settle(
    tx: Transaction, *, meta: SessionMeta, inherited: LogState, state: LogState, repair: bool
) -> list[Problem] | None:
    """Checks the session's document again, inside a transaction, and repairs it; None if the log has grown."""
    changes = await _wrong_state(tx, meta=meta, inherited=inherited, state=state)
    if changes is None:
        return None
    now = await tx.session(meta.space, meta.id)
    if now is None or not changes:
        return []
    if repair:
        await tx.change_session(now, changes)
    what = f"has other values than its log for {', '.join(changes)}"
    return [Problem(meta.space, meta.id, what, "they are set by the log", repaired=repair)]
