"""The log: appending events to a session, reading them, and what a fork finds at its cut.

A visible log is a list of segments, each a part of some session's own log; reading walks the segments.
"""

import hashlib
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from storage import errors, events
from storage.admission import Admission, check_steps, step_mark, turn_mark, visible_turns
from storage.database import MAX_COMMIT_BYTES, MAX_EVENTS, Commit, Queries, Transaction
from storage.events import Event
from storage.session import MAX_SEGMENTS, Segment, SessionMeta, SessionStatus
from storage.state import Fold, LogState

MAX_PAGE_EVENTS = 1_000
MAX_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Appended:
    """An append's answer. `commit` is the one written, or the first one of a repeated key."""

    commit: Commit
    session: SessionMeta
    duplicate: bool

    @property
    def first_seq(self) -> int:
        """seq of its first event."""
        return self.commit.first

    @property
    def head(self) -> int:
        """The head right after it."""
        return self.commit.last + 1

    @property
    def events(self) -> list[Event]:
        """Its events as stored."""
        return read_commit(self.commit)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in seq order. `next_seq` is where to read on, `prev_seq` where to read back (None: nothing before)."""

    events: list[Event]
    next_seq: int
    prev_seq: int | None
    head: int


def now() -> int:
    """This server's clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


def digest_of(kind: str, content: Any) -> str:
    """A digest of an input, to tell whether a repeated idempotency key came with the same one."""
    return hashlib.sha256(kind.encode() + b"\n" + orjson.dumps(content)).hexdigest()


def read_commit(commit: Commit) -> list[Event]:
    """The events of a commit, with the time it was recorded where the writer gave none."""
    loaded = []
    for offset, stored in enumerate(commit.events):
        if "timestamp" not in stored:
            stored = {**stored, "timestamp": commit.at}
        loaded.append(events.load(stored, commit.log, commit.session, commit.first + offset))
    return loaded


async def append(
    tx: Transaction,
    space: str,
    id: str,
    drafts: Sequence[Event],
    *,
    expected_head: int | None = None,
    key: str | None = None,
    digest: str | None = None,
) -> Appended:
    """Writes events at the head of a session's log, all or none.

    With a `key` used before, answers as then. Raises NotFound, Archived, Conflict (another head), TurnEnded,
    BadInput, PayloadTooLarge or IdempotencyMismatch, and then has written nothing.
    """
    meta = await tx.session(space, id)
    if meta is None:
        raise errors.NotFound(f"sessionId: no session {id!r}")
    if key is not None:
        digest = digest or digest_of("append", [events.dump(draft) for draft in drafts])
        if (repeated := await repeat_of(tx, meta, key, digest)) is not None:
            return Appended(repeated, meta, duplicate=True)
    check_writable(meta)
    if expected_head is not None and expected_head != meta.head:
        raise errors.Conflict(f"expectedHead: the log's head is {meta.head}, not {expected_head}", head=meta.head)
    commit = await _admit(tx, meta, drafts, key, digest)
    await tx.insert_commit(commit)
    changes = {"head": commit.last + 1, "open": commit.open, "totals": commit.totals, "behind": True}
    return Appended(commit, await tx.change_session(meta, changes, appended=True), duplicate=False)


def check_writable(meta: SessionMeta) -> None:
    """Raises Archived unless the session takes writes."""
    if meta.status is not SessionStatus.ACTIVE:
        raise errors.Archived(f"session {meta.id} is archived; restore it first")


async def repeat_of(tx: Queries, meta: SessionMeta, key: str, digest: str) -> Commit | None:
    """The commit that this key made in the session's own log. Raises IdempotencyMismatch if its input was another."""
    found = await tx.commit_by_key(meta.log, key)
    if found is not None and found.digest != digest:
        raise errors.IdempotencyMismatch(f"idempotencyKey: {key!r} was used before, with other input")
    return found


async def _admit(
    tx: Transaction, meta: SessionMeta, drafts: Sequence[Event], key: str | None, digest: str | None
) -> Commit:
    if not 1 <= len(drafts) <= MAX_EVENTS:
        refusal = errors.PayloadTooLarge if drafts else errors.BadInput
        raise refusal(f"events: one append takes 1 to {MAX_EVENTS} events, got {len(drafts)}")
    at = now()
    started = await visible_turns(tx, meta, drafts)
    admission = Admission(meta.state, started, at)
    admitted = [admission.admit(draft, f"events[{place}]") for place, draft in enumerate(drafts)]
    await check_steps(tx, meta, admission)
    return build_commit(meta, admitted, admission, key, digest)


def build_commit(
    meta: SessionMeta,
    admitted: Sequence[Event],
    admission: Admission,
    key: str | None = None,
    digest: str | None = None,
) -> Commit:
    """The commit of these events at the session's head. Raises PayloadTooLarge over 8 MiB as stored."""
    stored = [events.dump(event) for event in admitted]
    size = len(orjson.dumps(stored))
    if size > MAX_COMMIT_BYTES:
        raise errors.PayloadTooLarge(f"events: one append takes {MAX_COMMIT_BYTES} bytes as stored, these are {size}")
    state = admission.state()
    return Commit(
        id=secrets.token_hex(16),
        space=meta.space,
        session=meta.id,
        log=meta.log,
        first=meta.head,
        last=meta.head + len(admitted) - 1,
        at=admission.at,
        types=tuple(sorted({event.type for event in admitted})),
        turns=tuple(turn_mark(meta.log, turn) for turn in admission.started_turns),
        turn_seqs=tuple(admission.started_turns.values()),
        steps=tuple(step_mark(meta.log, turn, step) for turn, step in admission.started_steps),
        step_seqs=tuple(admission.step_seqs),
        open=state.open,
        totals=state.totals,
        key=None if key is None else f"{meta.log}/{key}",
        digest=digest if key is not None else None,
        size=size,
        events=stored,
    )


async def read_page(
    queries: Queries,
    meta: SessionMeta,
    *,
    from_seq: int | None = None,
    before_seq: int | None = None,
    first: int | None = None,
    last: int | None = None,
    types: Collection[str] | None = None,
    max_events: int = MAX_PAGE_EVENTS,
    default: int = 100,
) -> EventPage:
    """A page of the visible log: forward from `from_seq`, or with `last` the events before `before_seq`.

    Ends before 4 MiB but holds at least one event. Raises BadInput for negative or too large numbers.
    """
    for name, value in (("fromSeq", from_seq), ("beforeSeq", before_seq), ("first", first), ("last", last)):
        if value is not None and value < 0:
            raise errors.BadInput(f"{name}: must not be negative, is {value}")
    if first is not None and last is not None:
        raise errors.BadInput("first and last: give one of them")
    count = first if first is not None else last if last is not None else default
    if count > max_events:
        raise errors.BadInput(f"{'first' if last is None else 'last'}: at most {max_events}, is {count}")
    start = from_seq or 0
    stop = meta.head if before_seq is None else min(before_seq, meta.head)
    backwards = last is not None or (before_seq is not None and from_seq is None and first is None)
    found = await read(queries, meta.segments, start, stop, count, newest_first=backwards, types=types)
    if backwards:
        next_seq = stop
        reached = found.reached if count else stop
        prev_seq = reached if reached > 0 else None
    else:
        next_seq = max(found.reached, start) if count else start
        next_seq = min(next_seq, meta.head) if start <= meta.head else meta.head
        prev_seq = min(start, meta.head) or None
    return EventPage(found.events, next_seq, prev_seq, meta.head)


@dataclass(frozen=True, slots=True)
class Found:
    """Events in seq order, and how far the log was read: every matching event up to there is among them."""

    events: list[Event]
    reached: int


async def read(
    queries: Queries,
    segments: Sequence[Segment],
    start: int,
    stop: int,
    count: int,
    *,
    newest_first: bool = False,
    types: Collection[str] | None = None,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Found:
    """Up to `count` events with start <= seq < stop, oldest or newest first in reach but always in seq order.

    `reached` is the seq to read on from (reading forward: the next, else the lowest that was read).
    """
    budget = Budget(count, max_bytes)
    collected: list[Event] = []
    wanted = None if types is None else set(types)
    for segment in reversed(segments) if newest_first else segments:
        low, high = max(start, segment.start), min(stop, stop if segment.to is None else segment.to)
        while low < high and not budget.spent:
            commits = await _commits(queries, segment.log, low, high, newest_first, wanted, budget)
            for commit in commits:
                taken = [event for event in read_commit(commit) if low <= event.seq < high]
                for event in reversed(taken) if newest_first else taken:
                    if (wanted is None or event.type in wanted) and not budget.take(event, commit):
                        reached = event.seq + 1 if newest_first else event.seq
                        return Found(collected[::-1] if newest_first else collected, reached)
                    if wanted is None or event.type in wanted:
                        collected.append(event)
                if newest_first:
                    high = max(low, commit.first)
                else:
                    low = min(high, commit.last + 1)
            if not commits:
                break
        if budget.spent:
            break
    if newest_first:
        reached = collected[-1].seq if budget.spent and collected else start
        return Found(collected[::-1], reached)
    return Found(collected, collected[-1].seq + 1 if budget.spent and collected else max(start, stop))


class Budget:
    """How many events and bytes a page may still take. The first event always fits."""

    def __init__(self, events: int, max_bytes: int) -> None:
        self.events = events
        self.bytes = max_bytes
        self._taken = False

    @property
    def spent(self) -> bool:
        """Whether no further event fits for sure."""
        return self.events <= 0 or self.bytes <= 0

    def take(self, event: Event, commit: Commit) -> bool:
        """Counts an event in, or says that it does not fit any more."""
        count = commit.last - commit.first + 1
        size = commit.size if count == 1 else len(orjson.dumps(commit.events[event.seq - commit.first]))
        if self.events <= 0 or (self._taken and size > self.bytes):
            return False
        self._taken = True
        self.events -= 1
        self.bytes -= size
        return True


async def _commits(
    queries: Queries,
    log: str,
    low: int,
    high: int,
    newest_first: bool,
    types: Collection[str] | None,
    budget: Budget,
) -> list[Commit]:
    """The next commits of [low, high). Most readers start at a commit; only else one is looked for before `low`."""
    found = await queries.commits(
        log, low, high, newest_first=newest_first, types=types, max_events=budget.events, max_bytes=budget.bytes
    )
    if newest_first:
        return found or await _straddling(queries, log, low, types)
    if found and found[0].first == low:
        return found
    return await _straddling(queries, log, low, types) + found


async def _straddling(queries: Queries, log: str, seq: int, types: Collection[str] | None) -> list[Commit]:
    commit = await queries.commit_before(log, seq - 1, MAX_EVENTS - 1)
    if commit is None or commit.last < seq or (types is not None and not set(types) & set(commit.types)):
        return []
    return [commit]


async def state_at(queries: Queries, meta: SessionMeta, seq: int) -> LogState:
    """The state of the visible log after its first `seq` events, which must not be beyond the head."""
    if seq == meta.head:
        return meta.state
    segments = [segment for segment in meta.segments if segment.start < seq]
    if not segments:
        return LogState()
    commit = await queries.commit_before(segments[-1].log, seq - 1, MAX_EVENTS)
    if commit is None:
        raise errors.SapwoodError(f"log {segments[-1].log} of session {meta.id} lacks the commit that holds {seq - 1}")
    if commit.last == seq - 1:
        return commit.state
    before = await state_at(queries, meta, max(commit.first, segments[-1].start))
    part = [event for event in read_commit(commit) if before.head <= event.seq < seq]
    return Fold(before).add_all(part).done()


def cut(meta: SessionMeta, seq: int, own_log: str) -> tuple[Segment, ...]:
    """The segments of a fork: the source's list cut at `seq`, empty ones left out, and a log of its own."""
    shared = [
        segment.model_copy(update={"to": seq if segment.to is None else min(segment.to, seq)})
        for segment in meta.segments
        if segment.start < seq
    ]
    shared = [segment for segment in shared if segment.to is not None and segment.start < segment.to]
    if len(shared) >= MAX_SEGMENTS:
        raise errors.BadInput(f"sourceId: {meta.id} is a fork of forks {MAX_SEGMENTS} deep; no more can be stacked")
    return (*shared, Segment(log=own_log, start=seq))
