"""Runs across the sessions of a space: every filter, alone and combined, in consistent pages."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from storage import errors
from storage.events import Event, RunFeedback, RunStatus, StepStart, TurnEnd, TurnStart
from storage.lifecycle import Fork, NewSession
from storage.run_filter import RunFilter
from storage.store import Store
from storage.views.run_rows import MAX_TEXT, RunRow
from tests.contract.runs import rows_of
from tests.contract.shorthand import SPACE, append, create, fork
from tests.storage.views.test_runs import call

SESSIONS = ("a", "b", "c")
LONG = "y" * (MAX_TEXT + 5)
NAMES = ["plan", "a\x00b", "a", "$where", "🌳", LONG]


async def fill(store: Store, space: str = SPACE) -> list[RunRow]:
    """Appends sixty turns to three sessions, several in the same millisecond; returns their rows, newest first."""
    chance = random.Random(3)
    for id in SESSIONS:
        await store.tree.create(space, NewSession(id=id))
    for number in range(60):
        turn, at = f"t{number}", chance.randrange(-4, 8) * 10
        flow, agent, tool = chance.choice([None, "CHAT", *NAMES]), chance.choice(NAMES), chance.choice(NAMES)
        drafts: list[Event] = [TurnStart(turn_id=turn, timestamp=at, agent_flow=flow)]
        if chance.random() < 0.8:
            drafts.append(StepStart(step_id="s", turn_id=turn, agent_name=agent))
            drafts.append(call(name=tool, turn_id=turn))
        if chance.random() < 0.7:
            status = chance.choice([RunStatus.SUCCESS, RunStatus.FAILED])
            drafts.append(TurnEnd(turn_id=turn, timestamp=at + chance.randrange(100), status=status))
        if chance.random() < 0.5:
            drafts.append(RunFeedback(turn_id=turn, feedback=chance.choice(["good", "bad", *NAMES])))
        await store.sessions.append(space, chance.choice(SESSIONS), drafts)
    rows: list[RunRow] = []
    for id in SESSIONS:
        rows += (await rows_of(store, id, space)).values()
    assert len(rows) == 60
    return sorted(rows, key=lambda row: (row.started_at, row.place), reverse=True)


FILTERS: dict[str, tuple[list[Any], Callable[[RunRow, Any], bool]]] = {
    "session_id": (["a", "c"], lambda row, value: row.session_id == value),
    "status": (list(RunStatus), lambda row, value: row.status is value),
    "agent_flow": (["CHAT", *NAMES, "x"], lambda row, value: row.agent_flow == value[:MAX_TEXT]),
    "agent_name": ([*NAMES, "x"], lambda row, value: value[:MAX_TEXT] in row.agent_names),
    "tool_name": ([*NAMES, "x"], lambda row, value: value[:MAX_TEXT] in row.tool_names),
    "feedback": (["good", *NAMES, "x"], lambda row, value: row.feedback == value[:MAX_TEXT]),
    "min_duration_ms": ([0.0, 40, 99.5], lambda row, value: row.duration_ms is not None and row.duration_ms >= value),
    "started_after": ([-40, -5, 0, 30], lambda row, value: row.started_at >= value),
    "started_before": ([-20, 0, 25, 70], lambda row, value: row.started_at < value),
}


async def paged(store: Store, selection: RunFilter, size: int, space: str = SPACE) -> list[RunRow]:
    """All rows of a selection, page by page."""
    rows: list[RunRow] = []
    after = None
    while True:
        page = await store.runs.page(space, selection, size, after)
        assert page is not None
        rows += page.rows
        if not page.more:
            return rows
        assert len(page.rows) == size
        after = page.cursor(page.rows[-1])


async def test_filters_select_the_same_rows_as_a_scan(store: Store) -> None:
    rows = await fill(store)
    assert await paged(store, RunFilter(), 7) == rows
    for name, (values, holds) in FILTERS.items():
        found = 0
        for value in values:
            expected = [row for row in rows if holds(row, value)]
            assert await paged(store, RunFilter(**{name: value}), 4) == expected, (name, value)
            found += len(expected)
        assert found > 0, name
    chance = random.Random(5)
    hits = 0
    for size in (2, 2, 3, 4) * 25:
        given = {name: chance.choice(FILTERS[name][0]) for name in chance.sample(sorted(FILTERS), size)}
        expected = [row for row in rows if all(FILTERS[name][1](row, value) for name, value in given.items())]
        assert await paged(store, RunFilter(**given), 3) == expected, given
        hits += bool(expected)
    assert hits > 10


async def test_pages_stay_consistent_while_runs_are_added_and_deleted(store: Store) -> None:
    rows = await fill(store)
    first = await store.runs.page(SPACE, RunFilter(), 20, None)
    assert first is not None
    await create(store, "new")
    await append(store, "new", TurnStart(turn_id="n", timestamp=1_000), TurnStart(turn_id="m", timestamp=-1_000))
    await store.tree.delete(SPACE, "b")
    second = await store.runs.page(SPACE, RunFilter(), 100, first.cursor(first.rows[-1]))
    assert second is not None
    assert not second.more
    assert [row.id for row in second.rows[:-1]] == [row.id for row in rows[20:] if row.session_id != "b"]
    assert second.rows[-1].turn_id == "m"


async def test_a_page_has_the_requested_size(store: Store) -> None:
    rows = await fill(store)
    for first, more in ((0, True), (59, True), (60, False), (200, False)):
        page = await store.runs.page(SPACE, RunFilter(), first, None)
        assert page is not None
        assert (page.rows, page.more) == (rows[:first], more)
    for first in (-1, 201):
        with pytest.raises(errors.BadInput, match="first"):
            await store.runs.page(SPACE, RunFilter(), first, None)


async def test_a_cursor_of_another_list_is_refused(store: Store) -> None:
    rows = await fill(store)
    page = await store.runs.page(SPACE, RunFilter(tool_name=LONG), 1, None)
    assert page is not None
    cursor = page.cursor(rows[0])
    assert await store.runs.page(SPACE, RunFilter(tool_name=LONG), 1, cursor) is not None
    for space, selection in ((SPACE, RunFilter()), ("other", RunFilter(tool_name=LONG))):
        with pytest.raises(errors.BadInput, match="another list"):
            await store.runs.page(space, selection, 1, cursor)
    with pytest.raises(errors.BadInput, match="not a cursor"):
        await store.runs.page(SPACE, RunFilter(), 1, "nonsense")


async def test_another_space_sees_nothing(store: Store) -> None:
    rows = await fill(store)
    assert await paged(store, RunFilter(), 10, "other") == []
    other = await fill(store, "other")
    assert [row.turn_id for row in other] == [row.turn_id for row in rows]
    assert await paged(store, RunFilter(), 50) == rows
    assert await paged(store, RunFilter(status=RunStatus.SUCCESS), 50, "other") == [
        row for row in other if row.status is RunStatus.SUCCESS
    ]
    await store.tree.delete("other", "a")
    assert await paged(store, RunFilter(), 50) == rows


async def test_an_unknown_session_has_no_page(store: Store) -> None:
    await create(store, "a")
    for id in ("b", "ä", "\x00", "a/b"):
        assert await store.runs.page(SPACE, RunFilter(session_id=id), 10, None) is None
    page = await store.runs.page(SPACE, RunFilter(session_id="a"), 10, None)
    assert page is not None
    assert (page.rows, page.more) == ([], False)


@pytest.mark.parametrize("name", ["agent_flow", "agent_name", "tool_name", "feedback"])
async def test_a_filter_with_text_that_no_row_can_hold_finds_nothing(store: Store, name: str) -> None:
    await fill(store)
    wanted: dict[str, Any] = {name: "\ud800"}
    assert await paged(store, RunFilter(**wanted), 10) == []


async def test_a_fork_lists_only_its_own_runs(store: Store) -> None:
    await create(store, "a")
    for number in range(3):
        await append(store, "a", TurnStart(turn_id=f"{number}", timestamp=number), TurnEnd(turn_id=f"{number}"))
    await append(store, "a", TurnStart(turn_id="torn", timestamp=3))
    await fork(store, "a", id="b")
    await append(store, "b", TurnEnd(turn_id="torn"))
    listed = [(row.session_id, row.turn_id, row.status) for row in await paged(store, RunFilter(), 2)]
    pending, success = RunStatus.PENDING, RunStatus.SUCCESS
    ended = [("a", f"{number}", success) for number in (2, 1, 0)]
    assert listed == [("b", "torn", success), ("a", "torn", pending), *ended]


async def test_a_turn_split_by_nested_forks_is_listed_once_in_each(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"))
    for source, fork_id in (("a", "f0"), ("f0", "f1"), ("f1", "f2")):
        await store.tree.fork(SPACE, Fork(source, id=fork_id, as_root=True, prompt="go on"))
    assert [row.session_id for row in await paged(store, RunFilter(), 2)] == ["f2", "f1", "f0", "a"]
