"""Reading logs: pages of a visible log, and its state at any cut.

A visible log is a list of segments, each a part of some session's own log; reading walks them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import orjson

from storage import errors
from storage.database import Queries
from storage.events import Event
from storage.log.commit import MAX_EVENTS, Commit, read_commit
from storage.log.state import Fold, LogState
from storage.session import Segment, SessionMeta

MAX_PAGE_EVENTS = 1_000
MAX_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Span:
    """The requested range of a page: up to `count` seqs with start <= seq < stop <= head, the oldest or the newest."""

    start: int
    stop: int
    head: int
    count: int
    newest_first: bool

    def ends(self, reached: int) -> tuple[int, int | None]:
        """next_seq and prev_seq of a page. `reached` is the next seq when reading forward, else the lowest one read.

        An empty page ends where it starts.
        """
        if self.newest_first:
            return self.stop, (min(reached, self.stop) if self.count else self.stop) or None
        next_seq = max(reached, self.start) if self.count else self.start
        return min(next_seq, self.head), min(self.start, self.head) or None


def asked(
    head: int,
    *,
    from_seq: int | None,
    before_seq: int | None,
    first: int | None,
    last: int | None,
    most: int,
    default: int,
) -> Span:
    """The span that a page requests. Raises BadInput for negative or too large numbers, and for both first and last."""
    for name, value in (("fromSeq", from_seq), ("beforeSeq", before_seq), ("first", first), ("last", last)):
        if value is not None and value < 0:
            raise errors.BadInput(f"{name}: must not be negative, is {value}")
    if first is not None and last is not None:
        raise errors.BadInput("first and last: give one of them")
    count = first if first is not None else last if last is not None else default
    if count > most:
        raise errors.BadInput(f"{'first' if last is None else 'last'}: at most {most}, is {count}")
    backwards = last is not None or (before_seq is not None and from_seq is None and first is None)
    return Span(from_seq or 0, head if before_seq is None else min(before_seq, head), head, count, backwards)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in seq order. Read on from `next_seq`, back from `prev_seq` (None: nothing before)."""

    events: list[Event]
    next_seq: int
    prev_seq: int | None
    head: int


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
    span = asked(
        meta.head,
        from_seq=from_seq,
        before_seq=before_seq,
        first=first,
        last=last,
        most=max_events,
        default=default,
    )
    start, stop, backwards = span.start, span.stop, span.newest_first
    found = await read(queries, meta.segments, start, stop, span.count, newest_first=backwards, types=types)
    return EventPage(found.events, *span.ends(found.reached), meta.head)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events in seq order, and how far the log was read: no matching event up to `reached` is missing.

    `size` is their stored size in bytes.
    """

    events: list[Event]
    reached: int
    size: int


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
) -> EventBatch:
    """The oldest or newest `count` events with start <= seq < stop, in seq order either way.

    `reached` is the seq to continue from: the next one when reading forward, else the lowest one read.
    """
    budget = Budget(count, max_bytes)
    collected: list[Event] = []
    wanted = None if types is None else set(types)
    for segment in reversed(segments) if newest_first else segments:
        low, high = max(start, segment.start), min(stop, stop if segment.to is None else segment.to)
        while low < high and not budget.spent:
            commits = await _commits(queries, segment.log, low, high, newest_first, wanted, budget)
            for commit in commits:
                taken = read_commit(commit, wanted, range(low, high))
                for event in reversed(taken) if newest_first else taken:
                    if not budget.take(event, commit):
                        reached = event.seq + 1 if newest_first else event.seq
                        events = collected[::-1] if newest_first else collected
                        return EventBatch(events, reached, max_bytes - budget.bytes)
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
        return EventBatch(collected[::-1], reached, max_bytes - budget.bytes)
    reached = collected[-1].seq + 1 if budget.spent and collected else max(start, stop)
    return EventBatch(collected, reached, max_bytes - budget.bytes)


class Budget:
    """The events and bytes left for a page. The first event always fits."""

    def __init__(self, events: int, max_bytes: int) -> None:
        self.events = events
        self.bytes = max_bytes
        self._taken = False

    @property
    def spent(self) -> bool:
        """Whether certainly no further event fits."""
        return self.events <= 0 or self.bytes <= 0

    def take(self, event: Event, commit: Commit) -> bool:
        """Counts an event, or returns False if it no longer fits."""
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
    """The next commits of [low, high). Looks before `low` only if no commit starts there; most readers start at one."""
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
    part = read_commit(commit, seqs=range(before.head, seq))
    return Fold(before).add_all(part).done()
