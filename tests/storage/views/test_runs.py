"""The audit view: runs, their steps and their tool invocations."""

from collections.abc import Iterable
from typing import Any

import pytest

from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CustomEvent,
    Event,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOp,
    SurfaceOpKind,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.log.admission import Admission
from storage.log.state import LogState
from storage.views.run_tools import ToolInvocation
from storage.views.runs import Run, runs

REPLACE = SurfaceOp(op=SurfaceOpKind.REPLACE, start=0, end=0)


def log(*drafts: Event, session: str = "s", cut: int = 0, source: str = "source") -> list[Event]:
    """Drafts as in a session's log: admitted, one a second unless timestamped; those below `cut` inherited."""
    admission = Admission(LogState(), (), 0)
    events = []
    for seq, draft in enumerate(drafts):
        event = admission.admit(draft, f"events[{seq}]")
        time = 1_000 * seq if event.timestamp is None else event.timestamp
        origin = source if seq < cut else session
        events.append(event.model_copy(update={"seq": seq, "session_id": origin, "timestamp": time}))
    return events


def one(*drafts: Event, cut: int = 0) -> Run:
    [run] = runs(log(*drafts, cut=cut), "s", cut)
    return run


def call(id: str = "c", **given: Any) -> ToolCall:
    return ToolCall(call_id=id, name=given.pop("name", "search"), args='{"q":1}', **given)


def result(id: str = "c", **given: Any) -> ToolResult:
    return ToolResult(call_id=id, **{"result": '"found"', **given})


def outputs(invocations: Iterable[ToolInvocation]) -> list[tuple[str, str | None]]:
    return [(each.call_id, each.output_preview) for each in invocations]


def worked_example() -> list[Event]:
    """Sixteen events: a turn of an answer, then one with a calculator call and two steps."""
    return log(
        TurnStart(turn_id="turn-1"),
        StepStart(step_id="step-1"),
        UserMessage(content="Hello"),
        AssistantMessage(content="Hello! How can I help?"),
        StepEnd(step_id="step-1", token_count=20),
        TurnEnd(turn_id="turn-1"),
        TurnStart(turn_id="turn-2"),
        StepStart(step_id="step-1"),
        UserMessage(content="What is 6 times 7?"),
        ToolCall(call_id="call-1", name="calculator", args='{"expression":"6*7"}'),
        ToolResult(call_id="call-1", result="42"),
        StepEnd(step_id="step-1", token_count=30),
        StepStart(step_id="step-2"),
        AssistantMessage(content="6 times 7 is 42."),
        StepEnd(step_id="step-2", token_count=12),
        TurnEnd(turn_id="turn-2"),
    )


def test_the_worked_example_has_two_runs() -> None:
    events = worked_example()
    assert len(events) == 16
    first, second = runs(events, "s")
    assert (first.query, first.start_seq, first.step_count, first.tool_call_count) == ("Hello", 0, 1, 0)
    assert (second.query, second.start_seq, second.step_count, second.tool_call_count) == (
        "What is 6 times 7?",
        6,
        2,
        1,
    )
    assert (first.token_count, second.token_count) == (20, 42)
    assert (first.duration_ms, second.duration_ms) == (5_000, 9_000)
    assert [step.index for step in second.steps] == [0, 1]
    assert second.steps[0].tool_invocations == second.tool_invocations
    assert second.steps[1].tool_invocations == ()
    assert outputs(second.tool_invocations) == [("call-1", "42")]
    assert (first.status, second.status) == (RunStatus.SUCCESS, RunStatus.SUCCESS)
    assert second.id == "s/s/turn-2"


def test_a_run_is_pending_until_its_first_event_then_running_until_its_end() -> None:
    drafts = [TurnStart(turn_id="t"), UserMessage(content="q"), StepStart(step_id="1"), StepEnd(step_id="1")]
    end = TurnEnd(turn_id="t", status=RunStatus.FAILED, error="out of memory")
    states = [one(*drafts[:count]).status for count in (1, 2, 3, 4)]
    assert states == [RunStatus.PENDING, RunStatus.RUNNING, RunStatus.RUNNING, RunStatus.RUNNING]
    assert one(drafts[0], RunFeedback(turn_id="t", feedback="x")).status is RunStatus.PENDING
    run = one(*drafts, end)
    assert (run.status, run.error, run.ended_at, run.updated_at) == (RunStatus.FAILED, "out of memory", 4_000, 4_000)
    assert one(*drafts).ended_at is None


@pytest.mark.parametrize(
    ("given", "query"),
    [
        (TurnStart(turn_id="t", query="as given"), "as given"),
        (TurnStart(turn_id="t", query=""), ""),
        (TurnStart(turn_id="t"), "first text"),
    ],
)
def test_the_query_is_as_given_else_the_first_user_text(given: TurnStart, query: str) -> None:
    run = one(
        given,
        UserMessage(content="a summary of what was", surface_op=REPLACE),
        UserMessage(content="", blocks='[{"type":"image"}]'),
        UserMessage(content="first text"),
        UserMessage(content="second text"),
    )
    assert run.query == query


def test_events_outside_of_any_turn_belong_to_no_run() -> None:
    around = [UserMessage(content="x"), StepStart(step_id="1"), call(), StepEnd(step_id="1", token_count=5)]
    run = one(*around, TurnStart(turn_id="t"), TurnEnd(turn_id="t"), AssistantMessage(content="y"))
    assert (run.query, run.step_count, run.tool_call_count, run.token_count) == (None, 0, 0, 0)
    assert run.updated_at == 5_000


def test_steps_are_indexed_per_agent_name() -> None:
    agents = ["planner", "worker", "planner", None, "worker", None, "planner"]
    steps = [StepStart(step_id=str(place), agent_name=agent) for place, agent in enumerate(agents)]
    run = one(TurnStart(turn_id="t"), *steps)
    assert [(step.agent_name, step.index) for step in run.steps] == [
        ("planner", 0),
        ("worker", 0),
        ("planner", 1),
        (None, 0),
        ("worker", 1),
        (None, 1),
        ("planner", 2),
    ]


def test_a_step_has_the_values_of_its_end() -> None:
    end = StepEnd(
        step_id="1", model_output='{"text":"hi"}', thought="hm", token_count=7, duration_ms=12.5, error="too slow"
    )
    [step] = one(TurnStart(turn_id="t"), StepStart(step_id="1", agent_name="a"), end).steps
    assert (step.model_output, step.thought, step.error) == ('{"text":"hi"}', "hm", "too slow")
    assert (step.token_count, step.duration_ms, step.started_at, step.ended_at) == (7, 12.5, 1_000, 2_000)


def test_the_end_of_a_turn_ends_its_open_steps() -> None:
    run = one(TurnStart(turn_id="t"), StepStart(step_id="1"), StepStart(step_id="2"), TurnEnd(turn_id="t"))
    assert [(step.ended_at, step.duration_ms, step.error) for step in run.steps] == [
        (3_000, 2_000, None),
        (3_000, 1_000, None),
    ]


def test_a_clock_that_runs_backwards_gives_no_durations() -> None:
    run = one(
        TurnStart(turn_id="t", timestamp=9),
        StepStart(step_id="1", timestamp=8),
        call(timestamp=7),
        result(timestamp=6),
        StepEnd(step_id="1", timestamp=5),
        TurnEnd(turn_id="t", timestamp=4),
    )
    assert run.duration_ms is run.steps[0].duration_ms is run.tool_invocations[0].duration_ms is None
    assert (run.started_at, run.ended_at, run.updated_at) == (9, 4, 4)


def test_the_newest_feedback_and_self_evaluation_win() -> None:
    drafts = [
        TurnStart(turn_id="t"),
        RunFeedback(turn_id="t", feedback="early", self_evaluation="1"),
        TurnEnd(turn_id="t", self_evaluation='{"score":2}'),
        RunFeedback(turn_id="t", feedback="good"),
        RunFeedback(turn_id="t", self_evaluation="null"),
        RunFeedback(turn_id="t", feedback="", self_evaluation="3"),
    ]
    told = [(run.feedback, run.self_evaluation) for run in (one(*drafts[: count + 1]) for count in range(len(drafts)))]
    assert told == [
        (None, None),
        ("early", "1"),
        ("early", '{"score":2}'),
        ("good", '{"score":2}'),
        ("good", None),
        (None, "3"),
    ]


def test_replacements_and_hides_do_not_change_runs() -> None:
    drafts = [TurnStart(turn_id="t"), UserMessage(content="q"), call(), result(result='"all of it"')]
    compacted = [
        result(result='"in short"', surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE, start=3, end=3)),
        SurfaceHide(from_seq=0, to_seq=4),
        UserMessage(content="summary", surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE, start=1, end=1)),
    ]
    before, after = one(*drafts), one(*drafts, *compacted)
    assert (after.query, after.tool_invocations) == (before.query, before.tool_invocations)


def test_chunks_do_not_count_as_updates() -> None:
    drafts = [TurnStart(turn_id="t"), CustomEvent(name="n", data="1"), AssistantChunk(delta="x")]
    assert one(*drafts).updated_at == 1_000


def test_token_totals_saturate() -> None:
    steps = [
        event
        for step in "12"
        for event in (StepStart(step_id=step), StepEnd(step_id=step, token_count=1.7976931348623157e308))
    ]
    assert one(TurnStart(turn_id="t"), *steps).token_count == 1.7976931348623157e308


TORN: list[Event] = [
    TurnStart(turn_id="done", query="before"),
    TurnEnd(turn_id="done"),
    TurnStart(turn_id="torn", query="both"),
    StepStart(step_id="1", agent_name="a"),
    call("early"),
    # a fork here
    result("early"),
    StepEnd(step_id="1", token_count=5),
    TurnEnd(turn_id="torn"),
    TurnStart(turn_id="own"),
]


def test_a_torn_turn_is_shown_whole_with_where_it_started() -> None:
    done, torn, own = runs(log(*TORN, cut=5), "s", 5)
    assert [run.origin_session_id for run in (done, torn, own)] == ["source", "source", "s"]
    assert [run.inherited for run in (done, torn, own)] == [True, False, False]
    assert [run.id for run in (done, torn, own)] == ["s/source/done", "s/source/torn", "s/s/own"]
    assert (torn.token_count, torn.step_count, torn.tool_call_count) == (5, 1, 1)
    assert outputs(torn.steps[0].tool_invocations) == [("early", "found")]
    [_, inherited] = runs(log(*TORN[:5], cut=5), "s", 5)
    assert inherited.inherited and inherited.status is RunStatus.RUNNING


def test_late_feedback_in_a_fork_makes_an_inherited_turn_its_own() -> None:
    done, *_ = runs(log(*TORN, RunFeedback(turn_id="done", feedback="good"), cut=5), "s", 5)
    assert (done.inherited, done.feedback) == (False, "good")
