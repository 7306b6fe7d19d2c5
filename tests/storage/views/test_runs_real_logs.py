"""The audit view of real logs, each verified by hand. Timestamps are seqs in seconds: the logs have no clock."""

import pytest

from storage.events import Event, RunStatus, ToolCall, ToolResult
from storage.views.run_rows import RunRow, rebuild
from storage.views.runs import Runs, runs
from tests.storage.transfer.formats.logs import TAU_BENCH, document, read_log, records_of, steps_of, visible_logs
from tests.storage.views.test_runs import log, outputs
from tests.storage.views.test_runs_rows import append, session

FORK = "deepseek-harness/subagent-fork-in-process"
SMALL = ("cancel-tool-calls", "compaction-recovery", "subagent-fork-in-process", "workspace-context-resume")


def deepseek(name: str) -> list[Event]:
    file = "session.expected.jsonl" if name == "workspace-context-resume" else "session.jsonl"
    return log(*read_log(f"deepseek-harness/{name}/{file}").sessions[0].events)


def parent_and_child() -> tuple[list[Event], list[Event]]:
    """The visible logs of a session and of its fork, which shares the first 42 events."""
    [parent] = read_log(f"{FORK}/session.jsonl").sessions
    [child] = read_log(f"{FORK}/session.1.jsonl").sessions
    shared = child.repeats_at_most or 0
    assert child.events[:shared] == parent.events[:shared]
    return log(*parent.events, session="p"), log(*child.events, cut=shared, source="p")


def test_two_calls_cancelled_by_the_user() -> None:
    [run] = runs(deepseek("cancel-tool-calls"), "s")
    assert (run.status, run.error) == (RunStatus.FAILED, "aborted: user")
    assert run.query is not None and run.query.startswith("Run two shell commands: wait for cancellation")
    assert (run.step_count, run.tool_call_count, run.token_count, run.duration_ms) == (1, 2, 20, 22_000)
    assert [(each.tool_name, each.success, each.error) for each in run.steps[0].tool_invocations] == [
        ("bash", False, "Error: tool call aborted"),
        ("bash", False, "Error: tool call aborted before dispatch"),
    ]
    assert outputs(run.tool_invocations) == [("call_wait", None), ("call_skipped", None)]


def test_a_compaction_in_a_turn_does_not_change_its_run() -> None:
    [run] = runs(deepseek("compaction-recovery"), "s")
    assert run.query is not None and run.query.startswith("Establish a durable compaction premise")
    assert (run.status, run.step_count, run.token_count) == (RunStatus.SUCCESS, 2, 54)
    assert [(step.step_id, step.index, step.token_count, len(step.tool_invocations)) for step in run.steps] == [
        ("1", 0, 30, 1),
        ("2", 1, 24, 0),
    ]
    assert outputs(run.tool_invocations) == [("call_compaction_marker", "alpha\n")]


def test_two_turns_of_six_steps() -> None:
    first, second = runs(deepseek("goal-multi-turn-actions"), "s")
    assert (first.start_seq, second.start_seq) == (7, 1055)
    assert (first.token_count, second.token_count) == (10_045, 2_351)
    assert [len(step.tool_invocations) for step in first.steps] == [2, 1, 1, 1, 1, 0]
    assert [len(step.tool_invocations) for step in second.steps] == [1, 1, 1, 1, 1, 0]
    assert [each.tool_name for each in second.tool_invocations] == ["bash", "bash", "bash", "get_goal", "update_goal"]
    assert [each.output_length for each in first.tool_invocations] == [190, 240, 223, 209, 35, 254]
    assert all(each.success for run in (first, second) for each in run.tool_invocations)
    assert first.query is not None and "做两个turn" in first.query
    assert second.tool_invocations[-1].duration_ms == 2_000


def test_a_turn_without_a_step_that_ended_well() -> None:
    first, second = runs(deepseek("workspace-context-resume"), "s")
    assert (first.query, first.status, first.step_count) == (
        "Remember the workspace instruction.",
        RunStatus.SUCCESS,
        0,
    )
    assert (second.query, second.status, second.step_count) == (
        "Acknowledge the current workspace instruction.",
        RunStatus.SUCCESS,
        1,
    )


def test_a_fork_shows_the_inherited_turn_and_counts_only_its_own() -> None:
    parent, child = parent_and_child()
    assert [(run.turn_id, run.token_count) for run in runs(parent, "p")] == [("1", 2_910), ("2", 400)]
    [delegation] = runs(parent, "p")[1].tool_invocations
    assert (delegation.tool_name, delegation.output_preview) == ("subagent_fork", "MARMALADE")
    inherited, own = runs(child, "s", 42)
    assert (inherited.id, inherited.inherited, inherited.token_count) == ("s/p/1", True, 2_910)
    assert (own.id, own.inherited, own.token_count, own.start_seq) == ("s/s/2", False, 136, 45)
    rows = [*rebuild(parent, session(id="p")).values(), *rebuild(child, session(42)).values()]
    assert sum(row.tokens for row in rows) == 2_910 + 400 + 136


def test_each_of_the_hundred_conversations_pairs_each_call_with_the_result_right_after_it() -> None:
    steps, _ = steps_of(records_of(*document(TAU_BENCH)))
    sessions = [found for found in visible_logs(steps).values() if found]
    assert len(sessions) == 100
    for found in sessions:
        events = log(*found)
        told = [each for run in runs(events, "s") for each in run.tool_invocations]
        calls = [event for event in events if isinstance(event, ToolCall)]
        assert [each.call_id for each in told] == [event.call_id for event in calls]
        assert all(run.status is RunStatus.SUCCESS and run.query for run in runs(events, "s"))
        for each, call in zip(told, calls, strict=True):
            following = events[call.seq + 1]
            assert isinstance(following, ToolResult) and each.ended_at == following.timestamp
            assert each.success is True


@pytest.mark.parametrize("name", SMALL)
def test_real_logs_fold_event_by_event_as_at_once(name: str) -> None:
    events = deepseek(name)
    fold = Runs("s")
    for count, event in enumerate(events, 1):
        fold.add(event)
        if event.type not in ("assistant/chunk", "custom"):
            assert fold.done() == runs(events[:count], "s")


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_real_logs_in_commits_of_any_size_give_the_rebuilt_rows(size: int) -> None:
    _, child = parent_and_child()
    for events, own_start in ((deepseek("goal-multi-turn-actions"), 0), (child, 42), (child, 20)):
        rows: dict[str, RunRow] = {}
        for first in range(own_start, len(events), size):
            append(rows, events[first : first + size], events, session(own_start))
        assert rows == rebuild(events, session(own_start))
        assert rows
