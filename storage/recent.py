"""Events that were appended lately, kept as they were written, so that whoever folds a log need not read them again."""

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import NamedTuple

from storage.buffer import EVENT_BYTES
from storage.database import Commit
from storage.events import Event

KEPT_BYTES = 8 * 1024 * 1024
"""Bytes that the kept events of all logs take in memory: their text as stored, and what each takes beside it."""


class Part(NamedTuple):
    """Some events in seq order, up to the seq `stop`, and their bytes as stored."""

    events: list[Event]
    stop: int
    size: int

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory."""
        return self.size + EVENT_BYTES * len(self.events)


class Recent:
    """The last commits of some logs, those of each without a gap. What was committed never changes, nor does this."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._bytes = 0
        self._logs: OrderedDict[str, deque[Part]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, commit: Commit, events: Sequence[Event]) -> None:
        """Keeps the events of a commit that is durable, in place of what was kept longest."""
        with self._lock:
            parts = self._logs.setdefault(commit.log, deque())
            if parts and parts[-1].stop != commit.first:
                if parts[-1].stop > commit.first:
                    return  # told late, by one that was overtaken
                self._forget(commit.log, parts[-1].stop)
                parts = self._logs.setdefault(commit.log, deque())
            part = Part(list(events), commit.last + 1, commit.size)
            parts.append(part)
            self._bytes += part.weight
            self._logs.move_to_end(commit.log)
            while self._bytes > self._kept_bytes:
                oldest = next(iter(self._logs))
                self._forget(oldest, self._logs[oldest][0].stop)

    def of(self, log: str, start: int, stop: int) -> list[Part]:
        """What is kept of a log's events with start <= seq < stop, one after the other without a gap."""
        with self._lock:
            found = [part for part in self._logs.get(log, ()) if part.stop > start and part.events[0].seq < stop]
        return [_cut(part, start, stop) for part in found]

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


def _cut(part: Part, start: int, stop: int) -> Part:
    if part.events[0].seq >= start and part.stop <= stop:
        return part
    return Part([event for event in part.events if start <= event.seq < stop], min(part.stop, stop), part.size)
