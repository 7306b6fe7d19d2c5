"""Events that were appended lately, kept as they were written, so that whoever folds a log need not read them again."""

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import NamedTuple

from storage.events import Event
from storage.log.buffer import EVENT_BYTES
from storage.log.commit import Commit, recorded

KEPT_BYTES = 8 * 1024 * 1024
"""Bytes that the kept events of all logs take in memory: their text as stored, and what each takes beside it."""


class Part(NamedTuple):
    """Some events in seq order, up to the seq `stop`, and their bytes as stored."""

    events: list[Event]
    stop: int
    size: int


class _Made:
    """A commit, and the events that it was built of; most are never read, so that they are as stored only then."""

    def __init__(self, commit: Commit, admitted: Sequence[Event]) -> None:
        self.first = commit.first
        self.stop = commit.last + 1
        self.size = commit.size
        self._commit = commit.model_copy(update={"events": ()})
        self._admitted = admitted
        self._events: list[Event] | None = None

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory."""
        return self.size + EVENT_BYTES * len(self._admitted)

    def part(self, start: int, stop: int) -> Part:
        """Its events with start <= seq < stop, as stored."""
        if self._events is None:
            self._events = recorded(self._commit, self._admitted)
        return Part(self._events[max(start - self.first, 0) : stop - self.first], min(self.stop, stop), self.size)


class Recent:
    """The last commits of some logs, those of each without a gap. What was committed never changes, nor does this."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._bytes = 0
        self._logs: OrderedDict[str, deque[_Made]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, commit: Commit, admitted: Sequence[Event]) -> None:
        """Keeps the events of which a commit was built that is durable, in place of what was kept longest."""
        with self._lock:
            parts = self._logs.setdefault(commit.log, deque())
            if parts and parts[-1].stop != commit.first:
                if parts[-1].stop > commit.first:
                    return  # told late, by one that was overtaken
                self._forget(commit.log, parts[-1].stop)
                parts = self._logs.setdefault(commit.log, deque())
            made = _Made(commit, admitted)
            parts.append(made)
            self._bytes += made.weight
            self._logs.move_to_end(commit.log)
            while self._bytes > self._kept_bytes:
                oldest = next(iter(self._logs))
                self._forget(oldest, self._logs[oldest][0].stop)

    def of(self, log: str, start: int, stop: int) -> list[Part]:
        """What is kept of a log's events with start <= seq < stop, one after the other without a gap."""
        with self._lock:
            found = [made for made in self._logs.get(log, ()) if made.stop > start and made.first < stop]
        return [made.part(start, stop) for made in found]

    def forget(self, log: str, stop: int) -> None:
        """Drops the commits that end at this seq or before."""
        with self._lock:
            self._forget(log, stop)

    def _forget(self, log: str, stop: int) -> None:
        parts = self._logs.get(log)
        if parts is None:
            return
        while parts and parts[0].stop <= stop:
            self._bytes -= parts.popleft().weight
        if not parts:
            del self._logs[log]
