"""Maintains the rows of runs: a commit's transaction writes the rows that its events change."""

from collections.abc import Collection, Sequence

from storage.database import Queries, Transaction
from storage.events import WIRE_TYPES, Event, RunStatus, TurnStart, stored
from storage.log import reading
from storage.log.admission import turn_starts
from storage.log.commit import Commit, read_commit
from storage.session import SessionMeta
from storage.views.run_rows import INHERITED_TYPES, RUNNING_TYPES, RunRow, apply, inherited_state, touched

WHOLE_TYPES = frozenset(WIRE_TYPES) - {"assistant/chunk"}
"""Types of the events that determine a run's row, if none of its events is inherited."""
PAGE = 100
"""Inherited events per read: usually the first few of a turn are enough."""


async def update(tx: Transaction, meta: SessionMeta, commit: Commit, admitted: Sequence[Event] | None = None) -> None:
    """Writes the rows that a commit's events change. `meta` is the session before the commit.

    `admitted` are the events that the commit was built from, if the caller still has them. Nothing is read or written
    if no event belongs to a turn, or if all are chunks in a session without inherited events.
    """
    types = None if meta.own_start else WHOLE_TYPES
    if not any("turnId" in event for event in commit.events if types is None or event["type"] in types):
        return
    events = read_commit(commit, types) if admitted is None else _recorded_for_rows(commit, admitted)
    turns = touched(events, meta)
    rows: dict[str, RunRow] = {}
    if turns:
        rows = await tx.run_rows(meta.space, meta.id, turns)
        open_turns = {turn.turn for turn in meta.open}
        rows |= await inherited_rows(tx, meta, turns - rows.keys(), open_turns)
    changed = apply(rows, events, meta)
    if changed:
        await tx.put_run_rows(list(changed.values()))


def _recorded_for_rows(commit: Commit, admitted: Sequence[Event]) -> list[Event]:
    """The events as rows need them. Timestamped drafts pass through; only turn starts need a seq."""
    return [
        event
        if event.timestamp is not None and event.seq < 0 and not isinstance(event, TurnStart)
        else stored(event, commit.log, commit.session, seq, commit.at)
        for seq, event in enumerate(admitted, commit.first)
    ]


async def inherited_rows(
    queries: Queries, meta: SessionMeta, turns: Collection[str], open_turns: Collection[str]
) -> dict[str, RunRow]:
    """Rows made from inherited events alone, by turn, for turns without an event in the session's own log yet.

    Turns that no inherited event started are left out. `open_turns` are the turns open at the end of the inherited
    events. Reads from the turns' starts until later events can no longer change the rows.
    """
    if not turns or not meta.own_start:
        return {}
    starts = await turn_starts(queries, meta, turns)
    inherited = {turn: seq for turn, seq in starts.items() if seq < meta.own_start}
    if not inherited:
        return {}
    feedback = bool(meta.inherited.types.get("run/feedback"))
    rows: dict[str, RunRow] = {}
    seq = 0
    while seq < meta.own_start:
        if all(_is_settled(row, open_turns, feedback) for row in rows.values()):
            unread = [start for turn, start in inherited.items() if turn not in rows]
            if not unread:
                break
            seq = max(seq, min(unread))
        begun = len(rows) == len(inherited) and all(row.status is not RunStatus.PENDING for row in rows.values())
        types = RUNNING_TYPES if begun else INHERITED_TYPES
        found = await reading.read(queries, meta.segments[:-1], seq, meta.own_start, PAGE, types=types)
        rows = inherited_state(rows, (event for event in found.events if event.turn_id in inherited), meta)
        seq = found.reached
    return rows


def _is_settled(row: RunRow, open_turns: Collection[str], feedback: bool) -> bool:
    """Whether no later inherited event can change the row. `feedback`: run/feedback events may be among them."""
    if feedback:
        return False
    if row.turn_id in open_turns:
        return row.query is not None and row.status is RunStatus.RUNNING
    return row.ended_at is not None
