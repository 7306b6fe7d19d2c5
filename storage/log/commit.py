"""The events of commits, as readers get them."""

from collections.abc import Collection, Sequence

from storage import events
from storage.database import Commit
from storage.events import Event


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
