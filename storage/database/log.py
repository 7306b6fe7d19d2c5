"""The log: commits, and the marks by which their turns, steps and cards are found."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from storage.log.commit import Commit


class MarkKind(StrEnum):
    """What a mark of a commit stands for."""

    TURN = "turn"
    STEP = "step"
    CARD = "card"


class MarkSpan(NamedTuple):
    """One mark, where start <= seq < stop; without `stop`, wherever it is."""

    mark: str
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Holders:
    """Who still reads a log: its owner, and the largest cut (exclusive seq) among the forks that share it."""

    owned: bool
    largest_cut: int


class LogQueries(Protocol):
    """Reading commits. A log that is unknown has none."""

    async def commits(
        self,
        log: str,
        start: int,
        stop: int,
        *,
        newest_first: bool = False,
        types: Collection[str] | None = None,
        max_events: int,
        max_bytes: int,
    ) -> list[Commit]:
        """Commits with start <= first < stop, by first, ascending or with `newest_first` descending.

        Stops after the commit that reaches `max_events` or `max_bytes`, so a page has at least one commit if there is
        any. With `types`, returns only commits that hold an event of one of these types, and counts each of them as
        one event.
        """
        ...

    async def commit_before(self, log: str, seq: int, within: int) -> Commit | None:
        """The commit with the largest first where seq - within < first <= seq; None if there is none."""
        ...

    async def commit_by_key(self, log: str, key: str) -> Commit | None:
        """The commit that was appended to this log with an idempotency key; None if there is none."""
        ...

    async def mark_seqs(self, kind: MarkKind, spans: Collection[MarkSpan]) -> list[tuple[str, int]]:
        """(mark, seq) of the marks of a kind inside the spans, in no order; a mark that is unknown has none.

        A span without `stop` finds all its seqs. One with a `stop` finds at least its first and its last seq; only
        spans of cards, whose marks are plain ASCII, have one.
        """
        ...

    async def holders(self, log: str) -> Holders:
        """Who reads a log; not owned and a cut of 0 for one that nobody reads."""
        ...

    async def all_logs(self) -> list[str]:
        """Ids of all logs that have commits, in no order and without a limit."""
        ...

    async def unowned_logs(self) -> list[str]:
        """The logs among these that no session owns, because theirs was deleted; in no order."""
        ...


class LogWrites(Protocol):
    """Writing commits. A commit never changes; `Database.collect` drops those that nobody reads."""

    async def insert_commit(self, commit: Commit) -> None:
        """Writes a commit, and makes it known as a Notification of kind `log` once it is durable.

        The log's (log, first) and (log, key) are unique: of two transactions that insert the same one, one is started
        over.
        """
        ...
