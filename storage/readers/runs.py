"""Reads runs: the whole runs of one session from its log, and pages of their rows across sessions."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storage import errors, text
from storage.cursor import Cursor, binding, check_count, decode, encode
from storage.database import Queries
from storage.log import reading
from storage.log.admission import turn_starts
from storage.log.run_index import WHOLE_TYPES
from storage.run_filter import RunFilter
from storage.scope import Scope
from storage.session import SessionMeta
from storage.session_storage import MAX_PAGE
from storage.views.run_rows import RunRow
from storage.views.runs import Run, Runs

ANSWER_TYPES = frozenset({"turn/start", "tool/call", "tool/result"})
"""Types of the events that decide which result answers which call."""
LATE_TYPES = frozenset({"tool/result", "run/feedback"})
"""Types of the events that may be logged for a turn after its end."""
LATE_TEXTS = frozenset({"feedback", "selfEvaluation"})
"""The fields of a row that these events set."""
EVENTS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class RunPage:
    """Rows of runs, the latest started first, and whether more follow."""

    rows: list[RunRow]
    more: bool
    bound: str

    def cursor(self, row: RunRow) -> str:
        """The cursor of one of the rows."""
        return encode(Cursor(row.started_at, row.place), self.bound)


class RunReader:
    """The runs of sessions and across sessions."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def of_session(self, meta: SessionMeta, first: int, before_seq: int | None) -> list[Run]:
        """The runs of a session; see `session_runs`."""
        return await self._scope.read(lambda queries: session_runs(queries, meta, first, before_seq))

    async def one(self, meta: SessionMeta, turn_id: str) -> Run | None:
        """The run of one turn of a session; None when its visible log never started the turn."""
        return await self._scope.read(lambda queries: one_run(queries, meta, turn_id))

    async def many(self, space: str, keys: Sequence[tuple[str, str]]) -> list[Run | None]:
        """The runs of these (session id, turn id), in order; None for each whose session or turn is unknown."""
        ids = {id for id, _ in keys}
        metas = await self._scope.read(lambda queries: queries.sessions(space, ids))

        async def one(id: str, turn_id: str) -> Run | None:
            return await self.one(metas[id], turn_id) if id in metas else None

        return await asyncio.gather(*(one(id, turn_id) for id, turn_id in keys))

    async def page(self, space: str, selection: RunFilter, first: int, after: str | None) -> RunPage | None:
        """One page of rows across the sessions of a space; None when the session to look in is unknown.

        Raises BadInput for `first` outside of 0 to 200 and for a cursor of another list.
        """
        check_count(first, MAX_PAGE, "first")
        selection = selection.as_stored()
        bound = binding("runs", space, selection)
        cursor = decode(after, bound)

        async def query(queries: Queries) -> RunPage | None:
            session_id = selection.session_id
            if session_id is not None and await queries.session(space, session_id) is None:
                return None
            position = (cursor.time, cursor.id) if cursor else None
            found = await queries.run_page(space, selection, position, first + 1)
            return RunPage(found[:first], len(found) > first, bound)

        return await self._scope.read(query)


async def session_runs(queries: Queries, meta: SessionMeta, first: int, before_seq: int | None = None) -> list[Run]:
    """The whole runs of the `first` newest turns that start before `before_seq`, newest first.

    Raises BadInput for `first` outside of 0 to 200 and for a negative `before_seq`.
    """
    check_count(first, MAX_PAGE, "first")
    if before_seq is not None and before_seq < 0:
        raise errors.BadInput(f"beforeSeq: must not be negative, is {before_seq}")
    starts: dict[str, int] = {}
    low = meta.head if before_seq is None else min(before_seq, meta.head)
    while len(starts) < first and low > 0:
        wanted = first - len(starts)
        found = await reading.read(queries, meta.segments, 0, low, wanted, newest_first=True, types={"turn/start"})
        starts |= {event.turn_id: event.seq for event in found.events if event.turn_id is not None}
        low = found.reached
    return (await _whole(queries, meta, starts))[::-1] if starts else []


async def one_run(queries: Queries, meta: SessionMeta, turn_id: str) -> Run | None:
    """The whole run of a turn; None when the session's visible log never started it."""
    start = (await turn_starts(queries, meta, [text.clean(turn_id)])).get(text.clean(turn_id))
    if start is None or start >= meta.head:
        return None
    [run] = await _whole(queries, meta, {text.clean(turn_id): start})
    return run


async def _whole(queries: Queries, meta: SessionMeta, starts: Mapping[str, int]) -> list[Run]:
    """The runs of all turns that start from the first to the last of `starts`, in that order.

    Reads the log only until they have ended, without chunks, of which there may be many. Events logged after a turn's
    end, and times that only chunks decide, are in its row; the log is read further only for what rows lack.
    """
    rows = await queries.run_rows(meta.space, meta.id, starts.keys())
    seq, stop = min(starts.values()), max(starts.values()) + 1
    fold = Runs(meta.id, meta.own_start, stop)
    while seq < meta.head:
        if seq < stop or fold.open:
            types, end = WHOLE_TYPES, meta.head
        elif fold.waiting:
            types, end = ANSWER_TYPES | LATE_TYPES, meta.head
        else:
            types, end = LATE_TYPES, max(_read_late_to(meta, start, rows.get(turn)) for turn, start in starts.items())
        if seq >= end or not types & meta.totals.types.keys():
            break
        found = await reading.read(queries, meta.segments, seq, end, EVENTS_AT_ONCE, types=types)
        fold.add_all(found.events)
        seq = found.reached
    return [_completed(run, rows.get(run.turn_id)) for run in fold.done()]


def _read_late_to(meta: SessionMeta, start: int, row: RunRow | None) -> int:
    """Up to which seq to read late events of a turn, because its row lacks them."""
    if row is not None:
        return meta.head if LATE_TEXTS & set(row.cut) else 0
    return meta.own_start if start < meta.own_start else meta.head


def _completed(run: Run, row: RunRow | None) -> Run:
    """The run with the values of its row, which exists if one of its events is the session's own."""
    if row is None:
        return run
    return replace(
        run,
        inherited=False,
        updated_at=row.updated_at,
        feedback=run.feedback if "feedback" in row.cut else row.feedback,
        self_evaluation=run.self_evaluation if "selfEvaluation" in row.cut else row.self_evaluation,
    )
