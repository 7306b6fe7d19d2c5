"""Events of recent commits, cached so that live feeds and folds of a log need not read them from the database.

Only this process's own durable commits enter. The cache is never the truth: whoever misses an event in it reads the
database.
"""

import threading
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from storage.events import Event
from storage.log.commit import Commit, read_commit, recorded

MAX_BYTES = 12 * 1024 * 1024
"""Memory that the cached commits of all logs take, at most."""
COMMIT_BYTES = 4 * 1024
"""What a commit takes in memory besides its events, measured."""
EVENT_BYTES = 2 * 1024
"""What an event takes in memory besides its text, measured."""


class Part(NamedTuple):
    """Events in seq order that cover a log up to the seq `stop`, and the bytes of their commits as stored."""

    events: list[Event]
    stop: int
    size: int


class _Entry:
    """A commit; its events are built when they are first read, as most never are."""

    __slots__ = ("_admitted", "_content", "first", "memory", "size", "stop")

    def __init__(self, commit: Commit) -> None:
        self.first = commit.first
        self.stop = commit.last + 1
        self.size = commit.size
        self.memory = commit.size + COMMIT_BYTES + EVENT_BYTES * (self.stop - self.first)
        self._admitted: Sequence[Event] | None = None
        self._content: Commit | list[Event] = commit

    def supply(self, admitted: Sequence[Event]) -> None:
        """Hands in the events that the commit was made of."""
        if isinstance(self._content, Commit):
            self._admitted = admitted

    def events(self) -> list[Event]:
        """All its events."""
        content = self._content
        if isinstance(content, Commit):
            # Two threads may both do this, and get equal lists.
            admitted = self._admitted
            content = read_commit(content) if admitted is None else recorded(content, admitted)
            self._content, self._admitted = content, None
        return content


class RecentCommits:
    """The newest commits of the logs written last, those of each log without a gap. Safe to use from any thread."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.memory = 0
        """Bytes that the cached commits take in memory."""
        self._max_bytes = max_bytes
        self._logs: OrderedDict[str, deque[_Entry]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, commit: Commit) -> None:
        """Caches a durable commit. Evicts the oldest commits of the log whose last commit is oldest.

        A commit that does not continue its log replaces what is cached of the log, unless it is older.
        """
        entry = _Entry(commit)
        with self._lock:
            entries = self._logs.setdefault(commit.log, deque())
            if entries and entries[-1].stop != entry.first:
                if entries[-1].stop >= entry.stop:
                    return
                self.memory -= sum(old.memory for old in entries)
                entries.clear()
            entries.append(entry)
            self.memory += entry.memory
            self._logs.move_to_end(commit.log)
            while self.memory > self._max_bytes:
                self._evict()

    def supply(self, commit: Commit, admitted: Sequence[Event]) -> None:
        """Hands in the events that a cached commit was made of: to build its events from them is faster."""
        with self._lock:
            entries = self._logs.get(commit.log, ())
            index = _index_of(entries, commit.first)
            if index < len(entries) and entries[index].first == commit.first:
                entries[index].supply(admitted)

    def after(self, log: str, seq: int) -> Sequence[Event]:
        """The events of one commit, from `seq` on; empty if `seq` is not cached."""
        with self._lock:
            entries = self._logs.get(log, ())
            index = _index_of(entries, seq)
            if index == len(entries) or entries[index].first > seq:
                return ()
            entry = entries[index]
        return entry.events()[seq - entry.first :]

    def between(self, log: str, start: int, stop: int) -> list[Part]:
        """What is cached of a log's events with start <= seq < stop: a part per commit, without gaps between them."""
        with self._lock:
            entries = self._logs.get(log, ())
            found = [entries[index] for index in range(_index_of(entries, start), len(entries))]
        return [
            Part(
                entry.events()[max(start - entry.first, 0) : stop - entry.first],
                min(entry.stop, stop),
                entry.size,
            )
            for entry in found
            if entry.first < stop
        ]

    def _evict(self) -> None:
        log, entries = next(iter(self._logs.items()))
        self.memory -= entries.popleft().memory
        if not entries:
            del self._logs[log]


def _index_of(entries: Sequence[_Entry], seq: int) -> int:
    """The index of the first entry that ends after `seq`."""
    return bisect_right(entries, seq, key=attrgetter("stop"))
