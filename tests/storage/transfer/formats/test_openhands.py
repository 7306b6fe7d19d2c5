"""Event streams of OpenHands become turns, steps, calls and results."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    RunStatus,
    StepEnd,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    UserMessage,
)
from storage.transfer.formats import openhands
from storage.transfer.formats.registry import ForeignSession, read_document
from storage.transfer.formats.shared.foreign import ForeignLabel
from storage.views.runs import runs
from tests.storage.transfer.formats.documents import (
    check_log,
    check_prefixes,
    encoded,
    lines,
    nested,
    read_steps,
    surface,
)
from tests.storage.transfer.formats.logs import DATA, counts, messages, visible_logs
from tests.storage.transfer.formats.mutations import SEEDS, odd

RUNS = "openhands/multi_swe_bench-output.jsonl"


def real() -> list[Any]:
    return [json.loads(line) for line in (DATA / RUNS).read_text().splitlines()]


def real_sessions() -> list[ForeignSession]:
    return read_document(RUNS, (DATA / RUNS).read_text()).sessions


def event(id: int, source: str = "agent", **fields: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": f"2025-04-30T16:32:{id:02}.500000", "source": source, **fields}


def asked(id: int, content: str = "do it", **args: Any) -> dict[str, Any]:
    return event(id, "user", action="message", args={"content": content, **args})


def answered(id: int, content: str = "done", **args: Any) -> dict[str, Any]:
    return event(id, action="message", args={"content": content, **args})


def acted(id: int, call: str, response: str = "r", kind: str = "run", of: int = 1, **fields: Any) -> dict[str, Any]:
    calls = [{"id": call, "type": "function", "function": {"name": "bash", "arguments": '{"n": 1}'}}]
    message = {"role": "assistant", "content": "I act", "tool_calls": calls}
    return event(
        id,
        action=kind,
        args={"command": "ls", "thought": "I act"},
        tool_call_metadata={
            "function_name": "bash",
            "tool_call_id": call,
            "total_calls_in_response": of,
            "model_response": {"id": response, "choices": [{"message": message}], **fields},
        },
    )


def observed(id: int, cause: int | None, kind: str = "run", content: str = "out") -> dict[str, Any]:
    return event(id, observation=kind, cause=cause, content=content)


def read_one(*history: Any, **fields: Any) -> tuple[list[Event], list[str]]:
    steps, warnings = read_steps(openhands, encoded({"instance_id": "x", "history": list(history), **fields}))
    [log] = visible_logs(steps).values()
    check_log(log)
    return log, warnings.messages()


def types(log: list[Event]) -> list[str]:
    return [event.type for event in log]


def test_the_format_is_recognised_by_its_content() -> None:
    assert read_document(RUNS, (DATA / RUNS).read_text()).format == "openhands"
    assert read_document("x", encoded([asked(0), acted(1, "c")]).decode()).format == "openhands"


def test_real_runs_keep_all_messages_calls_and_results() -> None:
    sessions = real_sessions()
    found = counts(sessions)
    assert (len(sessions), messages(sessions), found["tool/call"]) == (3, (3, 105, 105, 3), 105)
    # Two errors are results without a call, and the last two calls, to finish, have no result.
    calls = {event.call_id for session in sessions for event in session.events if isinstance(event, ToolCall)}
    results = [event for session in sessions for event in session.events if isinstance(event, ToolResult)]
    assert len([result for result in results if result.call_id not in calls]) == 2
    assert len([result for result in results if result.error is not None]) == 2
    assert (found["turn/start"], found["turn/end"], found["step/start"], found["step/end"]) == (3, 3, 105, 105)


def test_real_runs_have_valid_surfaces_at_every_cut() -> None:
    steps, _ = read_steps(openhands, (DATA / RUNS).read_bytes())
    for log in visible_logs(steps).values():
        check_log(log)


def test_the_surface_of_a_real_run_has_its_actions_and_observations() -> None:
    for run, session in zip(real(), real_sessions(), strict=True):
        expected: list[tuple[str, str]] = []
        for each in run["history"]:
            if each.get("action") in ("system", "message"):
                expected.append(("system" if each["action"] == "system" else "user", each["args"]["content"]))
            elif each.get("action") not in ("recall", None):
                response = each["tool_call_metadata"]["model_response"]
                expected.append(("assistant", response["choices"][0]["message"]["content"]))
            elif each.get("cause") is not None and each["observation"] != "recall":
                expected.append(("tool", each["content"]))
        found = surface(session.events)
        if run["history"][-1].get("action") == "finish":
            assert "outcome is unknown" in found.pop()["content"]
        assert [(message["role"], message["content"] or "") for message in found] == expected


def test_a_longer_history_only_adds_events() -> None:
    for run in real():
        history = run["history"]
        run["error"] = None

        def cut(size: int, run: Any = run, history: Any = history) -> bytes:
            return encoded({**run, "history": history[:size]})

        check_prefixes(openhands, cut, range(len(history) + 1))


def test_events_that_are_records_give_the_events_of_the_run_that_holds_them() -> None:
    run = real()[0]
    history = run["history"]
    check_prefixes(openhands, lambda size: lines(*history[:size]), range(1, len(history) + 1))
    steps, _ = read_steps(openhands, lines(*history))
    [streamed] = visible_logs(steps).values()
    [whole] = visible_logs(read_steps(openhands, encoded({"history": history}))[0]).values()
    assert streamed == whole
    assert read_steps(openhands, encoded(history))[0] == steps


def test_a_stream_has_an_id_by_its_first_event_and_its_label_once_that_is_known() -> None:
    system = event(0, action="system", args={"content": "s"})
    steps, _ = read_steps(openhands, lines(system, asked(1)))
    longer, _ = read_steps(openhands, lines(system, asked(1), answered(2)))
    other, _ = read_steps(openhands, lines(asked(1)))
    assert isinstance(steps[0], ForeignSession)
    assert isinstance(other[0], ForeignSession)
    assert steps[0] == longer[0]
    assert (steps[0].id or "").startswith("openhands:")
    assert steps[0].id != other[0].id
    assert (steps[0].label, other[0].label) == (None, "do it")
    assert [step for step in steps if isinstance(step, ForeignLabel)] == [ForeignLabel("stream", "do it")]


def test_steps_have_tokens_and_latencies() -> None:
    run, session = real()[0], real_sessions()[0]
    ends = [event for event in session.events if isinstance(event, StepEnd)]
    assert [end.token_count for end in ends] == [
        usage["prompt_tokens"] + usage["completion_tokens"] for usage in run["metrics"]["token_usages"]
    ]
    latencies = [each["latency"] * 1000 for each in run["metrics"]["response_latencies"]]
    assert all((end.duration_ms or 0) >= latency for end, latency in zip(ends, latencies, strict=True))
    # The first call ran for 620 ms according to its times; the last one, to finish, has no end.
    assert (ends[0].duration_ms, ends[-1].duration_ms) == (3676.952, round(latencies[-1], 3))


def test_a_step_lasts_as_long_as_its_model_call_and_its_calls_together() -> None:
    metrics = {
        "response_latencies": [{"response_id": "r", "latency": 2}],
        "token_usages": [{"response_id": "r", "prompt_tokens": 3, "completion_tokens": 4}],
    }
    log, _ = read_one(asked(0), acted(1, "c"), observed(4, 1), metrics=metrics)
    [end] = [event for event in log if isinstance(event, StepEnd)]
    assert (end.duration_ms, end.token_count) == (5000, 7)


def test_actions_of_one_response_are_one_message_and_one_step() -> None:
    log, _ = read_one(
        asked(0), acted(1, "c", of=2), observed(2, 1), acted(3, "d", of=2), observed(4, 3), acted(5, "e", "s")
    )
    assert types(log)[2:] == [
        "step/start",
        "assistant/message",
        "tool/call",
        "tool/result",
        "tool/call",
        "tool/result",
        "step/end",
        "step/start",
        "assistant/message",
        "tool/call",
    ]
    assert [len(message.get("tool_calls", ())) for message in surface(log)] == [0, 2, 0, 0, 1, 0]


def test_calls_are_as_the_model_wrote_them() -> None:
    log, _ = read_one(asked(0), acted(1, "c"))
    [call] = [event for event in log if isinstance(event, ToolCall)]
    assert (call.call_id, call.name, json.loads(call.args)) == ("c", "bash", '{"n": 1}')


def test_a_result_belongs_to_the_action_that_it_names_as_cause() -> None:
    log, _ = read_one(asked(0), acted(1, "c", of=2), acted(2, "d", of=2), observed(3, 2, content="D"), observed(4, 1))
    assert [(event.call_id, event.result) for event in log if isinstance(event, ToolResult)] == [
        ("d", '"D"'),
        ("c", '"out"'),
    ]
    assert log[-1].type == "step/end"


def test_a_call_id_used_again_is_answered_by_cause() -> None:
    log, _ = read_one(
        asked(0), acted(1, "c"), observed(2, 1, content="1"), acted(3, "c", "s"), observed(4, 3, content="2")
    )
    assert [message["content"] for message in surface(log)][2::2] == ["1", "2"]


def test_an_error_without_a_cause_is_the_result_of_no_call() -> None:
    log, warnings = read_one(asked(0), acted(1, "c"), observed(2, None, "error", "bad"), observed(3, 1))
    results = [event for event in log if isinstance(event, ToolResult)]
    assert [(result.call_id, result.error) for result in results] == [("error-2", "bad"), ("c", None)]
    assert [message["content"] for message in surface(log)] == ["do it", "I act", "out"]
    assert "1 error that names no call logged as a result without a call" in warnings


def test_an_error_with_a_cause_is_the_failure_of_its_call() -> None:
    log, _ = read_one(asked(0), acted(1, "c"), observed(2, 1, "error", "bad"))
    [result] = [event for event in log if isinstance(event, ToolResult)]
    assert (result.call_id, result.error, result.result) == ("c", "bad", None)


def test_finish_ends_the_turn_without_an_observation() -> None:
    log, _ = read_one(asked(0), acted(1, "c", kind="finish"))
    assert types(log)[-3:] == ["tool/call", "step/end", "turn/end"]
    assert isinstance(log[-1], TurnEnd)
    assert log[-1].status is RunStatus.SUCCESS


def test_the_error_of_a_run_ends_its_open_turn() -> None:
    log, _ = read_one(asked(0), acted(1, "c"), error="RuntimeError: too long")
    assert isinstance(log[-1], TurnEnd)
    assert (log[-1].status, log[-1].error) == (RunStatus.FAILED, "RuntimeError: too long")


def test_an_event_ends_the_turn_at_the_time_of_the_event_before() -> None:
    log, _ = read_one(asked(0), acted(1, "c"), acted(5, "d", "s"), observed(6, 5), asked(9))
    began = 1746030720500
    assert [event.timestamp for event in log if isinstance(event, StepEnd | TurnEnd)] == [
        began + 1000,
        began + 6000,
        began + 6000,
    ]
    log, _ = read_one(asked(0), acted(1, "c"), error="RuntimeError")
    assert [event.timestamp for event in log if isinstance(event, StepEnd | TurnEnd)] == [began + 1000] * 2


def test_runs_show_the_durations_of_a_real_run() -> None:
    [run] = runs(visible_logs(read_steps(openhands, (DATA / RUNS).read_bytes())[0])["run-2"], "s")
    assert (run.status, run.step_count, run.tool_call_count, run.token_count) == (RunStatus.FAILED, 49, 49, 943642)
    # From 17:56:40.641 to 18:04:10.527.
    assert run.duration_ms == 449886
    assert (run.steps[0].duration_ms, run.steps[0].tool_invocations[0].duration_ms) == (2533.105, 619)


def test_a_run_that_ended_no_turn_leaves_it_open() -> None:
    log, _ = read_one(asked(0), acted(1, "c"), observed(2, 1), error=None)
    assert log[-1].type == "step/end"


def test_a_real_failure_is_reported() -> None:
    end = real_sessions()[2].events[-1]
    assert isinstance(end, TurnEnd)
    assert (end.error or "").startswith("RuntimeError: Agent reached maximum iteration")


@pytest.mark.parametrize(
    ("extras", "status", "error"),
    [
        ({"agent_state": "finished"}, RunStatus.SUCCESS, None),
        ({"agent_state": "error", "reason": "no key"}, RunStatus.FAILED, "no key"),
        ({"agent_state": "stopped"}, RunStatus.FAILED, "stopped"),
    ],
)
def test_a_state_that_ends_the_work_ends_the_turn(extras: Any, status: RunStatus, error: str | None) -> None:
    state = event(1, "environment", observation="agent_state_changed", content="", extras=extras)
    log, _ = read_one(asked(0), state)
    assert isinstance(log[-1], TurnEnd)
    assert (log[-1].status, log[-1].error) == (status, error)
    assert log[-2].type == "custom"


def test_an_answer_ends_the_turn_unless_it_waits_for_no_response() -> None:
    log, _ = read_one(asked(0), answered(1, wait_for_response=False), answered(2, wait_for_response=True))
    assert types(log)[2:] == [*["step/start", "assistant/message", "step/end"] * 2, "turn/end"]


def test_injected_context_and_a_users_own_commands_are_kept_as_custom() -> None:
    recall = event(1, "user", action="recall", args={"query": "q"})
    shell = event(3, "user", action="run", args={"command": "ls"})
    log, warnings = read_one(asked(0), recall, observed(2, 1, "recall"), shell, observed(4, 3))
    assert [event.name for event in log if isinstance(event, CustomEvent)] == ["recall", "recall", "run", "run"]
    assert json.loads(log[2].data if isinstance(log[2], CustomEvent) else "") == recall
    assert "4 events other than messages, calls and results kept as custom" in warnings


def test_what_a_condensation_dropped_stays_and_is_reported() -> None:
    forgot = event(2, action="condensation", args={"forgotten_event_ids": [1], "summary": "s"})
    log, warnings = read_one(asked(0), answered(1), forgot)
    assert [message["content"] for message in surface(log)] == ["do it", "done"]
    assert "1 condensation kept as custom, so the surface still shows what it dropped" in warnings


def test_tools_are_logged_beside_the_system_message() -> None:
    log, _ = read_one(event(0, action="system", args={"content": "s", "tools": [1]}))
    assert isinstance(log[0], SystemMessage)
    assert isinstance(log[1], CustomEvent)
    assert (log[0].content, log[1].name, log[1].data) == ("s", "system", '{"tools":[1]}')


def test_images_of_a_user_are_parts() -> None:
    log, _ = read_one(asked(0, image_urls=["data:image/png;base64,AA"]))
    assert surface(log)[0]["content"] == [
        {"type": "text", "text": "do it"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]


def test_an_action_without_a_model_response_is_a_step_of_its_own() -> None:
    run = event(1, action="run", args={"command": "ls", "thought": "look"})
    log, _ = read_one(asked(0), run, observed(2, 1))
    assert types(log)[2:] == ["step/start", "assistant/message", "tool/call", "tool/result", "step/end"]
    assert isinstance(log[3], AssistantMessage)
    assert isinstance(log[4], ToolCall)
    assert (log[3].content, log[4].call_id, log[4].name) == ("look", "1", "run")


def test_times_without_a_zone_are_utc_and_may_run_backwards() -> None:
    log, warnings = read_one(asked(5), asked(1), {**asked(2), "timestamp": "?"}, {**asked(3), "timestamp": None})
    assert [event.timestamp for event in log if isinstance(event, UserMessage)] == [
        1746030725500,
        1746030721500,
        None,
        None,
    ]
    assert "2 times without a zone taken as UTC" in warnings
    assert "2 events without a readable time logged without one" in warnings


def test_the_fields_of_a_run_are_its_metadata() -> None:
    session, run = real_sessions()[0], real()[0]
    assert (session.label, session.id) == ("ponylang__ponyc-4595", None)
    metadata = json.loads(session.metadata or "")
    assert metadata["test_result"] == run["test_result"]
    assert metadata["metadata"] == run["metadata"]
    assert metadata["metrics"]["accumulated_token_usage"] == run["metrics"]["accumulated_token_usage"]
    assert "token_usages" not in metadata["metrics"]


def test_a_broken_event_is_kept_as_custom_and_reported_with_its_location() -> None:
    log, warnings = read_one(asked(0), 5, event(1), event(2, "user", action="message", args=5), answered(3))
    assert types(log)[2:] == [*["custom"] * 3, "step/start", "assistant/message", "step/end", "turn/end"]
    expected = "3 events that could not be read kept as custom, the first: log line 1 history[1]: must be an object"
    assert any(warning.startswith(expected) for warning in warnings)


def test_a_broken_record_of_a_stream_is_left_out() -> None:
    steps, warnings = read_steps(openhands, lines(asked(0), event(1, action="message", args={}), 5, answered(2)))
    [log] = visible_logs(steps).values()
    assert types(log)[2:] == ["step/start", "assistant/message", "step/end", "turn/end"]
    assert warnings.kinds()["record left out"] == 2


def test_a_broken_first_record_of_a_stream_does_not_begin_it() -> None:
    steps, warnings = read_steps(openhands, lines({**asked(0), "extra": nested(600)}, asked(1)))
    assert steps == read_steps(openhands, lines(asked(1)))[0]
    assert warnings.first_broken.startswith("log line 1: nested deeper")


def test_surrogates_and_zero_characters_are_kept_as_far_as_they_can_be() -> None:
    log, _ = read_one(asked(0, "a\0b\ud800"), acted(1, "\ud800"), observed(2, 1, content="\ud800"))
    assert [message["content"] for message in surface(log)] == ["a\0b\ufffd", "I act", "\ufffd"]


@given(seed=SEEDS, number=st.integers(0, 2), streamed=st.booleans())
def test_odd_input_is_read_or_refused(seed: int, number: int, streamed: bool) -> None:
    run = real()[number]
    run["history"] = [*run["history"][:9], *run["history"][-3:]]
    steps, _ = read_steps(openhands, encoded(odd(run["history"] if streamed else run, seed)))
    for log in visible_logs(steps).values():
        check_log(log)
