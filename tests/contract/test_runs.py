"""Runs of a session: each append updates their rows, and whole runs are read from the log."""

from functools import partial

import pytest

from storage import errors
from storage.events import AssistantChunk, Event, RunFeedback, RunStatus, StepEnd, StepStart, TurnEnd, TurnStart
from storage.log import run_index
from storage.readers import runs
from storage.run_filter import RunFilter
from storage.session import SessionStatus, SlotName
from storage.store import Store
from storage.views.run_rows import MAX_TEXT
from storage.views.run_values import CLEARED_EVALUATION, CLEARED_FEEDBACK
from tests.contract.runs import assert_runs_match_log, rows_of
from tests.contract.shorthand import SPACE, append, conversation, create, fork, put, session, texts, user
from tests.counting import counted
from tests.storage.views.test_runs import call, result

TURN, END = TurnStart(turn_id="t", agent_flow="CHAT"), TurnEnd(turn_id="t", status=RunStatus.FAILED, error="why")
STEP = StepStart(step_id="s", agent_name="planner")
CHUNK = AssistantChunk(delta="x", turn_id="t")
LONG = "x" * (MAX_TEXT + 1)


@pytest.fixture(autouse=True)
def reading_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the stopping point of a read matter even in short logs."""
    monkeypatch.setattr(run_index, "PAGE", 1)
    monkeypatch.setattr(runs, "EVENTS_AT_ONCE", 1)


async def test_rows_follow_each_append(store: Store) -> None:
    await create(store, "a")
    for event in [*conversation(2), TURN, STEP, call(), CHUNK, user("x"), END]:
        await append(store, "a", event)
        await assert_runs_match_log(store, "a")
    row = (await rows_of(store, "a"))["t"]
    assert (row.status, row.agent_names, row.tool_names, row.tool_calls) == (
        RunStatus.FAILED,
        ("planner",),
        ("search",),
        1,
    )


async def test_a_repeated_append_counts_nothing_twice(store: Store) -> None:
    await create(store, "a")
    for _ in range(2):
        await append(store, "a", TURN, key="1")
        await append(store, "a", STEP, call(), StepEnd(step_id="s", token_count=5), key="2")
    with pytest.raises(errors.BadInput):
        await append(store, "a", call(), TURN)
    row = (await rows_of(store, "a"))["t"]
    assert (row.steps, row.tool_calls, row.tokens) == (1, 1, 5)


async def test_a_consumed_insight_is_an_event_of_its_turn(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN)
    await put(store, "a", SlotName.INSIGHT, "look")
    await store.sessions.consume_insight("space", "a", None, None, None)
    await assert_runs_match_log(store, "a")
    await fork(store, "a", id="b")
    await put(store, "b", SlotName.INSIGHT, "look")
    await store.sessions.consume_insight("space", "b", None, None, None)
    await assert_runs_match_log(store, "b")
    assert set(await rows_of(store, "b")) == {"t"}


async def test_a_row_counts_only_the_sessions_own_events(store: Store) -> None:
    await create(store, "a")
    tokens = StepEnd(step_id="s", token_count=5)
    await append(store, "a", *conversation(1), TURN, user("why"), STEP, call(), tokens)
    await fork(store, "a", id="b")
    assert await rows_of(store, "b") == {}
    [torn, whole] = await store.runs.of_session(await session(store, "b"), 10, None)
    assert (torn.inherited, whole.inherited) == (True, True)
    await append(store, "b", StepStart(step_id="s2"), StepEnd(step_id="s2", token_count=7), END)
    source, child = (await rows_of(store, "a"))["t"], (await rows_of(store, "b"))["t"]
    assert (source.tokens, source.steps, source.tool_calls, source.status) == (5, 1, 1, RunStatus.RUNNING)
    assert (child.tokens, child.steps, child.tool_calls, child.status) == (7, 1, 0, RunStatus.FAILED)
    assert (child.query, child.agent_flow, child.origin_session_id) == ("why", "CHAT", "a")
    await assert_runs_match_log(store, "b")
    assert (await store.runs.of_session(await session(store, "b"), 1, None))[0].token_count == 12


@pytest.mark.parametrize("own", [CHUNK, user("own"), result(), RunFeedback(turn_id="t", feedback="ok"), END])
@pytest.mark.parametrize(
    "inherited",
    [
        [TURN],
        [TURN, STEP],
        [TURN, user("query"), user("x"), user("x"), STEP],
        [TURN, STEP, user(""), CHUNK, user("query")],
        [TURN, call(), call(), result()],
        [TURN, STEP, user("query"), RunFeedback(turn_id="t", feedback="early", self_evaluation="1")],
        [TurnStart(turn_id="t", query="given"), user("x"), STEP, call()],
    ],
)
async def test_the_first_own_event_of_an_inherited_turn_finds_its_state(
    store: Store, inherited: list[Event], own: Event
) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(1), *inherited)
    await fork(store, "a", id="b")
    await fork(store, "b", id="c", prompt="go on")
    for id in ("b", "c"):
        await append(store, id, own)
        await assert_runs_match_log(store, id)
        await append(store, id, user("then"), CHUNK) if own is not END else None
        await assert_runs_match_log(store, id)


LATE: list[Event] = [
    result(turn_id="t"),
    result(turn_id="t", result='"again"'),
    RunFeedback(turn_id="t", feedback="good", self_evaluation='{"score":1}'),
    RunFeedback(turn_id="t", feedback=LONG, self_evaluation=f'"{LONG}"'),
    TurnStart(turn_id="next"),
    result(),
    result("c"),
]


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("calls", [0, 1, 2])
async def test_late_events_of_a_turn_are_in_its_run(store: Store, late: Event, calls: int) -> None:
    await create(store, "a")
    await append(store, "a", TURN, *[call() for _ in range(calls)], END, *texts(3), TurnStart(turn_id="u"))
    await append(store, "a", *texts(2), late, *texts(2))
    await assert_runs_match_log(store, "a")
    await fork(store, "a", id="b")
    await assert_runs_match_log(store, "b")
    await append(store, "b", result(turn_id="u"), RunFeedback(turn_id="t", self_evaluation="2"), call())
    await assert_runs_match_log(store, "b")


async def test_feedback_can_be_cleared_and_given_in_an_archived_session(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(1))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)

    async def give(feedback: str | None, evaluation: str | None) -> tuple[str | None, str | None]:
        given = await store.maintenance.give_feedback(SPACE, "a", "turn-0", feedback, evaluation)
        await assert_runs_match_log(store, "a")
        return given.run.feedback, given.run.self_evaluation

    assert await give("good", "1") == ("good", "1")
    assert await give(CLEARED_FEEDBACK, None) == (None, "1")
    assert await give("bad", CLEARED_EVALUATION) == ("bad", None)
    found = await store.runs.page(SPACE, RunFilter(feedback="good"), 10, None)
    assert found is not None
    assert found.rows == []
    assert (await session(store, "a")).status is SessionStatus.ARCHIVED
    with pytest.raises(errors.Archived):
        await append(store, "a", user("x"))


async def test_feedback_reaches_distant_turns_and_inherited_ones(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(5), TURN, user("x"))
    await fork(store, "a", id="b")
    feedback = [RunFeedback(turn_id=turn, feedback=turn) for turn in ("turn-0", "t", "turn-4")]
    await append(store, "b", *feedback, TurnStart(turn_id="own"))
    await assert_runs_match_log(store, "b")
    assert {turn: row.feedback for turn, row in (await rows_of(store, "b")).items()} == {
        "turn-0": "turn-0",
        "t": "t",
        "turn-4": "turn-4",
        "own": None,
    }


async def test_finding_the_state_of_an_inherited_turn_has_constant_cost(store: Store) -> None:
    counts = []
    for more in (3, 700):
        await create(store, f"{more}")
        await append(store, f"{more}", *conversation(1), TURN, user("query"), STEP, *texts(more))
        await fork(store, f"{more}", id=f"{more}-fork")
        meta = await session(store, f"{more}-fork")
        async with counted(store) as count:
            rows = await store.database.read(
                partial(run_index.inherited_rows, meta=meta, turns={"t"}, open_turns={"t"})
            )
        assert rows["t"].query == "query"
        counts.append(count.queries)
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("turn", ["a\x00b", "\x00", "🌳" * 256, "\ud800", "$where", "a.b", " ", "b/c"])
async def test_any_text_can_be_a_turn_id(store: Store, turn: str) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="a"), TurnStart(turn_id=turn), StepStart(step_id="s", turn_id=turn))
    await append(store, "a", TurnEnd(turn_id=turn))
    await assert_runs_match_log(store, "a")
    run = await store.runs.one(await session(store, "a"), turn)
    assert run is not None
    assert (run.turn_id, run.status) == (turn.replace("\ud800", "\ufffd"), RunStatus.SUCCESS)


async def test_runs_of_a_session_are_paged_back_from_the_newest(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(7))
    meta = await session(store, "a")
    newest = await store.runs.of_session(meta, 3, None)
    assert [run.turn_id for run in newest] == ["turn-6", "turn-5", "turn-4"]
    older = await store.runs.of_session(meta, 200, newest[-1].start_seq)
    assert [run.turn_id for run in older] == ["turn-3", "turn-2", "turn-1", "turn-0"]
    assert await store.runs.of_session(meta, 3, 10_000) == newest
    assert await store.runs.of_session(meta, 0, None) == await store.runs.of_session(meta, 5, 0) == []
    for first, before_seq, argument in ((-1, None, "first"), (201, None, "first"), (1, -1, "beforeSeq")):
        with pytest.raises(errors.BadInput, match=argument):
            await store.runs.of_session(meta, first, before_seq)


async def test_a_turn_never_started_in_the_visible_log_has_no_run(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, END)
    await fork(store, "a", id="b", at_seq=0)
    await fork(store, "a", id="c", at_seq=1)
    assert await store.runs.one(await session(store, "a"), "other") is None
    assert await store.runs.one(await session(store, "b"), "t") is None
    run = await store.runs.one(await session(store, "c"), "t")
    assert run is not None
    assert (run.id, run.status, run.inherited) == ("c/a/t", RunStatus.PENDING, True)


async def test_rows_are_deleted_with_their_session(store: Store) -> None:
    await create(store, "a")
    await create(store, "b", "a")
    await create(store, "c")
    for id in ("a", "b", "c"):
        await append(store, id, *conversation(2))
    await store.tree.delete("space", "a", cascade=True)
    assert [await rows_of(store, id) for id in ("a", "b")] == [{}, {}]
    assert set(await rows_of(store, "c")) == {"turn-0", "turn-1"}
    await create(store, "a")
    await append(store, "a", TURN)
    assert set(await rows_of(store, "a")) == {"t"}
