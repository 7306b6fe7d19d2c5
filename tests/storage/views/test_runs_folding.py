"""The audit view of any log: folded event by event or at once, whole or from a turn on, each result with its call."""

from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    Event,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
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
from storage.views.runs import Runs, runs
from tests.storage.views.test_runs import REPLACE, call, result

TURNS = st.sampled_from(["t1", "t2", "t3"])
TURN = st.sampled_from([None, None, None, "t1", "t2", "t3"])
STEPS = st.sampled_from(["s1", "s2"])
STEP = st.sampled_from([None, None, "s1", "s2"])
CALLS = st.sampled_from(["c1", "c2"])
TEXT = st.none() | st.sampled_from(["", "a", "b"])
JSON = st.none() | st.sampled_from(["null", "1", '{"score":2}'])
MEASURE = st.none() | st.integers(0, 9).map(float)
NAMES = st.sampled_from(["plan", "search"])
STATUS = st.sampled_from([RunStatus.SUCCESS, RunStatus.FAILED])
CALL = st.builds(call, CALLS, name=NAMES, turn_id=TURN, step_id=STEP)
RESULT = st.builds(result, CALLS, result=JSON, error=TEXT, duration_ms=MEASURE, turn_id=TURN)
DRAFTS: st.SearchStrategy[Event] = st.one_of(
    CALL,
    CALL,
    RESULT,
    RESULT,
    st.builds(TurnStart, turn_id=TURNS, query=TEXT, agent_flow=TEXT),
    st.builds(TurnEnd, turn_id=TURNS, status=STATUS, error=TEXT, self_evaluation=JSON),
    st.builds(StepStart, step_id=STEPS, turn_id=TURN, agent_name=st.none() | NAMES, model_input=JSON),
    st.builds(StepEnd, step_id=STEPS, turn_id=TURN, token_count=MEASURE, duration_ms=MEASURE),
    st.builds(UserMessage, content=st.sampled_from(["", "q"]), turn_id=TURN),
    st.builds(UserMessage, content=st.just("summary"), turn_id=TURN, surface_op=st.just(REPLACE)),
    st.builds(AssistantMessage, content=st.just("answer"), turn_id=TURN, step_id=STEP),
    st.builds(AssistantChunk, delta=st.just("x"), turn_id=TURN),
    st.builds(result, CALLS, result=JSON, surface_op=st.just(REPLACE)),
    st.builds(RunFeedback, turn_id=TURN, feedback=TEXT, self_evaluation=JSON),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Whatever drafts a log admits, with a clock that may run backwards, all of one session."""
    admission = Admission(LogState(), (), 0)
    opening = [TurnStart(turn_id="t1"), StepStart(step_id="s1", agent_name="plan")]
    size = draw(st.sampled_from([0, 5, 20, 60]))
    events: list[Event] = []
    for draft in [*opening, *draw(st.lists(DRAFTS, min_size=size, max_size=size))]:
        try:
            event = admission.admit(draft, "draft")
        except errors.SapwoodError:
            continue
        placed = {"seq": len(events), "session_id": "s", "timestamp": draw(st.integers(0, 50))}
        events.append(event.model_copy(update=placed))
    return events


@given(logs(), st.integers(0, 40))
def test_folding_event_by_event_equals_folding_at_once(events: list[Event], own_start: int) -> None:
    fold = Runs("s", own_start)
    for count, event in enumerate(events, 1):
        assert fold.add(event).done() == runs(events[:count], "s", own_start)


@given(logs())
def test_a_fold_from_any_turn_on_finds_the_same_runs_of_the_turns_from_there_on(events: list[Event]) -> None:
    whole = runs(events, "s")
    starts = [event.seq for event in events if isinstance(event, TurnStart)]
    assert starts == [run.start_seq for run in whole]
    for place, start in enumerate(starts):
        assert runs(events[start:], "s") == whole[place:]


@given(logs())
def test_totals_of_runs_are_those_of_their_steps_and_calls(events: list[Event]) -> None:
    for run in runs(events, "s"):
        assert run.step_count == len(run.steps)
        assert run.tool_call_count == len(run.tool_invocations)
        assert run.token_count == sum(step.token_count or 0 for step in run.steps)
        assert [each for step in run.steps for each in step.tool_invocations] == [
            each for step in run.steps for each in run.tool_invocations if each.step_id == step.step_id
        ]
        assert (run.ended_at is None) == (run.status in (RunStatus.PENDING, RunStatus.RUNNING))


@given(logs())
def test_each_result_answers_the_call_that_the_rule_selects(events: list[Event]) -> None:
    expected = _answers(events)
    shown: dict[int, ToolInvocation] = {}
    for run in runs(events, "s"):
        calls = [event.seq for event in events if isinstance(event, ToolCall) and event.turn_id == run.turn_id]
        shown |= dict(zip(calls, run.tool_invocations, strict=True))
    for seq, invocation in shown.items():
        answer = expected.get(seq)
        assert invocation.ended_at == (None if answer is None else answer.timestamp)
        assert invocation.error == (None if answer is None else answer.error or None)


def _answers(events: list[Event]) -> dict[int, ToolResult]:
    """The result of each call, by the call's seq: the rule in its own words, applied to the whole log each time."""
    answers: dict[int, ToolResult] = {}
    for answer in events:
        if not isinstance(answer, ToolResult) or answer.surface_op.op is SurfaceOpKind.REPLACE:
            continue
        before = events[: answer.seq]
        last_start = max((event.seq for event in before if isinstance(event, TurnStart)), default=-1)
        waiting = [
            event.seq
            for event in before
            if isinstance(event, ToolCall) and event.call_id == answer.call_id and event.seq not in answers
        ]
        since = [seq for seq in waiting if seq > last_start]
        if waiting:
            answers[since[0] if since else waiting[-1]] = answer
    return answers
