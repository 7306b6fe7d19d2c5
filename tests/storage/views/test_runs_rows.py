"""The rows behind the `runs` query: updated commit by commit, they equal those rebuilt from the log."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from storage.events import (
    AssistantChunk,
    Event,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
    ToolCall,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.session import Segment, SessionMeta
from storage.views.run_rows import MAX_NAMES, MAX_TEXT, RunRow, apply, inherited_state, rebuild, touched
from storage.views.runs import runs
from tests.storage.views.test_runs import TORN, call, log, result
from tests.storage.views.test_runs_folding import logs


def session(own_start: int = 0, id: str = "s") -> SessionMeta:
    segments = [Segment(log="source", to=own_start)] if own_start else []
    own = Segment(log="own", start=own_start)
    return SessionMeta(space="space", id=id, label="", created_at=0, updated_at=0, segments=(*segments, own))


def append(rows: dict[str, RunRow], events: Sequence[Event], visible: Sequence[Event], meta: SessionMeta) -> None:
    """Updates the stored rows as an append does, reading no more than necessary."""
    named = touched(events, meta)
    found = {turn: rows[turn] for turn in named if turn in rows}
    missing = named - found.keys()
    if missing and meta.own_start:
        of_missing = [event for event in visible if event.seq < meta.own_start and event.turn_id in missing]
        found |= inherited_state({}, of_missing, meta)
    rows |= apply(found, events, meta)


def rebuilt(drafts: Iterable[Event], cut: int = 0) -> dict[str, RunRow]:
    return rebuild(log(*drafts, cut=cut), session(cut))


@given(logs(), st.integers(0, 40), st.sets(st.integers(0, 40)))
def test_any_split_into_commits_gives_the_rebuilt_rows(events: list[Event], own_start: int, cuts: set[int]) -> None:
    own_start = min(own_start, len(events))
    meta = session(own_start)
    bounds = sorted({own_start, len(events), *(cut for cut in cuts if own_start < cut < len(events))})
    rows: dict[str, RunRow] = {}
    for low, high in pairwise(bounds):
        append(rows, events[low:high], events, meta)
        assert rows == rebuild(events[:high], meta)
    assert set(rows) == {event.turn_id for event in events[own_start:] if event.turn_id is not None}


@given(logs(), st.integers(0, 40))
def test_rows_agree_with_the_audit_view(events: list[Event], own_start: int) -> None:
    rows = rebuild(events, session(own_start))
    seen = {run.turn_id: run for run in runs(events, "s", own_start)}
    assert set(rows) == {turn for turn, run in seen.items() if not run.inherited}
    for turn, row in rows.items():
        run = seen[turn]
        assert (row.id, row.start_seq, row.started_at, row.ended_at) == (
            run.id,
            run.start_seq,
            run.started_at,
            run.ended_at,
        )
        assert (row.status, row.query, row.agent_flow, row.error) == (run.status, run.query, run.agent_flow, run.error)
        assert (row.feedback, row.self_evaluation) == (run.feedback, run.self_evaluation)
        assert row.updated_at == run.updated_at
        if row.start_seq >= own_start:
            assert (row.tokens, row.steps, row.tool_calls) == (run.token_count, run.step_count, run.tool_call_count)
            assert row.duration_ms == run.duration_ms


@given(logs(), st.integers(0, 40))
def test_own_totals_of_source_and_fork_add_up_to_those_of_the_log(events: list[Event], cut: int) -> None:
    source = rebuild(events[:cut], session(id="source")).values()
    fork = rebuild(events, session(cut)).values()
    whole = rebuild(events, session()).values()
    for name in ("tokens", "steps", "tool_calls"):
        assert sum(getattr(row, name) for row in [*source, *fork]) == sum(getattr(row, name) for row in whole)


def test_a_forest_counts_no_token_twice() -> None:
    turn = [TurnStart(turn_id="1"), StepStart(step_id="s"), StepEnd(step_id="s", token_count=55), TurnEnd(turn_id="1")]
    second = [event.model_copy(update={"turn_id": "2"}) if event.turn_id else event for event in turn]
    parent = rebuilt([*turn, *second])
    child = rebuilt([*turn, *second], cut=4)
    assert sum(row.tokens for row in parent.values()) == 110
    assert {turn: row.tokens for turn, row in child.items()} == {"2": 55}
    assert sum(row.tokens for row in [*parent.values(), *child.values()]) == 165


def test_a_torn_turn_counts_in_each_session_for_what_happened_there() -> None:
    source = rebuilt(TORN[:5])["torn"]
    child = rebuilt(TORN, cut=5)["torn"]
    assert (source.agent_names, source.tool_names, source.steps, source.tool_calls) == (("a",), ("search",), 1, 1)
    assert (child.agent_names, child.tool_names, child.steps, child.tool_calls, child.tokens) == ((), (), 0, 0, 5)
    assert (child.query, child.started_at, child.since, child.duration_ms) == ("both", 2_000, 5_000, 2_000)
    assert (child.origin_session_id, child.status) == ("source", RunStatus.SUCCESS)
    assert (source.status, source.duration_ms) == (RunStatus.RUNNING, None)


def test_late_feedback_in_a_fork_makes_a_row_with_the_status_of_the_turn() -> None:
    row = rebuilt([*TORN, RunFeedback(turn_id="done", feedback="good")], cut=5)["done"]
    assert (row.feedback, row.query, row.status, row.ended_at) == ("good", "before", RunStatus.SUCCESS, 1_000)
    assert (row.duration_ms, row.steps) == (None, 0)


def test_an_append_reads_the_rows_of_turns_that_it_names_and_does_not_start() -> None:
    events = log(TurnStart(turn_id="a"), UserMessage(content="x"), TurnStart(turn_id="b"), TurnEnd(turn_id="a"))
    assert touched(events, session()) == set()
    assert touched(events[1:], session()) == {"a"}


def test_chunks_alone_read_and_write_no_row() -> None:
    events = log(TurnStart(turn_id="a"), AssistantChunk(delta="x"), AssistantChunk(delta="y"))
    assert touched(events[1:], session()) == set()
    assert apply({}, events[1:], session()) == {}
    rows = apply({}, events[:1], session())
    assert apply(rows, events[1:], session()) == {}


def test_a_chunk_that_continues_a_torn_turn_makes_its_row() -> None:
    events = log(TurnStart(turn_id="a"), StepStart(step_id="1"), AssistantChunk(delta="x"), cut=2)
    meta = session(2)
    assert touched(events[2:], meta) == {"a"}
    rows: dict[str, RunRow] = {}
    append(rows, events[2:], events, meta)
    assert (rows["a"].status, rows["a"].since, rows["a"].updated_at) == (RunStatus.RUNNING, 2_000, 2_000)


def test_long_texts_are_cut_and_named() -> None:
    long = "x" * (MAX_TEXT + 1)
    drafts: list[Event] = [
        TurnStart(turn_id="t", query=long, agent_flow="CHAT"),
        TurnEnd(turn_id="t", error=long, self_evaluation=f'"{long}"'),
        RunFeedback(turn_id="t", feedback=long),
    ]
    row = rebuilt(drafts)["t"]
    assert row.query == row.error == row.feedback == long[:MAX_TEXT]
    assert (row.agent_flow, row.self_evaluation) == ("CHAT", None)
    assert row.cut == ("error", "feedback", "query", "selfEvaluation")
    later = rebuilt([*drafts, RunFeedback(turn_id="t", feedback="ok", self_evaluation="1")])["t"]
    assert (later.feedback, later.self_evaluation, later.cut) == ("ok", "1", ("error", "query"))


def test_a_row_keeps_each_name_once_up_to_a_limit() -> None:
    calls: list[ToolCall] = [call(name=f"tool-{number % 300}") for number in range(400)]
    row = rebuilt([TurnStart(turn_id="t"), *calls, result()])["t"]
    assert row.tool_names == tuple(f"tool-{number}" for number in range(MAX_NAMES))
    assert row.tool_calls == 400


def test_a_row_comes_back_from_its_document() -> None:
    for row in rebuilt(TORN, cut=5).values():
        assert RunRow.model_validate_json(row.model_dump_json(by_alias=True, exclude_none=True)) == row
    assert "startedAt" in row.model_dump(by_alias=True)


def test_rows_of_one_millisecond_are_ordered() -> None:
    rows = rebuilt([TurnStart(turn_id=f"{number}", timestamp=7) for number in range(12)])
    assert sorted(rows.values(), key=lambda row: row.place) == [rows[f"{number}"] for number in range(12)]


def test_events_of_a_turn_that_never_started_make_no_row() -> None:
    assert apply({}, log(*TORN)[6:8], session()) == {}
