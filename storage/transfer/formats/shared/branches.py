"""Turns trees of messages into sessions: the path of first children is one, each further child begins a fork."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from storage.events import Event
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.naming import SessionIds, label_of_events
from storage.transfer.formats.shared.shared_prefixes import MAX_DEPTH

N = TypeVar("N")
M_contra = TypeVar("M_contra", contravariant=True)


class PathWriter(Protocol[M_contra]):
    """Logs the messages of one path, one after the other, with its `builder`."""

    builder: LogBuilder

    def add(self, node: M_contra) -> None:
        """Log the next message of the path."""

    def end(self) -> None:
        """End the path."""

    def fork(self, key: str) -> Self:
        """Return a writer in the same state, for another session."""


class Branch(NamedTuple, Generic[N]):
    """A session of a tree: the messages from `first` to `last`, with its events from `at_seq` on.

    A branch that would be a fork of too many forks has all events of its path, and `at_seq` is None.
    """

    key: str
    first: N
    last: N
    source: str | None
    at_seq: int | None
    events: list[Event]


class _PendingBranch(NamedTuple, Generic[N]):
    writer: PathWriter[N]
    node: N
    source: str | None
    at_seq: int
    depth: int


def split_branches(
    first: N, children: Callable[[N], Sequence[N]], key: Callable[[N], str], writer: PathWriter[N]
) -> Iterator[Branch[N]]:
    """Yield the sessions of a tree: sources before their forks, forks level by level.

    `children` must be in the order of their creation, so that a tree that has grown gives the same sessions, longer,
    and new ones. `key` names the session that begins with a message.
    """
    waiting = deque([_PendingBranch(writer, first, None, 0, 0)])
    paths: dict[str, tuple[str | None, int, list[Event]]] = {}
    while waiting:
        start = waiting.popleft()
        own = start.writer.builder.key
        node = start.node
        while True:
            start.writer.add(node)
            replies = children(node)
            for reply in replies[1:]:
                at_seq = start.writer.builder.head
                waiting.append(_PendingBranch(start.writer.fork(key(reply)), reply, own, at_seq, start.depth + 1))
            if not replies:
                break
            node = replies[0]
        start.writer.end()
        events = start.writer.builder.take_events()
        paths[own] = (start.source, start.at_seq, events)
        if start.depth and start.depth % MAX_DEPTH == 0:
            yield Branch(own, start.node, node, start.source, None, _visible(own, paths))
        else:
            yield Branch(own, start.node, node, start.source, start.at_seq, events)


def _visible(key: str, paths: dict[str, tuple[str | None, int, list[Event]]]) -> list[Event]:
    """All events of a session, including inherited ones."""
    parts: list[list[Event]] = []
    source: str | None = key
    end: int | None = None
    while source is not None:
        above, at_seq, events = paths[source]
        parts.append(events if end is None else events[: end - at_seq])
        source, end = above, at_seq
    return [event for part in reversed(parts) for event in part]


def fork_sessions(
    found: Sequence[Branch[N]],
    own_id: str | None,
    node_id: Callable[[N], object],
    ids: SessionIds,
    warnings: ImportWarnings,
) -> list[ForeignSession]:
    """Return the sessions of all branches but the first. Their ids join the first one's id and their node's.

    They do not count as sessions; further roots become children of the first one.
    """
    return [
        ForeignSession(
            key=branch.key,
            label=label_of_events(branch.events),
            events=branch.events,
            id=ids.claim(f"{own_id}:{id}", warnings) if own_id and (id := node_id(branch.first)) else None,
            parent=branch.source or found[0].key,
            source=branch.source,
            at_seq=branch.at_seq,
            counted=False,
        )
        for branch in found[1:]
    ]
