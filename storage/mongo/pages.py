"""Reading no more than a page needs: windows over a log, and bounds in bytes."""

from collections.abc import AsyncIterator, Iterator

from storage.log.commit import MAX_EVENTS, Commit
from storage.mongo import codec
from storage.mongo.codec import Document
from storage.session import Slots

TYPED_WINDOW = 8
"""Seqs of the first window for each event of a page that has only some types."""
GROWTH = 4
"""How many times larger each next window is."""


class CommitPage:
    """Commits of one log, until their events or bytes reach a bound.

    `windows` yields the ranges of `first` to read, one after the other; `fill` adds what each one finds. Ranges have
    both bounds, and a page that starts at a commit, as most do, needs only the first range.
    """

    def __init__(self, max_events: int, max_bytes: int, *, typed: bool) -> None:
        self.commits: list[Commit] = []
        self.events = max_events
        self._bytes = max_bytes
        self._typed = typed

    @property
    def full(self) -> bool:
        """Whether a bound is reached."""
        return self.events <= 0 or self._bytes <= 0

    async def fill(self, found: AsyncIterator[Document]) -> None:
        """Adds commits until a bound is reached."""
        async for document in found:
            commit = codec.decode_commit(document)
            self.commits.append(commit)
            self.events -= 1 if self._typed else commit.last - commit.first + 1
            self._bytes -= commit.size
            if self.full:
                return

    def windows(self, start: int, stop: int, newest_first: bool) -> Iterator[tuple[int, int]]:
        """The ranges to read. Each depends on what was added before it."""
        if self._typed:
            return self._growing(start, stop, newest_first)
        return self._backward(start, stop) if newest_first else self._forward(start, stop)

    def _growing(self, start: int, stop: int, newest_first: bool) -> Iterator[tuple[int, int]]:
        width = max(MAX_EVENTS, TYPED_WINDOW * self.events)
        while start < stop and not self.full:
            if newest_first:
                yield max(start, stop - width), stop
                stop -= width
            else:
                yield start, min(stop, start + width)
                start += width
            width *= GROWTH

    def _forward(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """A log has no gaps: the next commit starts where one ends, and within any 1,000 seqs one starts."""
        while start < stop and not self.full:
            held = len(self.commits)
            high = min(stop, start + self.events)
            yield start, high
            nearest = max(high, min(stop, start + MAX_EVENTS))
            if len(self.commits) == held and high < nearest:
                yield high, nearest
            if not self.commits and nearest < stop:
                yield nearest, stop
            if len(self.commits) == held or self.commits[-1].last + 1 < high:
                return
            start = self.commits[-1].last + 1

    def _backward(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop and not self.full:
            held = len(self.commits)
            low = max(start, stop - self.events)
            yield low, stop
            if len(self.commits) == held and start < low:
                nearest = max(start, min(low, stop - MAX_EVENTS))
                yield nearest, low
                if len(self.commits) == held and start < nearest:
                    yield start, nearest
            if len(self.commits) == held:
                return
            stop = self.commits[-1].first


async def bounded_slots(found: AsyncIterator[Document], max_bytes: int | None) -> list[Slots]:
    """Slots until the next contents would pass `max_bytes`; at least one if there is any."""
    taken: list[Slots] = []
    left = max_bytes
    async for document in found:
        slots = codec.decode_slots(document)
        if left is not None:
            left -= codec.size_of(slots)
            if left < 0 and taken:
                break
        taken.append(slots)
    return taken
