"""Checks the rows of runs against the logs that they are derived from, and repairs them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from storage.check.logs import BEYOND
from storage.check.problem import Problem
from storage.database import Database, Queries, Transaction
from storage.log import reading
from storage.log.commit import MAX_EVENTS, read_commit
from storage.log.reading import MAX_PAGE_BYTES
from storage.log.run_index import inherited_rows
from storage.session import SessionMeta
from storage.views.run_rows import RunRow, apply, touched

NAMED_TURNS = 3
"""How many turns a problem names."""
REPAIR = "they are made anew from its log"
DROP = "they are dropped"


@dataclass(frozen=True, slots=True)
class _Difference:
    """The turns whose rows are wrong, missing, or without any event in the log."""

    wrong: frozenset[str]
    missing: frozenset[str]
    extra: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.wrong or self.missing or self.extra)

    def problems(self, meta: SessionMeta, repaired: bool) -> list[Problem]:
        """A problem for each kind of difference."""
        kinds = (
            ("lacks rows of runs", self.missing),
            ("has rows of runs with other values than its log", self.wrong),
            ("has rows of runs of which its log has no event", self.extra),
        )
        return [
            Problem(meta.space, meta.id, f"{what}: {_names(turns)}", REPAIR, repaired=repaired)
            for what, turns in kinds
            if turns
        ]


async def check_runs(database: Database, meta: SessionMeta, repair: bool) -> list[Problem]:
    """What is wrong with the rows of a session whose log is whole. Holds its rows in memory."""
    expected: dict[str, RunRow] = {}
    seq = meta.own_start
    while True:
        while (after := await database.read(partial(_fold, meta=meta, expected=expected, seq=seq))) > seq:
            seq = after
        difference = await database.read(partial(_compare, meta=meta, expected=expected, seq=seq))
        if difference is not None and not difference:
            return []
        work = partial(_settle, meta=meta, expected=expected, seq=seq, repair=repair)
        if (found := await database.transact(work)) is not None:
            return found


async def check_orphans(database: Database, space: str, repair: bool) -> list[Problem]:
    """Rows of sessions that do not exist, as problems."""

    async def query(queries: Queries) -> set[str]:
        rows = await queries.run_sessions(space)
        return rows - {head.id for head in await queries.heads(space)}

    async def check(tx: Transaction, *, id: str) -> list[Problem]:
        rows = await tx.run_rows(space, id, None)
        if not rows or await tx.session(space, id) is not None:
            return []
        if repair:
            await tx.drop_run_rows(space, id, None)
        return [Problem(space, id, f"has rows of runs, and no session: {_names(rows)}", DROP, repaired=repair)]

    gone = sorted(await database.read(query))
    return [problem for id in gone for problem in await database.transact(partial(check, id=id))]


async def _fold(queries: Queries, *, meta: SessionMeta, expected: dict[str, RunRow], seq: int) -> int:
    """Folds the next own events, from `seq` on, into the expected rows. Returns the seq to go on from."""
    commits = await queries.commits(meta.log, seq, BEYOND, max_events=MAX_EVENTS, max_bytes=MAX_PAGE_BYTES)
    for commit in commits:
        events = read_commit(commit)
        if meta.own_start and (new := touched(events, meta) - expected.keys()):
            cut = await reading.state_at(queries, meta.model_copy(update={"head": BEYOND}), meta.own_start)
            known = meta.model_copy(update={"inherited": cut.totals})
            expected |= await inherited_rows(queries, known, new, {turn.turn for turn in cut.open})
        expected |= apply(expected, events, meta)
    return commits[-1].last + 1 if commits else seq


async def _compare(
    queries: Queries, *, meta: SessionMeta, expected: Mapping[str, RunRow], seq: int
) -> _Difference | None:
    """How the stored rows differ from the expected ones, folded up to `seq`; None if the log has grown beyond it."""
    now = await queries.session(meta.space, meta.id)
    if now is None or now.log != meta.log:
        return _Difference(frozenset(), frozenset(), frozenset())
    if await queries.commits(meta.log, seq, BEYOND, max_events=1, max_bytes=1):
        return None
    stored = await queries.run_rows(meta.space, meta.id, None)
    wrong = frozenset(turn for turn in stored.keys() & expected.keys() if stored[turn] != expected[turn])
    return _Difference(wrong, frozenset(expected.keys() - stored.keys()), frozenset(stored.keys() - expected.keys()))


async def _settle(
    tx: Transaction, *, meta: SessionMeta, expected: Mapping[str, RunRow], seq: int, repair: bool
) -> list[Problem] | None:
    """Checks the rows again, inside a transaction, and repairs them; None if the log has grown."""
    difference = await _compare(tx, meta=meta, expected=expected, seq=seq)
    if difference is None:
        return None
    if repair and difference:
        await tx.drop_run_rows(meta.space, meta.id, difference.wrong | difference.extra)
        await tx.put_run_rows([expected[turn] for turn in sorted(difference.wrong | difference.missing)])
    return difference.problems(meta, repair)


def _names(turns: Iterable[str]) -> str:
    """The first turns in order, and how many more."""
    ordered = sorted(turns)
    more = f" and {len(ordered) - NAMED_TURNS} more" if len(ordered) > NAMED_TURNS else ""
    return ", ".join(map(repr, ordered[:NAMED_TURNS])) + more
