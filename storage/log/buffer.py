"""A small shared memory of recent commits, so that many subscribers of a session cost one read."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from storage.events import Event
from storage.log.commit import Commit, read_commit

MAX_BYTES = 4 * 1024 * 1024
EVENT_BYTES = 2 * 1024
"""What an event takes in memory beside its text."""


@dataclass(frozen=True, slots=True)
class _Entry:
    first: int
    last: int
    size: int
    events: list[Event]


class CommitBuffer:
    """Holds the newest commits of the logs that were last written, up to 4 MiB; never the truth."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._logs: OrderedDict[str, deque[_Entry]] = OrderedDict()
        self.size = 0

    def add(self, commit: Commit) -> None:
        """Keeps a committed commit, if it continues what is held of its log."""
        entries = self._logs.setdefault(commit.log, deque())
        self._logs.move_to_end(commit.log)
        if entries and entries[-1].last + 1 != commit.first:
            if entries[-1].last >= commit.last:
                return
            self._drop(entries)
        events = read_commit(commit)
        entry = _Entry(commit.first, commit.last, commit.size + EVENT_BYTES * len(events), events)
        entries.append(entry)
        self.size += entry.size
        self._shrink()

    def after(self, log: str, seq: int) -> Sequence[Event]:
        """The events of one commit from `seq` on; empty if the buffer does not hold them without a gap."""
        for entry in reversed(self._logs.get(log, ())):
            if entry.first <= seq <= entry.last:
                return entry.events[seq - entry.first :]
            if entry.last < seq:
                break
        return ()

    def _drop(self, entries: deque[_Entry]) -> None:
        self.size -= sum(entry.size for entry in entries)
        entries.clear()

    def _shrink(self) -> None:
        while self.size > self._max_bytes and self._logs:
            log, entries = next(iter(self._logs.items()))
            if entries:
                self.size -= entries.popleft().size
            if not entries:
                del self._logs[log]
