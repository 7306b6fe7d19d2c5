"""Trajectories of SWE-agent, old and new, become sessions whose surface is their history."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.events import CustomEvent, Event, RunStatus, StepEnd, StepStart, ToolResult, TurnEnd
from storage.transfer.formats import swe_agent
from storage.transfer.formats.registry import read_document
from storage.views.runs import runs
from tests.storage.transfer.formats.documents import check_log, check_prefixes, encoded, nested, read_steps, surface
from tests.storage.transfer.formats.logs import DATA, counts, messages, visible_logs
from tests.storage.transfer.formats.mutations import SEEDS, odd

CALLS = "swe-agent/marshmallow-1867.function_calling.traj"
TEXTS = "swe-agent/ctf-crypto-BabyTimeCapsule.traj"
BOTH = (CALLS, TEXTS)
SYSTEM = {"role": "system", "content": "s"}
USER = {"role": "user", "content": "do it"}


def real(name: str) -> Any:
    return json.loads((DATA / name).read_bytes())


def trajectory(*history: Any, steps: Any = (), **fields: Any) -> bytes:
    return encoded({"history": list(history), "trajectory": list(steps), **fields})


def read_one(*history: Any, steps: Any = (), **fields: Any) -> tuple[list[Event], list[str]]:
    steps, warnings = read_steps(swe_agent, trajectory(*history, steps=steps, **fields))
    [log] = visible_logs(steps).values()
    return log, warnings.messages()


def asks(*ids: str, content: str = "a", **fields: Any) -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls, **fields}


def told(*ids: str, content: str = "r", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_ids": list(ids), **fields}


def original(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as the model sees them."""
    found = []
    for item in history:
        message = {"role": item["role"], "content": item["content"]}
        if item.get("tool_calls"):
            message["tool_calls"] = item["tool_calls"]
        if item["role"] == "tool":
            [message["tool_call_id"]] = item["tool_call_ids"]
        found.append(message)
    return found


@pytest.mark.parametrize("name", BOTH)
def test_the_format_is_recognised_by_its_content(name: str) -> None:
    assert read_document(name, (DATA / name).read_text()).format == "swe-agent"


@pytest.mark.parametrize(
    ("name", "said", "calls", "steps"), [(CALLS, (1, 11, 11, 1), 11, 11), (TEXTS, (9, 9, 0, 1), 0, 9)]
)
def test_real_logs_keep_all_messages_calls_and_steps(
    name: str, said: tuple[int, int, int, int], calls: int, steps: int
) -> None:
    [session] = read_document(name, (DATA / name).read_text()).sessions
    found = counts([session])
    assert messages([session]) == said
    assert (found["tool/call"], found["turn/start"], found["turn/end"]) == (calls, 1, 1)
    assert (found["step/start"], found["step/end"], found["custom"]) == (steps, steps, steps)


@pytest.mark.parametrize("name", BOTH)
def test_the_surface_of_a_real_log_is_its_history(name: str) -> None:
    log, _ = read_one(*real(name)["history"])
    assert surface(log) == original(real(name)["history"])
    check_log(log)


@pytest.mark.parametrize("name", BOTH)
def test_a_longer_history_only_adds_events(name: str) -> None:
    whole = real(name)
    del whole["info"]["exit_status"]
    history = whole["history"]
    check_prefixes(swe_agent, lambda size: encoded(whole | {"history": history[:size]}), range(len(history) + 1))


def test_results_and_steps_have_the_durations_of_commands() -> None:
    [session] = read_document(CALLS, (DATA / CALLS).read_text()).sessions
    expected = [round(step["execution_time"] * 1000, 3) for step in real(CALLS)["trajectory"]]
    assert [event.duration_ms for event in session.events if isinstance(event, ToolResult)] == expected
    assert [event.duration_ms for event in session.events if isinstance(event, StepEnd)] == expected


def test_runs_show_the_durations_of_a_real_trajectory() -> None:
    [run] = runs(visible_logs(read_steps(swe_agent, (DATA / CALLS).read_bytes())[0])["0"], "s")
    expected = [round(step["execution_time"] * 1000, 3) for step in real(CALLS)["trajectory"]]
    assert [step.duration_ms for step in run.steps] == expected
    assert [call.duration_ms for call in run.tool_invocations] == expected
    assert run.status is RunStatus.SUCCESS


def test_an_older_step_has_the_duration_too() -> None:
    said = {"role": "assistant", "content": "a", "thought": "t", "action": "ls"}
    step = {"thought": "t", "action": "ls", "execution_time": 0.25}
    log, warnings = read_one(SYSTEM, USER, said, {"role": "user", "content": "out"}, steps=[{"action": "x"}, step])
    assert next(event for event in log if isinstance(event, StepEnd)).duration_ms == 250
    assert warnings == ["1 trajectory step without its message left out"]


def test_the_state_after_a_step_precedes_its_result() -> None:
    said = asks("c", thought="t", action="ls")
    step = {"thought": "t", "action": "ls", "state": {"cwd": "/"}}
    log, _ = read_one(USER, said, told("c"), steps=[step])
    assert [event.type for event in log][-4:] == ["tool/call", "custom", "tool/result", "step/end"]
    assert isinstance(log[5], CustomEvent)
    assert (log[5].name, log[5].data) == ("state", '{"cwd":"/"}')


def test_the_state_after_the_last_step_waits_for_the_next_message() -> None:
    said = asks("c", thought="t", action="ls")
    step = {"thought": "t", "action": "ls", "state": "{}"}
    log, warnings = read_one(USER, said, steps=[step])
    assert [event.type for event in log][-1] == "tool/call"
    assert warnings == ["1 state at the end of the log held back until the next message"]
    log, warnings = read_one(USER, said, steps=[step], info={"exit_status": "submitted"})
    assert [event.type for event in log][-3:] == ["custom", "step/end", "turn/end"]
    assert warnings == []


def test_a_state_that_cannot_be_stored_affects_only_the_state() -> None:
    step = {"thought": "t", "action": "ls", "state": {"n": nested(600)}}
    log, warnings = read_one(USER, asks("c", thought="t", action="ls"), told("c"), steps=[step])
    assert [event.type for event in log][-3:] == ["tool/call", "tool/result", "step/end"]
    assert warnings == ["1 state that cannot be stored left out"]


def test_steps_have_agents_and_thoughts() -> None:
    log, _ = read_one(USER, asks("c", agent="main", thought="hm"))
    assert [event.agent_name for event in log if isinstance(event, StepStart)] == ["main"]
    log, _ = read_one(USER, asks("c", agent="main", thought="hm"), told("c"))
    assert [event.thought for event in log if isinstance(event, StepEnd)] == ["hm"]


def test_a_call_id_used_again_is_answered_by_order() -> None:
    log, _ = read_one(
        USER, asks("c", content="1"), told("c", content="r1"), asks("c", content="2"), told("c", content="r2")
    )
    assert [message["content"] for message in surface(log)] == ["do it", "1", "r1", "2", "r2"]
    assert [event.step_id for event in log if isinstance(event, ToolResult)] == ["step-1", "step-2"]


def test_one_message_can_answer_several_calls() -> None:
    log, _ = read_one(USER, asks("c", "d"), told("c", "d"))
    assert [(event.call_id, event.result) for event in log if isinstance(event, ToolResult)] == [
        ("c", '"r"'),
        ("d", '"r"'),
    ]


def test_observations_as_user_messages_start_no_turn() -> None:
    said = {"role": "assistant", "content": "```ls```"}
    log, _ = read_one(SYSTEM, USER, said, USER, said, USER)
    types = [event.type for event in log]
    assert types == [
        "system/message",
        "turn/start",
        "user/message",
        *["step/start", "assistant/message", "user/message", "step/end"] * 2,
    ]


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ("submitted", TurnEnd(turn_id="turn-1")),
        ("exit_cost", TurnEnd(turn_id="turn-1", status=RunStatus.FAILED, error="exit_cost")),
    ],
)
def test_the_exit_status_ends_the_turn(status: str, end: TurnEnd) -> None:
    log, _ = read_one(USER, asks(), info={"exit_status": status})
    assert log[-1].model_copy(update={"seq": -1}) == end


@pytest.mark.parametrize("info", [{}, {"exit_status": None}, {"exit_status": 3}, None, []])
def test_a_run_without_an_exit_status_stays_open(info: object) -> None:
    log, _ = read_one(USER, asks("c"), told("c"), info=info)
    assert log[-1].type == "step/end"


def test_demonstrations_are_not_steps_and_give_no_label() -> None:
    demo = {"role": "user", "content": "demo", "is_demo": True}
    steps, warnings = read_steps(
        swe_agent, trajectory(SYSTEM, demo, asks("c", is_demo=True), told("c", is_demo=True), USER)
    )
    [log] = visible_logs(steps).values()
    assert [event.type for event in log] == [
        "system/message",
        "user/message",
        "assistant/message",
        "tool/call",
        "tool/result",
        "turn/start",
        "user/message",
    ]
    assert [getattr(step, "label", None) for step in steps] == ["do it"]
    assert "3 messages of a demonstration logged like others" in warnings.messages()


def test_totals_and_settings_are_metadata() -> None:
    [session] = read_document(TEXTS, (DATA / TEXTS).read_text()).sessions
    found = json.loads(session.metadata or "")
    assert found == {"environment": real(TEXTS)["environment"], "info": real(TEXTS)["info"]}


def test_a_broken_message_is_kept_as_custom_and_reported_with_its_location() -> None:
    log, warnings = read_one(
        USER, {"content": "?"}, 5, {"role": "tool", "content": 7}, told("c", tool_call_ids=3), asks()
    )
    types = ["turn/start", "user/message", *["custom"] * 4, "step/start", "assistant/message"]
    assert [event.type for event in log] == types
    assert warnings == [
        "4 messages that could not be read kept as custom, the first: log line 1 history[1].role: must be a string, "
        "is null"
    ]


@pytest.mark.parametrize("document", [{"trajectory": []}, {"history": 5, "trajectory": []}, [1], 5])
def test_a_record_that_is_not_a_trajectory_is_refused(document: object) -> None:
    steps, warnings = read_steps(swe_agent, encoded(document))
    assert steps == []
    assert "1 record left out" in warnings.messages()[0]


def test_surrogates_and_zero_characters_are_kept_as_far_as_they_can_be() -> None:
    log, _ = read_one({"role": "user", "content": "a\0b\ud800"}, asks("\ud800"), told("\ud800", content="\ud800\0"))
    assert [message["content"] for message in surface(log)] == ["a\0b\ufffd", "a", "\ufffd\0"]
    check_log(log)


def test_content_in_parts_is_kept() -> None:
    parts = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]
    log, _ = read_one({"role": "user", "content": parts}, {"role": "user", "content": [{"type": "text", "text": "b"}]})
    assert [message["content"] for message in surface(log)] == [parts, "b"]


@given(seed=SEEDS, name=st.sampled_from(BOTH))
def test_odd_input_is_read_or_refused(seed: int, name: str) -> None:
    value = real(name)
    for part in ("history", "trajectory"):
        value[part] = value[part][:9]
    steps, _ = read_steps(swe_agent, encoded(odd(value, seed)))
    for log in visible_logs(steps).values():
        check_log(log)
