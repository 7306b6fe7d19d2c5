"""Surfaces of logs, read from the store and cached so that only newer events have to be folded.

A log never changes below its head and its id is never reused, so a cached surface stays true for good, for its session
and for the forks that share it.
"""

import heapq
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from storage.database import Queries
from storage.events import WIRE_TYPES, Event
from storage.log import reading
from storage.log.commit import Commit
from storage.log.recent import Part, RecentCommits
from storage.scope import Scope
from storage.session import Segment, SessionMeta
from storage.views.surface import SURFACE_BYTES, Surface
from storage.views.surface_chunks import chunks_needed
from storage.views.surface_node import bytes_in_memory

MAX_BYTES = 192 * 1024 * 1024
"""Memory that the cached surfaces of all logs take, about."""
PART_EVENTS = 2_000
"""Events read at once, so that a long log neither fills the memory nor keeps others waiting."""

CHUNKS = frozenset({"assistant/chunk"})
WITHOUT_CHUNKS = frozenset(WIRE_TYPES) - CHUNKS


class _Cached(NamedTuple):
    """A surface, and about how many bytes it takes in memory at most."""

    surface: Surface
    size: int


async def parts(queries: Queries, segments: Sequence[Segment], start: int, stop: int) -> AsyncIterator[Part]:
    """The events with start <= seq < stop of a visible log, without the chunks of answers that were logged whole."""
    while start < stop:
        found = await reading.read(queries, segments, start, stop, PART_EVENTS, types=WITHOUT_CHUNKS)
        size = found.size
        chunks: list[Event] = []
        for needed in chunks_needed(found.events, start, found.reached):
            at = needed.start
            while at < needed.stop:
                piece = await reading.read(queries, segments, at, needed.stop, PART_EVENTS, types=CHUNKS)
                chunks += piece.events
                size += piece.size
                at = piece.reached
        yield Part(list(heapq.merge(found.events, chunks, key=attrgetter("seq"))), found.reached, size)
        start = found.reached


class Surfaces:
    """Reads surfaces. The returned ones are shared: copy a surface before folding more onto it."""

    def __init__(self, max_bytes: int = MAX_BYTES, recent: RecentCommits | None = None) -> None:
        self._recent = RecentCommits() if recent is None else recent
        self._cached: OrderedDict[str, _Cached] = OrderedDict()
        self._size = 0
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    def follow(self, commit: Commit, admitted: Sequence[Event]) -> None:
        """Hands in the events that a durable commit was made of, so that folding them costs least."""
        self._recent.supply(commit, admitted)

    async def prepare(self, scope: Scope, space: str, id: str) -> None:
        """Reads a session's surface ahead, so that a transaction that needs it only has to read what is newer."""

        async def query(queries: Queries) -> None:
            meta = await queries.session(space, id)
            if meta is not None:
                await self.read(queries, meta, keep=scope.committed)

        await scope.read(query)

    async def within(self, queries: Queries, meta: SessionMeta) -> Surface:
        """The surface at a session's head, inside a transaction."""
        return await self.read(queries, meta, keep=False)

    async def read(self, queries: Queries, meta: SessionMeta, at_seq: int | None = None, *, keep: bool) -> Surface:
        """The surface of the first `at_seq` events of a session's visible log; default: of all up to its head.

        `keep` caches it, which is only for reads of what is committed.
        """
        seq = meta.head if at_seq is None else at_seq
        surface, size = self._nearest(meta.segments, seq)
        if surface.head < seq:
            surface = surface.copy()
            async for part in self._parts(queries, meta.segments, surface.head, seq):
                surface.add_all(part.events)
                surface.head = part.stop
                size += bytes_in_memory(part.size, len(part.events))
            if keep:
                self._keep(meta, _Cached(surface, size))
        return surface

    async def _parts(self, queries: Queries, segments: Sequence[Segment], start: int, stop: int) -> AsyncIterator[Part]:
        """The same as `parts`, from the cache of recent commits where it has them."""
        recent = self._recent.between(segments[-1].log, start, stop)
        if recent:
            async for part in parts(queries, segments, start, recent[0].events[0].seq):
                yield part
            for part in recent:
                yield part
            start = recent[-1].stop
        async for part in parts(queries, segments, start, stop):
            yield part

    def _nearest(self, segments: Iterable[Segment], seq: int) -> _Cached:
        """The longest cached surface that this log starts with: the session's own, or of a source of the fork."""
        nearest = _Cached(Surface(), SURFACE_BYTES)
        with self._lock:
            for segment in segments:
                cached = self._cached.get(segment.log)
                limit = seq if segment.to is None else min(seq, segment.to)
                if cached is not None and nearest.surface.head < cached.surface.head <= limit:
                    nearest = cached
                    self._cached.move_to_end(segment.log)
        return nearest

    def _keep(self, meta: SessionMeta, made: _Cached) -> None:
        """Caches a surface in place of a shorter one of the same log."""
        if made.size > self._max_bytes:
            # The size counts all events that were folded; replacements may have left little of them.
            made = made._replace(size=made.surface.weight())
        with self._lock:
            earlier = self._cached.get(meta.log)
            if made.size > self._max_bytes or (earlier and earlier.surface.head >= made.surface.head):
                return
            self._size += made.size - (earlier.size if earlier else 0)
            self._cached[meta.log] = made
            self._cached.move_to_end(meta.log)
            while self._size > self._max_bytes:
                self._size -= self._cached.popitem(last=False)[1].size
