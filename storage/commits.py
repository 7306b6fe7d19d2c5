"""Commits as readers get them."""

from collections.abc import Collection

from storage import events
from storage.database import Commit
from storage.events import Event


def read_commit(commit: Commit, types: Collection[str] | None = None) -> list[Event]:
    """The events of a commit, those of `types` alone, with the time it was recorded where the writer gave none."""
    loaded = []
    for offset, stored in enumerate(commit.events):
        if types is not None and stored["type"] not in types:
            continue
        if "timestamp" not in stored:
            stored = {**stored, "timestamp": commit.at}
        loaded.append(events.load(stored, commit.log, commit.session, commit.first + offset))
    return loaded
