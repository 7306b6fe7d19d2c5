"""Samples of Inspect logs are sessions whose surface is their messages."""

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
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    UserMessage,
)
from storage.transfer.formats import inspect_ai
from storage.transfer.formats.registry import ForeignSession, read_document
from storage.transfer.formats.shared import records
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.record import Record
from storage.views.runs import runs
from tests.storage.transfer.formats.documents import check_log, check_prefixes, encoded, read_steps, surface
from tests.storage.transfer.formats.logs import DATA, counts, messages, visible_logs
from tests.storage.transfer.formats.mutations import SEEDS, odd

LOG = "inspect_ai/2025-05-12_browser.json"
USER = {"id": "u", "role": "user", "content": "go", "source": "input"}
HEAD = {"version": 2, "status": "success", "eval": {"task": "t", "eval_id": "E"}}


def real() -> Any:
    return json.loads((DATA / LOG).read_bytes())


def real_sample() -> ForeignSession:
    return read_document(LOG, (DATA / LOG).read_text()).sessions[1]


def says(id: str, *calls: str, content: Any = "a", **fields: Any) -> dict[str, Any]:
    asked = [{"id": call, "function": "f", "arguments": {"x": 1}} for call in calls]
    return {"id": id, "role": "assistant", "content": content, "tool_calls": asked, **fields}


def tool_result(call: str, content: Any = "r", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": call, "function": "f", **fields}


def at(second: float) -> str:
    return f"2025-05-12T20:00:{second:06.3f}-04:00"


def model(id: str, start: float, stop: float, **fields: Any) -> dict[str, Any]:
    output = {"choices": [{"message": {"id": id}}], "usage": {"input_tokens": 3, "output_tokens": 4}}
    return {"event": "model", "timestamp": at(start), "completed": at(stop), "output": output, **fields}


def tool(call: str, start: float, stop: float, **fields: Any) -> dict[str, Any]:
    return {"event": "tool", "id": call, "timestamp": at(start), "completed": at(stop), **fields}


def other(kind: str, second: float, **fields: Any) -> dict[str, Any]:
    return {"event": kind, "timestamp": at(second), **fields}


def document(*given: Any, events: Any = (), last: str = "", **fields: Any) -> bytes:
    output = {"choices": [{"message": {"id": last}}]} if last else {}
    sample = {"id": 1, "epoch": 1, "messages": list(given), "events": list(events), "output": output, **fields}
    return encoded({**HEAD, "samples": [sample]})


def read_one(*given: Any, events: Any = (), last: str = "", **fields: Any) -> tuple[list[Event], list[str]]:
    steps, warnings = read_steps(inspect_ai, document(*given, events=events, last=last, **fields))
    log = visible_logs(steps)["sample-0"]
    check_log(log)
    return log, warnings.messages()


def types(log: list[Event]) -> list[str]:
    return [event.name if isinstance(event, CustomEvent) else event.type for event in log]


def original(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages in the shape of the surface, arguments as objects."""
    found = []
    for item in given:
        message: dict[str, Any] = {"role": item["role"], "content": item["content"]}
        if item.get("tool_calls"):
            message["content"] = item["content"] or None
            message["tool_calls"] = [(call["id"], call["function"], call["arguments"]) for call in item["tool_calls"]]
        if item["role"] == "tool":
            message["tool_call_id"] = item["tool_call_id"]
        found.append(message)
    return found


def shown(log: list[Event]) -> list[dict[str, Any]]:
    found = surface(log)
    for message in found:
        if "tool_calls" in message:
            message["tool_calls"] = [
                (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
                for call in message["tool_calls"]
            ]
    return found


def test_the_format_is_recognised_by_its_content() -> None:
    assert read_document(LOG, (DATA / LOG).read_text()).format == "inspect"


def test_a_real_log_keeps_all_messages_calls_and_results() -> None:
    sessions = read_document(LOG, (DATA / LOG).read_text()).sessions
    found = counts(sessions)
    assert [session.counted for session in sessions] == [False, True]
    assert (messages(sessions), found["tool/call"]) == ((1, 5, 4, 0), 4)
    assert (found["turn/start"], found["turn/end"], found["step/start"], found["step/end"]) == (1, 1, 5, 5)
    # Of 43 events 5 are model calls and 4 are tools.
    assert found["custom"] == 43 - 5 - 4


def test_the_surface_of_a_real_sample_is_its_messages() -> None:
    log = list(real_sample().events)
    assert shown(log) == original(real()["samples"][0]["messages"])
    steps, _ = read_steps(inspect_ai, (DATA / LOG).read_bytes())
    check_log(visible_logs(steps)["sample-0"])


def test_more_messages_only_add_events() -> None:
    log = real()
    [sample] = log["samples"]
    given = sample["messages"]

    def cut(size: int) -> bytes:
        return encoded({**log, "samples": [{**sample, "messages": given[:size]}]})

    check_prefixes(inspect_ai, cut, range(len(given) + 1))


def test_more_samples_only_add_sessions() -> None:
    log = real()
    samples = [{**log["samples"][0], "uuid": f"s{number}"} for number in range(4)]
    whole, _ = read_steps(inspect_ai, encoded({**log, "samples": samples}))
    for size in range(5):
        steps, _ = read_steps(inspect_ai, encoded({**log, "samples": samples[:size]}))
        assert steps == whole[: len(steps)]
        assert len(steps) == size + 1


def test_the_samples_are_children_of_their_evaluation() -> None:
    evaluation, sample = read_document(LOG, (DATA / LOG).read_text()).sessions
    log = real()
    assert (evaluation.label, evaluation.id, list(evaluation.events)) == ("browser", "ZB2vu5GNujYaBdPSReCeop", [])
    assert (sample.label, sample.id, sample.parent) == ("Sample 1, epoch 1", "ATYFNjyWUz4mZ5Dgj6yd4f", evaluation.key)
    assert json.loads(evaluation.metadata or "")["eval"] == log["eval"]
    facts = json.loads(sample.metadata or "")
    assert facts["scores"] == log["samples"][0]["scores"]
    assert facts["model_usage"] == log["samples"][0]["model_usage"]
    assert not facts.keys() & {"messages", "events", "attachments", "input"}


def test_results_have_the_durations_of_their_tools() -> None:
    expected = [each["working_time"] * 1000 for each in real()["samples"][0]["events"] if each["event"] == "tool"]
    found = [event.duration_ms for event in real_sample().events if isinstance(event, ToolResult)]
    assert found == pytest.approx(expected)


def test_steps_have_times_tokens_and_durations_of_their_model_calls() -> None:
    log, _ = read_one(USER, says("m", "c"), tool_result("c"), events=[model("m", 1, 2), tool("c", 3, 5.5)])
    [start] = [event for event in log if isinstance(event, StepStart)]
    [end] = [event for event in log if isinstance(event, StepEnd)]
    [given] = [event for event in log if isinstance(event, AssistantMessage)]
    [result] = [event for event in log if isinstance(event, ToolResult)]
    began = 1747094400000
    assert (start.timestamp, given.timestamp, result.timestamp, end.timestamp) == (
        began + 1000,
        began + 2000,
        began + 5500,
        began + 5500,
    )
    assert (result.duration_ms, end.duration_ms, end.token_count) == (2500, 4500, 7)


def test_runs_show_the_durations_and_tokens_of_a_real_sample() -> None:
    [run] = runs(visible_logs(read_steps(inspect_ai, (DATA / LOG).read_bytes())[0])["sample-0"], "s")
    usage = real()["samples"][0]["model_usage"]["openai/gpt-4o-mini"]
    assert (run.status, run.duration_ms, run.token_count) == (RunStatus.SUCCESS, 19687, usage["total_tokens"])
    assert [step.duration_ms for step in run.steps] == [5618, 2087, 3846, 2029, 4636]
    assert [call.duration_ms for call in run.tool_invocations] == [4317.574, 1277.824, 2994.536, 1270.255]


def test_a_message_ends_the_turn_at_the_time_of_the_last_call() -> None:
    log, _ = read_one(USER, says("m", "c"), says("n", "d"), USER, events=[model("m", 1, 2), model("n", 3, 4)])
    began = 1747094400000
    assert [event.timestamp for event in log if isinstance(event, StepEnd | TurnEnd)] == [
        began + 2000,
        began + 4000,
        began + 4000,
    ]


def test_times_that_run_backwards_give_no_duration() -> None:
    log, _ = read_one(USER, says("m", "c"), tool_result("c"), events=[model("m", 4, 2), tool("c", 3, 1)])
    assert [event.duration_ms for event in log if isinstance(event, StepEnd | ToolResult)] == [None, None]


def test_input_has_the_time_when_the_sample_began() -> None:
    log, _ = read_one(USER, {**USER, "source": "solver"}, events=[other("sample_init", 7)])
    assert [event.timestamp for event in log if isinstance(event, UserMessage)] == [1747094407000, None]


def test_attachments_replace_their_references() -> None:
    state = other("state", 1, changes=[{"value": "attachment://h"}])
    log, _ = read_one(
        {**USER, "content": "attachment://h"},
        says("m", "c", content=[{"type": "text", "text": "attachment://h"}]),
        tool_result("c", "attachment://h"),
        events=[state, model("m", 2, 3)],
        attachments={"h": "long"},
    )
    assert [message["content"] for message in surface(log)] == ["long"] * 3
    [kept] = [event for event in log if isinstance(event, CustomEvent)]
    assert json.loads(kept.data)["changes"] == [{"value": "long"}]


def test_a_reference_without_a_text_stays_and_is_counted() -> None:
    log, warnings = read_one({**USER, "content": "attachment://h"}, {**USER, "content": "see attachment://h"})
    assert [message["content"] for message in surface(log)] == ["attachment://h", "see attachment://h"]
    assert "1 attachment missing in the log kept as its reference" in warnings


def test_no_reference_is_left_in_a_real_sample() -> None:
    assert not [event for event in real_sample().events if '"attachment://' in event.model_dump_json()]


def test_arguments_are_objects() -> None:
    log, _ = read_one(USER, says("m", "c"))
    assert [event.args for event in log if isinstance(event, ToolCall)] == ['{"x":1}']


def test_a_call_id_used_again_is_answered_by_order() -> None:
    log, _ = read_one(
        USER,
        says("m", "c"),
        tool_result("c", "1"),
        says("n", "c"),
        tool_result("c", "2"),
        events=[model("m", 1, 2), tool("c", 2, 3), model("n", 3, 4), tool("c", 4, 8)],
    )
    assert [message["content"] for message in surface(log)] == ["go", "a", "1", "a", "2"]
    assert [event.duration_ms for event in log if isinstance(event, ToolResult)] == [1000, 4000]


def test_the_error_of_a_tool_is_the_error_of_its_result() -> None:
    error = {"type": "timeout", "message": "too slow"}
    log, _ = read_one(
        USER, says("m", "c", "d"), tool_result("c", "", error=error), tool_result("d", "partly", error=error)
    )
    assert [(event.error, event.result) for event in log if isinstance(event, ToolResult)] == [
        ("too slow", None),
        ("too slow", '"partly"'),
    ]


def test_a_truncated_output_has_its_length() -> None:
    log, _ = read_one(USER, says("m", "c"), tool_result("c"), events=[tool("c", 1, 2, truncated=[900, 100])])
    [result] = [event for event in log if isinstance(event, ToolResult)]
    assert (result.truncated, result.output_length) == (True, 900)


def test_reasoning_is_separate_and_other_parts_are_kept() -> None:
    thought = {"type": "reasoning", "reasoning": "hm", "signature": None, "redacted": False}
    signed = {"type": "reasoning", "reasoning": "hm", "signature": "s"}
    hidden = {"type": "reasoning", "reasoning": "xyz", "redacted": True}
    answer = {"type": "text", "text": "a", "refusal": None}
    image = {"type": "image", "image": "data:", "detail": "auto"}
    for parts, reasoning, blocks in (
        ([thought, answer], "hm", None),
        ([thought, thought, answer], "hm\n\nhm", None),
        ([signed, answer], "hm", [signed, {"type": "text", "text": "a"}]),
        ([hidden, answer], None, [hidden, {"type": "text", "text": "a"}]),
        ([answer, image], None, [{"type": "text", "text": "a"}, image]),
    ):
        log, _ = read_one(USER, says("m", content=parts))
        [given] = [event for event in log if isinstance(event, AssistantMessage)]
        assert (given.content, given.reasoning) == ("a", reasoning)
        assert (None if given.blocks is None else json.loads(given.blocks)) == blocks


def test_other_events_are_in_order_between_messages() -> None:
    log, _ = read_one(
        USER,
        says("m", "c"),
        tool_result("c"),
        says("n"),
        last="n",
        events=[
            other("sample_init", 0),
            model("m", 1, 2),
            tool("c", 3, 6),
            other("sandbox", 4),
            other("info", 7),
            model("n", 8, 9),
            other("score", 10),
        ],
    )
    assert types(log) == [
        "turn/start",
        "user/message",
        "sample_init",
        "step/start",
        "assistant/message",
        "tool/call",
        "sandbox",
        "tool/result",
        "step/end",
        "info",
        "step/start",
        "assistant/message",
        "step/end",
        "turn/end",
        "score",
    ]


def test_a_model_call_that_gave_no_message_is_kept_without_what_it_repeats() -> None:
    grader = model("g", 3, 4, input=[USER], tools=[], model="grader")
    log, warnings = read_one(USER, says("m"), events=[model("m", 1, 2), grader], last="m")
    assert isinstance(log[-1], CustomEvent)
    assert (log[-1].name, json.loads(log[-1].data).keys()) == (
        "model",
        {"event", "timestamp", "completed", "output", "model"},
    )
    assert "1 model event lost input" in warnings


def test_events_after_the_last_message_wait_until_that_is_known_to_be_the_last() -> None:
    log, warnings = read_one(USER, says("m"), events=[model("m", 1, 2), other("score", 3)], last="n")
    assert "score" not in types(log)
    assert "1 event at the end of the sample held back until its last message is known" in warnings


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"error": {"message": "boom", "traceback": "..."}}, "boom"),
        ({"limit": {"type": "token", "limit": 5}}, "limit reached: token"),
        ({"error": {}}, "an error without a message"),
    ],
)
def test_a_sample_that_failed_ends_its_open_turn(fields: Any, error: str) -> None:
    log, _ = read_one(USER, says("m", "c"), events=[other("error", 3)], **fields)
    assert types(log)[-3:] == ["error", "step/end", "turn/end"]
    assert isinstance(log[-1], TurnEnd)
    assert (log[-1].status, log[-1].error) == (RunStatus.FAILED, error)


def test_a_sample_is_labelled_by_its_id_and_epoch() -> None:
    samples = [{"id": name, "epoch": 2, "messages": []} for name in ("a", 1, None, [1])]
    steps, _ = read_steps(inspect_ai, encoded({**HEAD, "samples": samples}))
    assert [step.label for step in steps if isinstance(step, ForeignSession)] == [
        "t",
        "Sample a, epoch 2",
        "Sample 1, epoch 2",
        "epoch 2",
        "epoch 2",
    ]


def test_an_id_of_two_samples_goes_to_the_first() -> None:
    samples = [{"id": 1, "uuid": "U", "messages": []}, {"id": 2, "uuid": "U", "messages": []}]
    steps, _ = read_steps(inspect_ai, encoded({**HEAD, "samples": samples}))
    assert [step.id for step in steps if isinstance(step, ForeignSession)] == ["E", "U", None]


def test_fields_after_the_samples_are_counted() -> None:
    warnings = ImportWarnings()
    reader = inspect_ai.reader("log", warnings)
    assert len(reader.add(Record("log", HEAD))) == 1
    assert list(reader.add(Record("log", {"reductions": [1]}, part="more"))) == []
    assert warnings.messages() == ["1 log lost reductions"]


def test_a_sample_of_a_large_log_is_read_like_one_of_a_small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "WHOLE_BYTES", 1000)
    steps, warnings = read_steps(inspect_ai, (DATA / LOG).read_bytes())
    assert steps[1] == real_sample()
    assert "1 log lost reductions" in warnings.messages()


def test_a_broken_message_is_kept_as_custom_and_reported_with_its_location() -> None:
    bad = says("m", "c")
    bad["tool_calls"][0]["function"] = None
    log, warnings = read_one(USER, 5, {"role": None}, bad, says("n"))
    assert types(log)[:5] == ["turn/start", "user/message", *["message"] * 3]
    assert types(log)[5:] == ["step/start", "assistant/message", "step/end", "turn/end"]
    expected = (
        "3 messages that could not be read kept as custom, the first: log samples[0] messages[1]: must be an object"
    )
    assert any(warning.startswith(expected) for warning in warnings)


def test_a_broken_message_is_kept_with_its_attachments() -> None:
    log, _ = read_one(USER, {"role": 5, "content": "attachment://a"}, attachments={"a": "long"})
    assert [json.loads(event.data) for event in log if isinstance(event, CustomEvent)] == [
        {"role": 5, "content": "long"}
    ]


def test_invalid_attachments_are_reported() -> None:
    log, warnings = read_one(USER, attachments=[1])
    assert types(log) == ["turn/start", "user/message"]
    assert "1 record left out, log samples[0] attachments: must be an object" in warnings[-1]


@pytest.mark.parametrize("sample", [5, {}, {"messages": None}])
def test_a_sample_without_messages_is_left_out(sample: object) -> None:
    steps, warnings = read_steps(inspect_ai, encoded({**HEAD, "samples": [sample, {"messages": []}]}))
    assert list(visible_logs(steps)) == ["evaluation", "sample-0"]
    assert warnings.kinds()["record left out"] == 1


def test_surrogates_and_zero_characters_are_kept_as_far_as_they_can_be() -> None:
    log, _ = read_one({**USER, "content": "a\0b\ud800"}, says("\ud800", "\ud800"), tool_result("\ud800", "\ud800"))
    assert [message["content"] for message in surface(log)] == ["a\0b\ufffd", "a", "\ufffd"]


def test_nesting_without_end_affects_only_its_message_or_event() -> None:
    deep: Any = []
    for _ in range(700):
        deep = [deep]
    log, warnings = read_one(USER, says("m", content=deep), says("n"), events=[other("x", 1, data=deep)], last="n")
    assert types(log)[2:] == ["step/start", "assistant/message", "step/end", "turn/end"]
    assert warnings[-1].startswith("2 records left out, the first: log samples[0] messages[1]: nested deeper than 500")


@given(seed=SEEDS, inside=st.booleans())
def test_odd_input_is_read_or_refused(seed: int, inside: bool) -> None:
    log = real()
    [sample] = log["samples"]
    sample["messages"] = [*sample["messages"][:3], *sample["messages"][-2:]]
    sample["events"] = sample["events"][::2]
    broken = {**log, "samples": [odd(sample, seed)]} if inside else odd(log, seed)
    steps, _ = read_steps(inspect_ai, encoded(broken))
    for each in visible_logs(steps).values():
        check_log(each)
