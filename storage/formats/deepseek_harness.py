"""Native session logs of DeepSeek Harness: a header line, then records whose seq is their position.

Each record becomes one event, and a packed line of n chunks n of them, so that seqs named inside a log still hold.
A child with a seed repeats the first `seedLength` events of its parent: it becomes a fork of it.
https://github.com/deepseek-ai/deepseek-harness
"""

from collections.abc import Sequence

from storage import errors, text
from storage.formats.deepseek_events import Log
from storage.formats.foreign import ForeignSession, Losses, Reading, legal_id, ordered
from storage.formats.records import Document, as_object

FORMAT = "deepseek-harness"


def fits(first: object) -> bool:
    """Whether the first record of a document is a header of this format."""
    return isinstance(first, dict) and first.get("type") == "session" and "createdAt" in first and "format" not in first


def read(documents: Sequence[Document]) -> list[Reading]:
    """One reading per tree of logs that name each other as parents; the file of a log says nothing of its place.

    Raises BadInput, with the line, for a missing header and for records that break the format.
    """
    logs: list[Log] = []
    for document in documents:
        _add(document, logs)
    by_id: dict[str, list[Log]] = {}
    for log in logs:
        by_id.setdefault(str(log.header.get("id")), []).append(log)
    linked = {log.key: _linked(log, by_id) for log in logs}
    trees: dict[str, tuple[list[ForeignSession], Losses]] = {}
    tree_of: dict[str, str] = {}
    for session in ordered(session for session, _ in linked.values()):
        tree = tree_of[session.key] = tree_of[session.parent] if session.parent else session.key
        sessions, losses = trees.setdefault(tree, ([], Losses()))
        sessions.append(session)
        losses.include(linked[session.key][1])
    return [Reading(FORMAT, sessions, losses.warnings()) for sessions, losses in trees.values()]


def _add(document: Document, logs: list[Log]) -> None:
    log: Log | None = None
    for place, value in document.records:
        record = as_object(value, place)
        if record.get("type") == "session":
            log = Log(f"{len(logs)} {place}", place, record)
            logs.append(log)
        elif log is not None:
            log.add(record, place)
        else:
            raise errors.BadInput(f"{place}: a record before the header line of its session")


def _linked(log: Log, by_id: dict[str, list[Log]]) -> tuple[ForeignSession, Losses]:
    losses = Losses()
    losses.include(log.losses)
    kept = {name: value for name, value in log.header.items() if name != "type"}
    own_id = legal_id(kept.get("id"))
    if own_id and by_id[own_id][0] is not log:
        losses.add("session", "got a new id, as an earlier one has the same")
        own_id = None
    if own_id:
        del kept["id"]
    parent = _parent(log, by_id, losses)
    at_seq = 0
    if parent is not None:
        del kept["parentSession"]
        seed = log.events[: log.seed]
        at_seq = log.seed if len(seed) == log.seed and seed == parent.events[: log.seed] else 0
        if at_seq:
            del kept["seedLength"]
        elif log.seed:
            losses.add("fork", "is kept whole, as it does not begin with its parent's events")
    if not at_seq:
        losses.include(log.seed_losses)
    session = ForeignSession(
        key=log.key,
        label=log.title,
        events=log.events[at_seq:],
        id=own_id,
        parent=None if parent is None else parent.key,
        source=parent.key if parent and at_seq else None,
        at_seq=at_seq,
        metadata=text.to_json(kept, log.place) if kept else None,
    )
    return session, losses


def _parent(log: Log, by_id: dict[str, list[Log]], losses: Losses) -> Log | None:
    named = log.header.get("parentSession")
    if named is None:
        return None
    found = [other for other in by_id.get(str(named), []) if other is not log]
    if len(found) == 1:
        return found[0]
    why = "several documents could be its parent" if found else "its parent is not among the documents"
    losses.add("session", f"became a root, as {why}")
    return None
