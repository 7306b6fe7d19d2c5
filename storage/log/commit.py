"""Commits as readers get them."""

from collections.abc import Collection, Sequence

from storage import events
from storage.database import Commit
from storage.events import Event


def read_commit(commit: Commit, types: Collection[str] | None = None, seqs: range | None = None) -> list[Event]:
    """The events of a commit, those of `types` in `seqs`, with the time it was recorded where the writer gave none."""
    loaded = []
    for seq, stored in enumerate(commit.events, commit.first):
        if (types is not None and stored["type"] not in types) or (seqs is not None and seq not in seqs):
            continue
        if "timestamp" not in stored:
            stored = {**stored, "timestamp": commit.at}
        loaded.append(events.load(stored, commit.log, commit.session, seq))
    return loaded


def recorded(commit: Commit, admitted: Sequence[Event]) -> list[Event]:
    """The same as `read_commit`, made of the events that the commit was built of, which is faster."""
    log, session, at = commit.log, commit.session, commit.at
    return [events.stored(event, log, session, seq, at) for seq, event in enumerate(admitted, commit.first)]
