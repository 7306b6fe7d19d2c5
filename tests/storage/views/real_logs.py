"""The events of real logs, and where to cut them."""

from collections.abc import Sequence

from storage.events import AssistantChunk, Event
from tests.storage.transfer.formats.logs import read_log
from tests.storage.views.surface_logs import numbered


def logs(name: str) -> list[list[Event]]:
    """The visible logs of a file's sessions, including what forks inherit."""
    visible: dict[str, list[Event]] = {}
    for session in read_log(name).sessions:
        inherited = visible[session.source][: session.at_seq] if session.source is not None else []
        visible[session.key] = numbered([*inherited, *session.events])
    return list(visible.values())


def cuts(log: Sequence[Event]) -> list[int]:
    """Where windows start and end: everywhere except inside a run of chunks, where only the text differs."""
    inside = {
        seq for seq in range(2, len(log)) if all(isinstance(event, AssistantChunk) for event in log[seq - 2 : seq + 1])
    }
    return [seq for seq in range(len(log) + 1) if seq not in inside]
