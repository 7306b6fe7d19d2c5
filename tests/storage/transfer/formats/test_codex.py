import json
from collections import Counter
from typing import Any, TypeVar

import pytest
from hypothesis import given

from storage import errors
from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    RunStatus,
    StepEnd,
    StepStart,
    SurfaceHide,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.transfer.formats import codex
from storage.transfer.formats.shared.foreign import ForeignLabel, ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.record import Record
from storage.views.runs import runs
from storage.views.surface import Surface
from tests.storage.transfer.formats import mutations
from tests.storage.transfer.formats.logs import document, records_of, steps_of, visible_logs
from tests.storage.views.validity import check

LOG = "codex/rollout-2026-05-11T11-26-55-019e1625.jsonl"
E = TypeVar("E", bound=Event)


def values_of(name: str) -> list[Any]:
    return [record.value for record in records_of(*document(name)) if isinstance(record, Record)]


def real() -> tuple[list[Step], ImportWarnings]:
    return steps_of(records_of(*document(LOG)))


def read_values(*values: Any) -> tuple[list[Step], ImportWarnings]:
    return steps_of([Record(f"log line {index + 1}", value) for index, value in enumerate(values)], "codex")


def line(kind: str, payload: Any, second: int = 1) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02}.000Z", "type": kind, "payload": payload}


def meta(id: Any = "s", **fields: Any) -> Any:
    return line("session_meta", {"id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w", **fields})


def event(kind: str, second: int = 1, **fields: Any) -> Any:
    return line("event_msg", {"type": kind, **fields}, second)


def item(kind: str, second: int = 1, **fields: Any) -> Any:
    return line("response_item", {"type": kind, **fields}, second)


def message(role: str, *texts: str, second: int = 1) -> Any:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", second, role=role, content=[{"type": kind, "text": text} for text in texts])


def call(id: Any, second: int = 1, **fields: Any) -> Any:
    return item(
        "function_call", second, **{"name": "shell", "arguments": '{"command": ["ls"]}', "call_id": id, **fields}
    )


def output(id: Any, content: Any = "ok", second: int = 1) -> Any:
    return item("function_call_output", second, call_id=id, output=content)


def tokens(last: int, total: int, second: int = 1) -> Any:
    usage = {"input_tokens": last - 1, "output_tokens": 1, "total_tokens": last}
    return event("token_count", second, info={"last_token_usage": usage, "total_token_usage": {"total_tokens": total}})


def start(id: str = "t1", second: int = 1) -> Any:
    return event("task_started", second, turn_id=id)


def complete(id: str = "t1", second: int = 1) -> Any:
    return event("task_complete", second, turn_id=id, last_agent_message="done")


def events(*values: Any) -> list[Event]:
    [log] = visible_logs(read_values(meta(), *values)[0]).values()
    return log


def surface(log: list[Event]) -> list[tuple[str, str | None]]:
    folded = Surface()
    for event in log:
        folded.check_replace(event)
        folded.add(event)
    check(folded)
    return [(message.role.lower(), message.content) for message in folded.messages()]


def of_type(kind: type[E], log: list[Event]) -> list[E]:
    return [event for event in log if isinstance(event, kind)]


def types(log: list[Event]) -> list[str]:
    return [event.type for event in log]


# The real log


def test_the_real_log_has_the_counts_of_its_manifest() -> None:
    [log] = visible_logs(real()[0]).values()
    found = Counter(types(log))
    assert [found[kind] for kind in ("user/message", "assistant/message", "tool/result", "system/message")] == [
        3,
        13,
        102,
        1,
    ]
    assert found["tool/call"] == 102
    assert {each.call_id for each in of_type(ToolCall, log)} == {each.call_id for each in of_type(ToolResult, log)}
    assert found["turn/start"] == found["turn/end"] == 2
    names = Counter(each.name for each in of_type(CustomEvent, log))
    # Reasoning is encrypted in this log; web searches run where the model runs and get no output.
    assert (names["reasoning"], names["web_search_call"]) == (25, 3)
    # A step for each of 66 token counts; calls in a row before the first output are one of 20 parallel groups.
    assert found["step/start"] == found["step/end"] == 66
    groups = Counter((each.turn_id, each.step_id) for each in of_type(ToolCall, log))
    assert sum(size > 1 for size in groups.values()) == 20
    assert max(groups.values()) == 3


def test_the_real_log_is_recognised_by_its_header() -> None:
    steps, warnings = real()
    [session] = [step for step in steps if isinstance(step, ForeignSession)]
    assert session.id == "019e1625-789d-76c0-80ab-3724b5ddb799"
    assert (session.parent_id, session.repeats) == (None, None)
    assert session.system_prompt is not None and session.system_prompt.startswith("You are Codex, a coding agent")
    facts = json.loads(session.metadata or "")
    assert (facts["cli_version"], facts["git"]["branch"]) == ("0.125.0", "feat/codex-agent-plugin")
    assert [step for step in steps if isinstance(step, ForeignLabel)] == [ForeignLabel(session.key, "show tools")]
    assert warnings.kinds() == {
        # 2 messages of the user and 13 of the model, 3 ends of web searches
        "record that repeats another one for display left out": 18,
        "reasoning that cannot be read kept as custom": 25,
        # 3 web searches, 43 ends of commands and 3 of patches
        "record of another type kept as custom": 49,
        "message lost fields": 13,
        "custom_tool_call lost fields": 3,
        "task_started lost fields": 2,
        "task_complete lost fields": 2,
    }


def test_runs_of_the_real_log_show_its_questions_durations_and_tokens() -> None:
    values = values_of(LOG)
    [log] = visible_logs(real()[0]).values()
    first, second = runs(log, "s")
    assert (first.query, second.query) == ("show tools", "let's update the defailt context compart to 90 in env var")
    assert (first.status, second.status) == (RunStatus.SUCCESS, RunStatus.SUCCESS)
    # From the record that starts the task to the one that ends it; the log reports 15.481 s.
    assert first.duration_ms == 15_418
    # The token counts of the calls add up to the last total.
    counts = [value["payload"]["info"] for value in values if value["payload"].get("type") == "token_count"]
    assert (first.token_count or 0) + (second.token_count or 0) == counts[-1]["total_token_usage"]["total_tokens"]
    durations = [each.duration_ms for each in of_type(ToolResult, log) if each.duration_ms is not None]
    outputs = [
        value["payload"].get("output") for value in values if value["payload"].get("type", "").endswith("_output")
    ]
    assert len(durations) == sum("Wall time: " in each or "duration_seconds" in each for each in outputs) == 99
    assert durations[0] == 1003.7
    assert json.loads(of_type(StepEnd, log)[0].model_output or "")["model"] == "gpt-5.5"


def test_a_prefix_of_the_real_log_gives_a_prefix_of_its_steps() -> None:
    found = records_of(*document(LOG))
    steps, _ = steps_of(found)
    before = 0
    for cut in range(1, len(found)):
        of_prefix, _ = steps_of(found[:cut])
        assert of_prefix == steps[: len(of_prefix)]
        assert len(of_prefix) >= before
        before = len(of_prefix)


def test_the_surface_of_the_real_log_is_valid_at_every_cut() -> None:
    [log] = visible_logs(real()[0]).values()
    folded = Surface()
    for event in log:
        folded.add(event)
        if event.seq < 60 or event.seq % 17 == 0:
            check(folded)
    check(folded)


def test_a_log_takes_the_events_of_the_real_log() -> None:
    mutations.check(real()[0])


# Contents of a log


def test_only_rollouts_are_recognised() -> None:
    assert codex.fits([meta()])
    assert codex.fits(["broken", message("user", "hi")])
    assert codex.fits(values_of(LOG)[:20])
    assert codex.fits([{"id": "s", "timestamp": "x", "instructions": None, "git": {}}, {"type": "message"}])
    assert not codex.fits([])
    assert not codex.fits([{"type": "message", "payload": {}}])
    assert not codex.fits([{"type": "response_item", "payload": "x"}])
    assert not codex.fits([{"id": "s", "timestamp": "x", "instructions": None, "messages": []}])
    assert not codex.fits([None, 3, "x", [], {}, {"role": "user", "content": "hi"}])


def test_duplicates_are_read_once() -> None:
    values = [message("user", "hi"), event("user_message", message="hi"), event("agent_message", message="yes")]
    steps, warnings = read_values(meta(), *values, message("assistant", "yes"))
    [log] = visible_logs(steps).values()
    assert surface(log) == [("user", "hi"), ("assistant", "yes")]
    assert warnings.kinds() == {"record that repeats another one for display left out": 2}


def test_what_codex_inserts_before_a_turn_is_outside_it() -> None:
    log = events(
        start(second=1),
        message("developer", "rules", "more rules"),
        message("user", "# AGENTS.md instructions for /w", "<environment_context>"),
        message("user", "what is it?", second=3),
        message("assistant", "it", second=4),
        complete(second=5),
    )
    assert [(each.type, each.turn_id) for each in log[:4]] == [
        ("system/message", None),
        ("user/message", None),
        ("turn/start", "t1"),
        ("user/message", "t1"),
    ]
    assert of_type(SystemMessage, log)[0].content == "rules\nmore rules"
    [run] = runs(log, "s")
    assert (run.query, run.status, run.duration_ms) == ("what is it?", RunStatus.SUCCESS, 4000)


def test_calls_in_a_row_before_the_first_output_are_one_step_that_ends_with_the_last_output() -> None:
    log = events(
        start(),
        message("user", "go"),
        call("a", 2),
        call("b", 3),
        tokens(10, 10, 3),
        output("b", second=4),
        output("a", second=5),
        call("c", 6),
        output("c", second=7),
    )
    assert [(each.call_id, each.step_id) for each in of_type(ToolCall, log)] == [
        ("a", "step-1"),
        ("b", "step-1"),
        ("c", "step-2"),
    ]
    [ended] = of_type(StepEnd, log)
    assert (ended.step_id, ended.token_count, ended.timestamp) == ("step-1", 10, 1767225605000)


def test_a_token_count_after_the_outputs_belongs_to_their_step() -> None:
    log = events(start(), message("user", "go"), call("a"), output("a"), tokens(10, 10), call("b"), output("b"))
    assert [each.token_count for each in of_type(StepEnd, log)] == [10]
    assert len(of_type(StepStart, log)) == 2


def test_a_repeated_token_count_counts_once_and_one_outside_a_step_is_left_out() -> None:
    values = [start(), message("user", "go"), call("a"), tokens(10, 10), tokens(10, 10), output("a")]
    steps, warnings = read_values(meta(), *values, tokens(10, 10), tokens(4, 14), event("token_count", info=None))
    [log] = visible_logs(steps).values()
    assert [each.token_count for each in of_type(StepEnd, log)] == [10]
    assert warnings.kinds() == {"token count outside a step left out": 1}


def test_arguments_stay_the_text_that_the_model_wrote() -> None:
    custom = item("custom_tool_call", call_id="b", name="apply_patch", input="*** Begin Patch")
    log = events(call("a", arguments='{"a" :1}'), custom)
    assert [json.loads(each.args) for each in of_type(ToolCall, log)] == ['{"a" :1}', "*** Begin Patch"]


def test_a_local_shell_call_is_answered_like_others() -> None:
    action = {"type": "exec", "command": ["ls"]}
    log = events(item("local_shell_call", call_id=None, id="x", status="completed", action=action), output("x"))
    [called], [answered] = of_type(ToolCall, log), of_type(ToolResult, log)
    assert (called.name, json.loads(called.args), called.call_id) == ("local_shell", action, answered.call_id)


def test_a_tool_that_ran_at_the_provider_is_kept_as_custom_in_the_step() -> None:
    log = events(start(), message("user", "go"), item("web_search_call", status="completed", action={"query": "x"}))
    [kept] = of_type(CustomEvent, log)
    assert (kept.name, kept.step_id) == ("web_search_call", "step-1")
    assert json.loads(kept.data) == {"status": "completed", "action": {"query": "x"}}


def test_call_ids_used_again_pair_in_order() -> None:
    log = events(call("a"), output("a", "1"), call("a"), output("a", "2"))
    assert [(each.step_id, each.result) for each in of_type(ToolResult, log)] == [("step-1", '"1"'), ("step-2", '"2"')]


@pytest.mark.parametrize(
    ("content", "duration"),
    [
        ("Chunk ID: a\nWall time: 1.0037 seconds\nProcess exited with code 0\nOutput:\nx", 1003.7),
        ("Exit code: 0\nWall time: 12 seconds\nOutput:\n", 12000),
        ('{"output":"x","metadata":{"exit_code":0,"duration_seconds":2.2}}', 2200),
        ({"output": "x", "metadata": {"duration_seconds": 0.5}}, 500),
        ("Output:\nWall time: 3 seconds\n", None),
        ("Chunk ID: a\nOutput:\nWall time: 3 seconds\n", None),
        ('{"duration_seconds": ', None),
        ('{"metadata":{"duration_seconds":-1}}', None),
        ("Wall time: " + "9" * 200 + " seconds\n", None),
    ],
)
def test_an_output_reports_its_duration(content: Any, duration: float | None) -> None:
    [answered] = of_type(ToolResult, events(call("a"), output("a", content)))
    assert answered.duration_ms == duration
    assert json.loads(answered.result or "") == content


def test_a_duration_reported_before_the_output_is_that_of_the_call() -> None:
    ended = event("exec_command_end", call_id="a", exit_code=0, duration={"secs": 5, "nanos": 87741459})
    log = events(call("a"), ended, output("a"))
    assert [each.duration_ms for each in of_type(ToolResult, log)] == [5088]
    assert json.loads(of_type(CustomEvent, log)[0].data)["exit_code"] == 0


def test_pictures_and_failures_of_outputs_are_kept() -> None:
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AA"}]
    log = events(call("a"), output("a", parts), call("b"), output("b", {"content": "denied", "success": False}))
    seen, failed = of_type(ToolResult, log)
    assert (seen.result, json.loads(seen.blocks or "")) == ('"see"', parts)
    assert (failed.result, failed.error) == (None, "denied")


def test_reasoning_belongs_to_the_next_message_or_else_to_the_step() -> None:
    def thought(text: str) -> Any:
        return item("reasoning", summary=[{"type": "summary_text", "text": text}], content=None)

    log = events(start(), message("user", "go"), thought("hm"), call("a"), output("a"), thought("ah"), thought("so"))
    more = events(start(), message("user", "go"), thought("ah"), thought("so"), message("assistant", "x"), complete())
    assert [each.thought for each in of_type(StepEnd, log)] == ["hm"]
    assert [each.thought for each in of_type(StepEnd, more)] == [None]
    assert [each.reasoning for each in of_type(AssistantMessage, more)] == ["ah\n\nso"]


def test_an_aborted_turn_has_failed() -> None:
    log = events(
        start(),
        message("user", "go"),
        call("a"),
        event("turn_aborted", turn_id="t1", reason="interrupted"),
        start("t2"),
    )
    [ended] = of_type(TurnEnd, log)
    assert (ended.turn_id, ended.status, ended.error) == ("t1", RunStatus.FAILED, "interrupted")
    assert surface(log)[-1][0] == "tool"


def test_a_turn_that_ends_after_an_error_has_failed_unless_the_model_went_on() -> None:
    failed = event("error", message="quota exceeded")
    [ended] = of_type(TurnEnd, events(start(), message("user", "go"), failed, complete()))
    assert (ended.status, ended.error) == (RunStatus.FAILED, "quota exceeded")
    [ended] = of_type(TurnEnd, events(start(), message("user", "go"), failed, message("assistant", "ok"), complete()))
    assert (ended.status, ended.error) == (RunStatus.SUCCESS, None)


def test_a_turn_whose_end_is_missing_has_failed_when_the_next_begins() -> None:
    log = events(start("t1"), message("user", "go"), start("t2"), message("user", "again"))
    [ended] = of_type(TurnEnd, log)
    assert (ended.turn_id, ended.status, ended.error) == ("t1", RunStatus.FAILED, "its end is not in the log")


def test_an_empty_turn_is_logged_with_its_end() -> None:
    assert types(events(start(), complete())) == ["turn/start", "turn/end"]
    steps, warnings = read_values(meta(), start())
    assert len(steps) == 1
    assert warnings.kinds() == {"turn at the end of the log held back until it has a message": 1}


def test_the_end_of_another_turn_is_kept_as_custom() -> None:
    log = events(start("t1"), message("user", "go"), complete("t0"), event("turn_aborted", turn_id="t9"))
    assert types(log) == ["turn/start", "user/message", "custom", "custom"]
    assert types(events(complete())) == ["custom"]


def test_turn_ids_used_again_get_others() -> None:
    log = events(start("t"), message("user", "1"), complete("t"), start("t"), message("user", "2"), complete("t"))
    assert [each.turn_id for each in of_type(TurnStart, log)] == ["t", "turn-2"]
    assert len(of_type(TurnEnd, log)) == 2


def test_without_marked_turns_a_turn_runs_from_a_question_to_the_response_without_calls() -> None:
    log = events(
        message("user", "<environment_context>"),
        message("user", "one"),
        message("assistant", "I look"),
        call("a"),
        tokens(10, 10),
        output("a"),
        message("assistant", "it is"),
        tokens(20, 30),
        message("user", "two"),
        message("user", "and three"),
        message("assistant", "wait"),
    )
    assert [(run.query, run.status, run.step_count) for run in runs(log, "s")] == [
        ("one", RunStatus.SUCCESS, 2),
        ("two", RunStatus.RUNNING, 1),
    ]
    assert log[0].turn_id is None


def test_a_user_message_in_a_marked_turn_belongs_to_it() -> None:
    log = events(start(), message("user", "go"), call("a"), message("user", "rather not"), output("a"))
    assert {each.turn_id for each in log} == {"t1"}
    assert len(of_type(TurnStart, log)) == 1


# Compactions and rollbacks


def history(*messages: tuple[str, str]) -> Any:
    items = [message(role, text)["payload"] for role, text in messages]
    return line("compacted", {"message": "", "replacement_history": items})


def test_a_replacement_history_replaces_the_surface() -> None:
    before = [message("user", "one"), call("a"), output("a"), message("assistant", "1"), message("user", "two")]
    for kept in ([("user", "sum")], [("user", "one"), ("user", "two"), ("assistant", "sum")]):
        log = events(*before, history(*kept), message("assistant", "2"))
        assert surface(log) == [*kept, ("assistant", "2")]
        replacing = [each for each in log if getattr(each, "replaces", False)]
        assert len(replacing) == len(kept)


def test_a_replacement_history_longer_than_the_surface_still_is_the_surface() -> None:
    kept = [("developer", "rules"), ("user", "one"), ("user", "sum")]
    log = events(message("user", "one"), history(*kept), message("assistant", "2"))
    assert surface(log) == [("system", "rules"), *kept[1:], ("assistant", "2")]
    assert surface(events(history(*kept))) == [("system", "rules"), *kept[1:]]
    again = events(message("user", "one"), history(*kept), message("user", "x"), history(("user", "all")))
    assert surface(again) == [("user", "all")]


def test_a_compaction_without_history_leaves_its_summary() -> None:
    log = events(message("user", "one"), call("a"), output("a"), line("compacted", {"message": "summary"}))
    assert surface(log) == [("user", "summary")]
    assert surface(events(message("user", "one"), line("compacted", {"message": ""}))) == [("user", "one")]


def test_items_of_a_replacement_history_that_are_not_messages_are_kept_as_custom() -> None:
    payload = history(("user", "sum"))["payload"]
    payload["replacement_history"].append({"type": "compaction", "encrypted_content": "abc"})
    [kept] = of_type(CustomEvent, events(message("user", "one"), line("compacted", payload)))
    assert json.loads(kept.data) == {"message": "", "others": [{"type": "compaction", "encrypted_content": "abc"}]}


def test_turns_that_were_rolled_back_leave_the_surface() -> None:
    start = [message("user", "one"), message("assistant", "1"), message("user", "two"), message("assistant", "2")]
    for turns, left in ((1, 2), (2, 0), (9, 0), (0, 4), (-1, 4)):
        log = events(*start, event("thread_rolled_back", num_turns=turns), message("user", "three"))
        assert surface(log)[:-1] == surface(events(*start))[:left]
        assert surface(log)[-1] == ("user", "three")
    twice = event("thread_rolled_back", num_turns=1)
    log = events(*start, twice, twice)
    assert surface(log) == []
    assert len(of_type(SurfaceHide, log)) == 2


# Sessions


def sessions(*values: Any) -> list[ForeignSession]:
    return [step for step in read_values(*values)[0] if isinstance(step, ForeignSession)]


def test_a_fork_names_the_session_whose_log_it_repeats_and_its_header_makes_no_event() -> None:
    start = [message("user", "one"), message("assistant", "1")]
    first, _ = read_values(meta("a"), *start)
    second, _ = read_values(meta("b", forked_from_id="a"), meta("a"), *start)
    third, warnings = read_values(meta("c", forked_from_id="b"), meta("b", forked_from_id="a"), meta("a"), *start)
    [origin], [fork], [of_fork] = (
        [each for each in steps if isinstance(each, ForeignSession)] for steps in (first, second, third)
    )
    assert (fork.id, fork.repeats, fork.parent_id, origin.repeats) == ("b", "a", "a", None)
    assert (of_fork.id, of_fork.repeats) == ("c", "b")
    logs = [next(iter(visible_logs(steps).values())) for steps in (first, second, third)]
    assert logs[0] == logs[1] == logs[2]
    assert warnings.kinds() == {"record repeating a header of this session, or of one it was forked from, left out": 2}


def test_a_header_of_an_unnamed_session_is_kept_as_custom() -> None:
    log = events(meta("other"), meta("s"))
    assert [each.name for each in of_type(CustomEvent, log)] == ["session_meta"]


def test_a_sub_agent_is_a_child_of_its_parent_and_names_its_steps() -> None:
    spawn = {"parent_thread_id": "p", "depth": 1, "agent_nickname": "Atlas", "agent_role": "explorer"}
    values = [meta("s", source={"subagent": {"thread_spawn": spawn}}), message("assistant", "x")]
    [session] = sessions(*values)
    assert (session.parent_id, session.repeats) == ("p", None)
    [log] = visible_logs(read_values(*values)[0]).values()
    assert [each.agent_name for each in of_type(StepStart, log)] == ["Atlas"]


def test_a_name_is_the_label() -> None:
    steps, _ = read_values(
        meta(), message("user", "one"), event("thread_name_updated", thread_name="Named"), message("user", "x")
    )
    assert [step.label for step in steps if isinstance(step, ForeignLabel)] == ["one", "Named"]


def test_facts_of_a_turn_are_kept() -> None:
    log = events(line("turn_context", {"model": "gpt-5", "effort": "high", "cwd": "/w"}), message("assistant", "x"))
    assert json.loads(of_type(CustomEvent, log)[0].data) == {"model": "gpt-5", "effort": "high", "cwd": "/w"}
    [ended] = of_type(
        StepEnd, events(*[line("turn_context", {"model": "gpt-5"}), message("assistant", "x"), tokens(3, 3)])
    )
    assert json.loads(ended.model_output or "")["model"] == "gpt-5"


def test_records_of_future_types_are_kept_as_custom() -> None:
    log = events(
        line("world_state", {"x": 1}), event("brand_new", y=2), item("ghost_snapshot", ghost_commit={"id": "c"})
    )
    found = [(each.name, json.loads(each.data)) for each in of_type(CustomEvent, log)]
    assert found == [
        ("world_state", {"x": 1}),
        ("brand_new", {"y": 2}),
        ("ghost_snapshot", {"ghost_commit": {"id": "c"}}),
    ]


OLD = [
    {"id": "old", "timestamp": "2025-07-01T00:00:00Z", "instructions": "be nice", "git": {"branch": "main"}},
    {"record_type": "state"},
    message("user", "go")["payload"],
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    call("a")["payload"],
    output("a")["payload"],
    message("assistant", "done")["payload"],
]


def test_an_old_rollout_is_a_header_and_bare_items() -> None:
    steps, warnings = steps_of([Record("log", value) for value in OLD])
    [session] = [step for step in steps if isinstance(step, ForeignSession)]
    assert session.id == "old"
    assert json.loads(session.metadata or "")["instructions"] == "be nice"
    [log] = visible_logs(steps).values()
    assert types(log) == [
        "turn/start",
        "user/message",
        "step/start",
        "tool/call",
        "tool/result",
        "step/end",
        "step/start",
        "assistant/message",
    ]
    assert {each.timestamp for each in log} == {None}
    assert warnings.kinds() == {"record that marks a state left out": 1}


# Broken logs


def test_a_rollout_without_its_header_gets_an_id_made_of_its_first_record() -> None:
    steps, warnings = read_values(message("user", "one"), message("assistant", "1"))
    longer, _ = read_values(message("user", "one"), message("assistant", "1"), message("user", "two"))
    [session] = [step for step in steps if isinstance(step, ForeignSession)]
    assert session.id is not None and session.id.startswith("codex:")
    assert longer[: len(steps)] == steps
    assert warnings.kinds() == {"session got an id made from its first record, as it has no valid one": 1}


def test_a_first_record_that_is_refused_starts_no_session() -> None:
    steps, refused = mutations.read_leniently("codex", [item("message", role=None), meta(), message("user", "one")])
    assert refused == {0}
    assert [step.key for step in steps if isinstance(step, ForeignSession)] == ["s"]


def test_times_that_run_backwards_stay_and_unreadable_ones_are_counted() -> None:
    odd = message("user", "two") | {"timestamp": 7}
    steps, warnings = read_values(meta(), message("user", "one", second=9), message("assistant", "1", second=2), odd)
    [log] = visible_logs(steps).values()
    assert [each.timestamp for each in of_type(UserMessage, log)] == [1767225609000, None]
    assert [each.timestamp for each in of_type(AssistantMessage, log)] == [1767225602000]
    assert warnings.kinds() == {"time that cannot be read left out": 1}


def test_surrogates_and_nul_are_kept() -> None:
    log = events(message("user", "a\ud800b\x00"), call("c\ud800"), output("c\ud800"))
    assert of_type(UserMessage, log)[0].content == "a\ufffdb\x00"
    assert surface(log)[-1] == ("tool", "ok")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (3, "must be an object"),
        ({}, "neither an envelope nor an item"),
        (line("response_item", None), "payload: must be an object"),
        ({"type": "event_msg"}, "payload: must be an object"),
        (event(None), "payload.type: must be a string"),  # type: ignore[arg-type]
        (item("message", role=None), "payload: role: must be a string"),
        (item("message", role="user", content=7), "payload: content: must be a string, a list of parts or null"),
        (item("function_call", name=None), "payload: name: must be a string"),
        (line("compacted", {"replacement_history": 3}), "replacement_history: must be a list"),
        (line("compacted", {"replacement_history": [3]}), r"replacement_history\[0\]: must be an object"),
    ],
)
def test_a_record_that_breaks_the_format_is_refused_with_its_location(value: Any, reason: str) -> None:
    with pytest.raises(errors.BadInput, match=f"log line 2.*{reason}"):
        read_values(meta(), value)


MADE = [
    meta("s", forked_from_id="a", source={"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}),
    start("t1", 1),
    message("user", "<environment_context>", second=2),
    line("turn_context", {"model": "m", "effort": "high"}, 2),
    message("user", "one", second=3),
    item("reasoning", 4, summary=[{"type": "summary_text", "text": "hm"}], content=None, encrypted_content="x"),
    call("a", 5),
    tokens(10, 10, 5),
    event("exec_command_end", 6, call_id="a", duration={"secs": 1, "nanos": 5}),
    output("a", '{"output":"x","metadata":{"duration_seconds":2.2}}', 6),
    history(("user", "sum"), ("assistant", "x")),
    item("web_search_call", 7, status="completed", action={"query": "x"}),
    message("assistant", "1", second=8),
    event("error", 9, message="no"),
    complete("t1", 9),
    event("thread_rolled_back", 9, num_turns=1),
    event("thread_name_updated", 9, thread_name="n"),
    event("turn_aborted", 9, turn_id=None, reason="interrupted"),
]


@given(mutations.mutated(MADE) | mutations.mutated(values_of(LOG)[:70]) | mutations.mutated(OLD))
def test_any_record_is_read_or_refused_without_a_trace(drawn: tuple[list[Any], int]) -> None:
    values, changed = drawn
    steps, refused = mutations.read_leniently("codex", values)
    assert refused <= {changed}
    mutations.check(steps)
    without = [value for index, value in enumerate(values) if index not in refused]
    assert steps == mutations.read_leniently("codex", without)[0]


def test_content_nested_too_deep_is_left_out() -> None:
    for values, changed in mutations.with_nesting([*MADE, *OLD[2:]]):
        steps, refused = mutations.read_leniently("codex", values)
        assert refused <= {changed}
        mutations.check(steps)
