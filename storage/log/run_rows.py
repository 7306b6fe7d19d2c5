"""Keeping the rows of runs: what a commit makes of them, in the commit's own transaction."""

from collections.abc import Collection, Sequence

from storage.database import Commit, Queries, Transaction
from storage.events import WIRE_TYPES, Event, RunStatus, TurnStart, stored
from storage.log import reading
from storage.log.admission import turn_starts
from storage.log.commit import read_commit
from storage.session import SessionMeta
from storage.views.run_rows import INHERITED_TYPES, RunRow, apply, inherited_state, touched

WHOLE_TYPES = frozenset(WIRE_TYPES) - {"assistant/chunk"}
"""Types of the events that tell how a turn stands, if none of its events is inherited."""
PAGE = 100
"""Inherited events read at once: mostly the first few of a turn tell all."""


async def keep(tx: Transaction, meta: SessionMeta, commit: Commit, admitted: Sequence[Event] | None = None) -> None:
    """Writes the rows that a commit's events change. `meta` is the session as it was before the commit.

    `admitted` are the events that the commit was built of, where they are at hand. A commit whose events belong to no
    turn, or are pieces of answers in a session without inherited events, reads and writes nothing.
    """
    types = None if meta.own_start else WHOLE_TYPES
    if not any("turnId" in event for event in commit.events if types is None or event["type"] in types):
        return
    events = read_commit(commit, types) if admitted is None else _told(commit, admitted)
    turns = touched(events, meta)
    rows: dict[str, RunRow] = {}
    if turns:
        rows = await tx.run_rows(meta.space, meta.id, turns)
        open_turns = {turn.turn for turn in meta.open}
        rows |= await inherited_rows(tx, meta, turns - rows.keys(), open_turns)
    changed = apply(rows, events, meta)
    if changed:
        await tx.put_run_rows(list(changed.values()))


def _told(commit: Commit, admitted: Sequence[Event]) -> list[Event]:
    """The events as rows need them: as stored, or as they are if they have a time and no seq, which rows need of turn
    starts alone."""
    return [
        event
        if event.timestamp is not None and event.seq < 0 and not isinstance(event, TurnStart)
        else stored(event, commit.log, commit.session, seq, commit.at)
        for seq, event in enumerate(admitted, commit.first)
    ]


async def inherited_rows(
    queries: Queries, meta: SessionMeta, turns: Collection[str], open_turns: Collection[str]
) -> dict[str, RunRow]:
    """What inherited events tell of turns that the session's own log holds no event of yet, by turn.

    Left out are those that were not started in an inherited event. `open_turns` are those that were open where the
    inherited events end. Reads from the turns' starts until nothing more can be told of them.
    """
    if not turns or not meta.own_start:
        return {}
    starts = await turn_starts(queries, meta, turns)
    torn = {turn: seq for turn, seq in starts.items() if seq < meta.own_start}
    if not torn:
        return {}
    feedback = bool(meta.inherited.types.get("run/feedback"))
    rows: dict[str, RunRow] = {}
    seq = 0
    while seq < meta.own_start:
        if all(_is_settled(row, open_turns, feedback) for row in rows.values()):
            ahead = [start for turn, start in torn.items() if turn not in rows]
            if not ahead:
                break
            seq = max(seq, min(ahead))
        found = await reading.read(queries, meta.segments[:-1], seq, meta.own_start, PAGE, types=INHERITED_TYPES)
        rows = inherited_state(rows, (event for event in found.events if event.turn_id in torn), meta)
        seq = found.reached
    return rows


def _is_settled(row: RunRow, open_turns: Collection[str], feedback: bool) -> bool:
    """Whether later inherited events, with `feedback` among them or not, leave a row as it is."""
    if feedback:
        return False
    if row.turn_id in open_turns:
        return row.query is not None and row.status is RunStatus.RUNNING
    return row.ended_at is not None
