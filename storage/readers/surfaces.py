"""Surfaces of logs, read from the store, and kept so that only what was appended since has to be folded again.

A log never changes below its head and its id is never reused, so that what is kept of it stays true for good, for its
session and for the forks that share it.
"""

import heapq
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from storage.database import Queries
from storage.events import WIRE_TYPES, Event
from storage.log import reading, recent
from storage.log.commit import Commit
from storage.log.recent import Part, Recent
from storage.scope import Scope
from storage.session import Segment, SessionMeta
from storage.views.surface import SURFACE_BYTES, Surface
from storage.views.surface_chunks import chunks_needed
from storage.views.surface_node import bytes_in_memory

KEPT_BYTES = 192 * 1024 * 1024
"""Bytes that the kept surfaces of all logs take in memory, about."""
PART_EVENTS = 2_000
"""Events read at once, so that a long log neither fills the memory nor keeps others waiting."""

CHUNKS = frozenset({"assistant/chunk"})
WITHOUT_CHUNKS = frozenset(WIRE_TYPES) - CHUNKS


class _Kept(NamedTuple):
    """A surface, and about how many bytes it takes in memory at most."""

    surface: Surface
    size: int


async def parts(queries: Queries, segments: Sequence[Segment], start: int, stop: int) -> AsyncIterator[Part]:
    """The events with start <= seq < stop of a visible log, but for chunks that a whole answer has made needless."""
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
    """Reads surfaces. What it gives out is shared: whoever wants to fold more onto one takes a copy."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._recent = Recent(min(kept_bytes, recent.KEPT_BYTES))
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()

    def follow(self, commit: Commit, admitted: Sequence[Event]) -> None:
        """Takes the events of which a commit was built that is durable now: they need not be read from the store."""
        self._recent.add(commit, admitted)

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

        `keep` it for later, which is for readings of what is committed alone.
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
                self._keep(meta, _Kept(surface, size))
        return surface

    async def _parts(self, queries: Queries, segments: Sequence[Segment], start: int, stop: int) -> AsyncIterator[Part]:
        """Those of `parts`, from memory where they are at hand."""
        at_hand = self._recent.of(segments[-1].log, start, stop)
        if at_hand:
            async for part in parts(queries, segments, start, at_hand[0].events[0].seq):
                yield part
            for part in at_hand:
                yield part
            start = at_hand[-1].stop
        async for part in parts(queries, segments, start, stop):
            yield part

    def _nearest(self, segments: Iterable[Segment], seq: int) -> _Kept:
        """The longest kept surface of a beginning of this log: of its session, or of one that it was forked from."""
        nearest = _Kept(Surface(), SURFACE_BYTES)
        with self._lock:
            for segment in segments:
                kept = self._kept.get(segment.log)
                limit = seq if segment.to is None else min(seq, segment.to)
                if kept is not None and nearest.surface.head < kept.surface.head <= limit:
                    nearest = kept
                    self._kept.move_to_end(segment.log)
        return nearest

    def _keep(self, meta: SessionMeta, made: _Kept) -> None:
        """Keeps a surface in place of a shorter one of the same log."""
        if made.size > self._kept_bytes:  # so were the events; replacements may have left little of them
            made = made._replace(size=made.surface.weight())
        with self._lock:
            earlier = self._kept.get(meta.log)
            if made.size > self._kept_bytes or (earlier and earlier.surface.head >= made.surface.head):
                return
            self._recent.forget(meta.log, made.surface.head)
            self._size += made.size - (earlier.size if earlier else 0)
            self._kept[meta.log] = made
            self._kept.move_to_end(meta.log)
            while self._size > self._kept_bytes:
                self._size -= self._kept.popitem(last=False)[1].size
