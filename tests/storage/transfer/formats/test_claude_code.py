"""Logs of Claude Code: parts become messages, and a tree of records becomes sessions and branches."""

import json
from typing import Any

import pytest

from storage import errors
from storage.events import (
    AssistantMessage,
    CustomEvent,
    RunStatus,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.transfer.formats.claude_code.format import fits
from storage.views.surface import Surface
from tests.storage.transfer.formats.claude_logs import (
    SESSION,
    START,
    answer,
    call,
    labels,
    logs,
    outline,
    record,
    result,
    sessions,
    steps_and_warnings,
    text,
    thought,
    user,
)
from tests.storage.transfer.formats.documents import nested

PROMPT = user("u1", None, "hello")
ANSWER = answer("a1", "u1", "m1", text("hi"), second=1)


def main(*values: Any) -> list[Any]:
    return list(logs(*values)[SESSION])


def test_a_turn_with_thoughts_calls_and_results_in_several_records() -> None:
    first = {"usage": {"input_tokens": 1, "output_tokens": 1}}
    last = {"usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 7}, "stop_reason": "tool_use"}
    events = main(
        PROMPT,
        answer("a1", "u1", "m1", thought("hm"), second=1, **first),
        answer("a2", "a1", "m1", text("I look"), second=2, **first),
        answer("a3", "a2", "m1", call("c1"), second=3, **first),
        answer("a4", "a3", "m1", call("c2"), second=4, model="claude", **last),
        result("r2", "a4", "c2", second=5, toolUseResult={"durationMs": 120, "truncated": True}),
        result("r1", "a3", "c1", second=6),
        answer("a5", "r1", "m2", text("done"), second=7, stop_reason="end_turn"),
    )
    step: dict[str, Any] = {"turn_id": "turn-1", "step_id": "step-1"}
    output = f'{{"model":"claude","id":"m1","stop_reason":"tool_use","usage":{json.dumps(last["usage"])}}}'
    expected = [
        TurnStart(turn_id="turn-1", timestamp=START),
        UserMessage(turn_id="turn-1", content="hello", timestamp=START),
        StepStart(**step, timestamp=START + 1000),
        AssistantMessage(**step, content="I look", reasoning="hm", timestamp=START + 2000),
        ToolCall(**step, call_id="c1", name="Read", args='{"path":"x"}', timestamp=START + 3000),
        ToolCall(**step, call_id="c2", name="Read", args='{"path":"x"}', timestamp=START + 4000),
        CustomEvent(**step, name="toolUseResult", data='{"durationMs":120,"truncated":true}', timestamp=START + 5000),
        ToolResult(**step, call_id="c2", result='"ok"', duration_ms=120, truncated=True, timestamp=START + 5000),
        ToolResult(**step, call_id="c1", result='"ok"', timestamp=START + 6000),
        StepEnd(**step, token_count=20, model_output=output.replace(" ", ""), timestamp=START + 6000),
    ]
    assert [event.model_copy(update={"seq": -1}) for event in events[: len(expected)]] == expected
    assert outline(events[len(expected) :]) == ["step/start", "assistant done", "step/end", "turn/end"]
    assert events[-1].timestamp == START + 7000


def test_a_result_between_the_calls_of_a_message_leaves_its_step_open() -> None:
    events = main(
        PROMPT,
        answer("a1", "u1", "m1", call("c1")),
        result("r1", "a1", "c1"),
        answer("a2", "a1", "m1", call("c2")),
        result("r2", "a2", "c2"),
        answer("a3", "r2", "m2", text("done"), second=9),
    )
    assert outline(events) == [
        *("turn/start", "user hello", "step/start", "tool/call c1", "tool/result c1", "tool/call c2"),
        *("tool/result c2", "step/end", "step/start", "assistant done"),
    ]
    assert [len(message.tool_calls or ()) for message in Surface().add_all(events).messages()] == [0, 2, 0, 0, 0]
    assert events[7].timestamp == START


def test_a_thought_is_held_back_until_the_part_after_it() -> None:
    steps, warnings = steps_and_warnings(PROMPT, answer("a1", "u1", "m1", thought("hm")))
    assert len(steps) == 4
    assert warnings == ["1 record at the end of the log held back until its message is complete"]
    events = main(PROMPT, answer("a1", "u1", "m1", thought("hm")), answer("a2", "a1", "m1", call("c")))
    assert events[3:5] == [
        AssistantMessage(turn_id="turn-1", step_id="step-1", content="", reasoning="hm", timestamp=START, seq=3),
        ToolCall(
            turn_id="turn-1",
            step_id="step-1",
            call_id="c",
            name="Read",
            args='{"path":"x"}',
            timestamp=START,
            seq=4,
        ),
    ]


def test_an_interruption_ends_the_turn_and_logs_the_thought_that_was_cut_off() -> None:
    events = main(
        PROMPT,
        answer("a1", "u1", "m1", thought("hm"), second=1),
        user("u2", "a1", [text("[Request interrupted by user]")], 2),
        user("u3", "u2", "again", 3),
    )
    assert outline(events)[3:] == [
        *("assistant ", "step/end Request interrupted by user", "user [Request interrupted by user]"),
        *("turn/end Request interrupted by user", "turn/start", "user again"),
    ]
    assert events[3].interrupted
    assert events[3].reasoning == "hm"
    assert events[6].status is RunStatus.FAILED
    assert events[6].timestamp == START + 2000


def test_several_texts_in_a_message_become_messages_of_one_step() -> None:
    values = (PROMPT, ANSWER, answer("a2", "a1", "m1", text("there")), answer("a3", "a2", "m1", call("c")))
    assert outline(main(*values))[2:] == ["step/start", "assistant hi", "assistant there", "tool/call c"]
    assert steps_and_warnings(*values)[1] == ["1 answer with several texts became several messages"]


def test_messages_without_an_id_are_messages_of_their_own() -> None:
    events = main(PROMPT, answer("a1", "u1", None, text("a")), answer("a2", "a1", None, text("b")))
    assert outline(events)[2:] == ["step/start", "assistant a", "step/end", "step/start", "assistant b"]


def test_a_prompt_ends_the_turn_before_it_at_that_turns_last_time() -> None:
    events = main(PROMPT, ANSWER, user("u2", "a1", "more", 30))
    assert outline(events)[4:] == ["step/end", "turn/end", "turn/start", "user more"]
    assert (events[4].timestamp, events[5].timestamp, events[5].status) == (START + 1000, START + 1000, "SUCCESS")


def test_a_turn_without_an_answer_failed() -> None:
    events = main(PROMPT, answer("a1", "u1", "m1", call("c")), user("u2", "a1", "more"))
    assert events[5] == TurnEnd(
        turn_id="turn-1", status=RunStatus.FAILED, error="ended without an answer", timestamp=START, seq=5
    )


def test_a_turns_duration_ends_it() -> None:
    ended = record("system", "s1", "a1", 8, subtype="turn_duration", durationMs=8000)
    events = main(PROMPT, ANSWER, ended)
    assert outline(events)[4:] == ["custom system/turn_duration", "step/end", "turn/end"]
    assert events[4].data == '{"subtype":"turn_duration","durationMs":8000}'
    assert events[6].timestamp == START + 8000


def test_a_refusal_fails_the_turn() -> None:
    events = main(PROMPT, answer("a1", "u1", "m1", text("no"), stop_reason="refusal"))
    assert (events[-1].status, events[-1].error) == (RunStatus.FAILED, "refusal")


def test_a_failed_model_call_is_not_a_message() -> None:
    failed = answer("a1", "u1", "m1", text("API Error: 529"), isApiErrorMessage=True, error="overloaded", second=4)
    events = main(PROMPT, failed)
    assert outline(events)[2:] == ["step/start", "step/end API Error: 529", "turn/end API Error: 529"]
    assert events[-1].status is RunStatus.FAILED


def test_parallel_results_are_not_branches() -> None:
    values = (
        PROMPT,
        answer("a1", "u1", "m1", call("c1")),
        answer("a2", "a1", "m1", call("c2")),
        result("r1", "a1", "c1"),
        result("r2", "a2", "c2"),
        answer("a3", "r2", "m2", text("done")),
        user("u2", "a3", "more"),
    )
    assert len(sessions(*values)) == 1


def test_a_second_prompt_after_the_same_record_begins_a_branch_at_its_seq() -> None:
    values = (
        PROMPT,
        ANSWER,
        user("u2", "a1", "first try"),
        answer("a2", "u2", "m2", text("one")),
        user("u3", "a1", "second try"),
        answer("a3", "u3", "m3", text("two")),
        answer("a4", "a2", "m4", text("one, late")),
    )
    root, branch = sessions(*values)
    assert (branch.key, branch.source, branch.parent, branch.at_seq) == (f"{SESSION}:u3", SESSION, SESSION, 6)
    assert (branch.label, branch.counted, root.counted) == ("second try", False, True)
    found = logs(*values)
    assert outline(found[SESSION])[6:] == [
        *("turn/start", "user first try", "step/start", "assistant one", "step/end", "step/start"),
        "assistant one, late",
    ]
    assert outline(found[branch.key]) == [
        *outline(found[SESSION])[:6],
        *("turn/start", "user second try", "step/start", "assistant two"),
    ]


def test_the_first_prompt_can_be_typed_again_and_a_branch_can_branch() -> None:
    values = (
        PROMPT,
        user("u2", None, "again"),
        answer("a2", "u2", "m2", text("yes")),
        user("u3", "a2", "x"),
        user("u4", "a2", "y"),
    )
    found = logs(*values)
    assert [(each.key, each.source, each.at_seq) for each in sessions(*values)] == [
        (SESSION, None, 0),
        (f"{SESSION}:u2", SESSION, 0),
        (f"{SESSION}:u4", f"{SESSION}:u2", 6),
    ]
    assert outline(found[f"{SESSION}:u4"])[-2:] == ["turn/start", "user y"]
    assert outline(found[SESSION]) == ["turn/start", "user hello"]


def test_a_log_whose_records_name_no_parents_is_one_thread() -> None:
    values = [{name: value for name, value in each.items() if name != "parentUuid"} for each in (PROMPT, ANSWER)]
    assert len(sessions(*values, {**values[0], "uuid": "u2"})) == 1


def test_a_compaction_replaces_all_that_came_before() -> None:
    values = (
        PROMPT,
        answer("a1", "u1", "m1", call("c1"), second=1),
        result("r1", "a1", "c1", second=2),
        record("system", "s1", None, 3, subtype="compact_boundary", logicalParentUuid="r1", compactMetadata={"n": 1}),
        user("u2", "s1", "so far", 4, isCompactSummary=True, isVisibleInTranscriptOnly=True),
        answer("a2", "u2", "m2", text("on"), second=5, stop_reason="end_turn"),
    )
    events = main(*values)
    assert outline(events)[4:] == [
        *("tool/result c1", "custom system/compact_boundary", "step/end", "user so far"),
        *("step/start", "assistant on", "step/end", "turn/end"),
    ]
    assert {event.turn_id for event in events} == {"turn-1"}
    assert [message.content for message in Surface().add_all(events).messages()] == ["so far", "on"]


def test_a_compaction_at_the_start_is_a_message_like_others_and_kept_messages_are_counted() -> None:
    boundary = record("system", "s1", None, subtype="compact_boundary", compactMetadata={"preservedSegment": {"a": 1}})
    summary = user("u2", "s1", "so far", isCompactSummary=True)
    assert [message.content for message in Surface().add_all(main(summary)).messages()] == ["so far"]
    assert steps_and_warnings(boundary, summary)[1] == [
        "1 compaction kept the last messages, which are replaced here too"
    ]


def test_a_sub_agent_in_a_file_of_its_own_is_a_child_of_its_session() -> None:
    [agent] = sessions(user("u1", None, "look", isSidechain=True, agentId="a7"))
    assert (agent.key, agent.id, agent.parent, agent.parent_id) == (f"{SESSION}:a7", f"{SESSION}:a7", None, SESSION)
    assert json.loads(agent.metadata or "") == {"sessionId": SESSION, "agentId": "a7", "cwd": "/w"}


def test_sub_agents_and_side_chains_of_one_file_are_children() -> None:
    side: dict[str, Any] = {"isSidechain": True}
    values = (
        PROMPT,
        answer("a1", "u1", "m1", call("c1")),
        user("x1", None, "one", **side),
        user("y1", None, "two", **side),
        user("z1", "a1", "three", **side, agentId="z"),
        answer("x2", "x1", "m2", text("from one"), **side),
        answer("y2", "y1", "m3", text("from two"), **side),
        answer("z2", "z1", "m4", text("from three"), **side, agentId="z"),
        result("r1", "a1", "c1"),
    )
    found = logs(*values)
    assert [(each.key, each.parent) for each in sessions(*values)] == [
        (SESSION, None),
        *((f"{SESSION}:{own}", SESSION) for own in ("x1", "y1", "z")),
    ]
    for own, words in (("x1", "one"), ("y1", "two"), ("z", "three")):
        expected = ["turn/start", f"user {words}", "step/start", f"assistant from {words}"]
        assert outline(found[f"{SESSION}:{own}"]) == expected
    assert outline(found[SESSION])[-1] == "tool/result c1"
    [step] = [event for event in found[f"{SESSION}:z"] if isinstance(event, StepStart)]
    assert step.agent_name == "z"


def test_a_forked_session_repeats_the_one_that_it_was_copied_from() -> None:
    [fork] = sessions(PROMPT | {"forkedFrom": {"sessionId": "s0", "messageUuid": "u0"}})
    assert (fork.id, fork.repeats) == (SESSION, "s0")
    assert json.loads(fork.metadata or "")["forkedFrom"] == "s0"


def test_a_session_that_continues_another_in_its_log_is_a_fork_of_it() -> None:
    values = (PROMPT, ANSWER, user("u2", "a1", "on", sessionId="s2"), user("u3", "a1", "else", sessionId="s3"))
    found = logs(*values)
    assert [(each.key, each.source, each.at_seq) for each in sessions(*values)] == [
        (SESSION, None, 0),
        ("s2", SESSION, 4),
        ("s3", SESSION, 4),
    ]
    expected = [*outline(found[SESSION]), "step/end", "turn/end", "turn/start", "user on"]
    assert outline(found["s2"]) == expected


def test_a_session_that_continues_from_an_unknown_point_shares_no_events() -> None:
    values = (PROMPT, ANSWER, user("u2", "a1", "x"), user("u3", "u1", "on", sessionId="s2"))
    fork = sessions(*values)[1]
    assert (fork.source, fork.at_seq, fork.parent) == (SESSION, None, SESSION)


def test_a_label_is_the_first_prompt_until_a_title_comes() -> None:
    meta = user("u0", None, "Caveat", isMeta=True)
    custom = {"type": "custom-title", "customTitle": "Mine", "sessionId": SESSION}
    ai = {"type": "ai-title", "aiTitle": "Generated", "sessionId": SESSION}
    assert labels(PROMPT, user("u2", "u1", "b")) == {SESSION: "hello"}
    assert labels(meta, user("u1", "u0", "hello")) == {SESSION: "hello"}
    assert labels(PROMPT, ai) == {SESSION: "Generated"}
    assert labels(custom, PROMPT, ai, custom) == {SESSION: "Mine"}
    assert outline(main(PROMPT, custom, ai)) == ["turn/start", "user hello", "custom ai-title"]


def test_a_summary_names_only_the_session_of_its_leaf() -> None:
    summary = {"type": "summary", "summary": "About", "leafUuid": "a1"}
    assert labels(PROMPT, ANSWER, summary) == {SESSION: "About"}
    assert labels(summary, PROMPT, ANSWER) == {SESSION: "About"}
    other = summary | {"leafUuid": "of another file"}
    assert labels(other, PROMPT, ANSWER) == {SESSION: "hello"}
    assert outline(main(other, PROMPT))[0] == "custom summary"


def test_a_record_that_is_not_a_message_is_kept_as_custom() -> None:
    values = (
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"a": 1}, "isSnapshotUpdate": False},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION, "content": "later"},
        user("u0", None, "Caveat: the messages below", isMeta=True),
        user("u1", "u0", "<command-name>/clear</command-name>\n<command-args></command-args>"),
        user("u2", "u1", "<local-command-stdout></local-command-stdout>"),
        record("progress", "p1", "u2", data={"type": "hook_progress"}),
        record("attachment", "t1", "p1", attachment={"type": "todo"}),
        record("system", "s1", "t1", subtype="api_error", level="error"),
        {"type": "last-prompt", "lastPrompt": "x", "sessionId": SESSION},
    )
    names = ["file-history-snapshot", "queue-operation", "user/meta", "user/command", "user/command", "progress"]
    events = main(*values)
    assert [event.name for event in events] == [*names, "attachment", "system/api_error", "last-prompt"]
    assert events[0].data == '{"messageId":"m","snapshot":{"a":1},"isSnapshotUpdate":false}'
    assert json.loads(events[2].data) == {
        "message": {"role": "user", "content": "Caveat: the messages below"},
        "isMeta": True,
    }
    assert json.loads(events[7].data) == {"subtype": "api_error", "level": "error"}
    assert steps_and_warnings(*values)[1] == []


def test_the_expansion_of_a_command_is_the_prompt() -> None:
    events = main(
        user("u1", None, "<command-name>/review</command-name><command-args>this file</command-args>"),
        user("u2", "u1", [text("Review the file.")], isMeta=True),
    )
    assert outline(events) == ["custom user/command", "turn/start", "user Review the file."]
    assert events[1].query == "/review this file"


def test_a_command_after_the_same_record_as_a_prompt_begins_a_branch() -> None:
    command = user("u3", "a1", "<command-name>/review</command-name>")
    found = logs(PROMPT, ANSWER, user("u2", "a1", "x"), command, user("u4", "u3", "Review.", isMeta=True))
    expected = ["custom user/command", "turn/start", "user Review."]
    assert outline(found[f"{SESSION}:u3"])[6:] == expected


def test_a_prompt_that_was_queued_comes_while_the_turn_runs() -> None:
    queued = {"type": "queued_command", "prompt": "also this", "commandMode": "prompt"}
    events = main(PROMPT, answer("a1", "u1", "m1", call("c")), record("attachment", "t1", "a1", attachment=queued))
    assert outline(events)[-1] == "user also this"
    assert events[-1].turn_id == "turn-1"


def test_results_may_be_parts_errors_or_come_with_text() -> None:
    image = {"type": "image", "source": {"data": "x"}}
    events = main(
        PROMPT,
        answer("a1", "u1", "m1", *(call(f"c{number}") for number in range(5))),
        result("r0", "a1", "c0", part={"content": [text("a"), text("b")]}),
        result("r1", "a1", "c1", part={"content": [text("a"), image]}, toolUseResult={"durationSeconds": 2}),
        result("r2", "a1", "c2", part={"content": "no such file", "is_error": True}, toolUseResult="Error: no"),
        result("r3", "a1", "c3", part={"content": None}, toolUseResult={"totalDurationMs": -1}),
        user("r4", "a1", [{"type": "tool_result", "tool_use_id": "c4"}, text("[Request interrupted by user]")]),
    )
    results = [event for event in events if isinstance(event, ToolResult)]
    assert [(each.result, each.error, each.duration_ms) for each in results] == [
        ('"a\\nb"', None, None),
        ('"a"', None, 2000),
        (None, "no such file", None),
        (None, None, None),
        (None, None, None),
    ]
    assert json.loads(results[1].blocks or "") == [text("a"), image]
    assert outline(events)[-3:] == [
        "step/end Request interrupted by user",
        "user [Request interrupted by user]",
        "turn/end Request interrupted by user",
    ]


def test_pictures_and_other_parts_are_blocks() -> None:
    image = {"type": "image", "source": {"data": "x"}}
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    values = (user("u1", None, [image, text("see")]), answer("a1", "u1", "m1", hidden, search, text("found")))
    events = main(*values)
    assert (events[1].content, json.loads(events[1].blocks)) == ("see", [image, text("see")])
    assert (events[3].content, json.loads(events[3].blocks)) == ("found", [search, text("found")])
    assert steps_and_warnings(*values)[1] == ["1 thinking lost data"]


def test_orphan_results_and_calls_and_reused_ids_are_kept() -> None:
    events = main(
        PROMPT,
        result("r0", "u1", "nobody"),
        answer("a1", "u1", "m1", call("c"), stop_reason="tool_use"),
        result("r1", "a1", "c"),
        answer("a2", "r1", "m2", call("c"), call(None), stop_reason="tool_use"),
        result("r2", "a2", "c"),
        result("r3", "a2", None),
        answer("a3", "r3", "m3", call("orphan")),
    )
    results = [(event.call_id, event.step_id) for event in events if isinstance(event, ToolResult)]
    assert results == [("nobody", None), ("c", "step-1"), ("c", "step-2"), ("call-1", "step-2")]
    assert [message.repaired for message in Surface().add_all(events).messages() if message.tool_call_id] == [
        False,
        False,
        False,
        True,
    ]


def test_a_record_given_twice_counts_once() -> None:
    values = (PROMPT, ANSWER, PROMPT, ANSWER)
    assert outline(main(*values)) == ["turn/start", "user hello", "step/start", "assistant hi"]
    assert steps_and_warnings(*values)[1] == ["2 records given twice, left out the second time"]


def test_facts_that_change_are_logged_under_their_names() -> None:
    [session] = sessions(PROMPT | {"gitBranch": "main"})
    assert json.loads(session.metadata or "") == {"cwd": "/w", "gitBranch": "main"}
    moved = main(PROMPT, ANSWER | {"cwd": "/other"})
    assert (moved[-1].name, moved[-1].data, moved[-1].timestamp) == ("cwd", '"/other"', START + 1000)


def test_times_may_run_backwards_or_be_unreadable() -> None:
    values = (
        user("u1", None, "a", 9),
        answer("a1", "u1", "m", text("b"), second=3),
        user("u2", "a1", "c", timestamp="soon"),
        user("u3", "u2", "d", timestamp=None),
    )
    assert [event.timestamp and event.timestamp - START for event in main(*values)] == [
        *(9000, 9000, 3000, 3000, 3000, 3000),
        *(None, None, 3000, None, None),
    ]
    assert steps_and_warnings(*values)[1] == ["1 record lost its time, which cannot be read"]


def test_zero_characters_survive_and_lone_surrogates_are_replaced() -> None:
    events = main(user("u1", None, "a\0b\ud800"), answer("a1\ud800", "u1", "m\ud800", call("c\ud800", "n\ud800")))
    assert (events[1].content, events[3].call_id, events[3].name) == ("a\0b\ufffd", "c\ufffd", "n\ufffd")
    assert labels(user("u1", None, "x\ud800")) == {SESSION: "x\ufffd"}


def test_an_id_that_is_not_valid_is_replaced_by_the_same_one_each_time() -> None:
    values = (PROMPT | {"sessionId": "not legal"}, user("s", None, "x", sessionId="not legal", isSidechain=True))
    first, again = sessions(*values), sessions(values[1])
    assert first[0].id == again[0].parent_id
    assert first[1].id == again[0].id
    assert steps_and_warnings(values[0])[1] == ["1 session got another id, as its own is not a valid session id"]


def test_records_wait_for_their_session() -> None:
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}
    assert steps_and_warnings(queued) == ([], ["1 record at the end of the log held back until its session begins"])
    steps, warnings = steps_and_warnings(*([queued] * 1001))
    assert steps == []
    assert "1 record after 1000 others without a session left out" in warnings
    assert outline(main(queued, {**queued, "sessionId": "s2"}, PROMPT))[0] == "custom queue-operation"


def test_a_record_without_a_session_belongs_to_the_one_before() -> None:
    assert outline(main(PROMPT, {**ANSWER, "sessionId": None, "parentUuid": 5}))[-1] == "assistant hi"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "log line 2: must be an object"),
        ({"no": "type"}, "log line 2: type: must be a string"),
        (record("user", "x", "u1"), "log line 2: message: must be an object"),
        (user("x", "u1", None), "log line 2: message.content: must be a list, is null"),
        (user("x", "u1", [5]), r"log line 2: message.content\[0\]: must be an object"),
        (user("x", "u1", [{"type": None}]), r"log line 2: message.content\[0\].type: must be a string"),
        (user("x", "u1", [{"type": "text"}]), r"log line 2: message.content\[0\].text: must be a string"),
        (answer("x", "u1", "m", call("c") | {"name": 5}), "log line 2: message.content: name of a call"),
        (answer("x", "u1", "m", call("c") | {"input": nested(600)}), "log line 2: input of a call: nested deeper"),
        (result("x", "u1", "c", part={"content": [{}]}), r"log line 2: message.content.content\[0\].type"),
        (result("x", "u1", "c", toolUseResult=nested(600)), "log line 2: toolUseResult: nested deeper"),
    ],
)
def test_a_broken_record_is_refused_with_its_location_and_leaves_no_trace(value: object, message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        steps_and_warnings(PROMPT, value)
    steps, warnings = steps_and_warnings(PROMPT, value, ANSWER, lenient=True)
    assert steps == steps_and_warnings(PROMPT, ANSWER)[0]
    assert len(warnings) == 1


def test_a_message_without_any_session_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="log line 1: sessionId: is required"):
        steps_and_warnings({**PROMPT, "sessionId": None})


def test_the_format_is_recognised_by_what_only_it_writes() -> None:
    assert fits([PROMPT])
    assert fits([{"type": "summary", "summary": "x", "leafUuid": "y"}])
    assert fits([{"type": "permission-mode", "sessionId": "s"}, PROMPT])
    for other in ({"type": "session", "id": "s"}, {"role": "user", "content": "x"}, {"type": "user"}, [PROMPT], None):
        assert not fits([other])
