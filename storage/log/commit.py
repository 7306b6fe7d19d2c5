"""Commits: the events of one append as stored, and as readers get them."""

from collections.abc import Collection, Sequence
from typing import Any

from storage import events
from storage.events import Event, Instant, Model
from storage.log.state import LogState, OpenTurn, Totals
from storage.session import Slot

MAX_EVENTS = 1_000
"""Events in one commit."""
MAX_COMMIT_BYTES = 8 * 1024 * 1024
"""Bytes of a commit's events as stored."""


class Commit(Model):
    """The events of one append, stored whole or not at all, and the state of the session's log after them.

    `turns` and `steps` are the marks of the turns and steps that it starts, `turn_seqs` and `step_seqs` the seqs where
    they start; `cards` and `card_seqs` the same of its cards that have an id. `at` is the writing server's clock in
    ms. `size` is the bytes of its events as JSON. `insight` is the slot that an insight/delivered event consumed, as
    it was.
    """

    id: str
    space: str
    session: str
    log: str
    first: int
    last: int
    at: Instant
    types: tuple[str, ...]
    turns: tuple[str, ...] = ()
    turn_seqs: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    step_seqs: tuple[int, ...] = ()
    cards: tuple[str, ...] = ()
    card_seqs: tuple[int, ...] = ()
    open: tuple[OpenTurn, ...] = ()
    totals: Totals = Totals()
    key: str | None = None
    digest: str | None = None
    size: int
    insight: Slot | None = None
    events: list[dict[str, Any]]

    @property
    def state(self) -> LogState:
        """The state of the log after this commit."""
        return LogState(head=self.last + 1, open=self.open, totals=self.totals)


def read_commit(commit: Commit, types: Collection[str] | None = None, seqs: range | None = None) -> list[Event]:
    """The events of a commit with a type in `types` and a seq in `seqs`.

    Events without a timestamp get the time at which the commit was recorded.
    """
    loaded = []
    for seq, stored in enumerate(commit.events, commit.first):
        if (types is not None and stored["type"] not in types) or (seqs is not None and seq not in seqs):
            continue
        if "timestamp" not in stored:
            stored = {**stored, "timestamp": commit.at}
        loaded.append(events.load(stored, commit.log, commit.session, seq))
    return loaded


def recorded(commit: Commit, admitted: Sequence[Event]) -> list[Event]:
    """The same events as `read_commit`, faster: made from the events that the commit was built from."""
    log, session, at = commit.log, commit.session, commit.at
    return [events.stored(event, log, session, seq, at) for seq, event in enumerate(admitted, commit.first)]
