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
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.transfer.formats import pi
from storage.transfer.formats.registry import peek_records, reader_for
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignLabel, ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.record import Record
from storage.views.runs import runs
from storage.views.surface import Surface
from tests.storage.transfer.formats import mutations
from tests.storage.transfer.formats.logs import document, records_of, steps_of, visible_logs
from tests.storage.views.validity import check

LOG = "pi-mono/before-compaction.jsonl"
ORPHANS = "pi-mono/before-compaction.orphan-calls.jsonl"
HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
E = TypeVar("E", bound=Event)


def values_of(name: str) -> list[Any]:
    return [record.value for record in records_of(*document(name)) if isinstance(record, Record)]


def real() -> tuple[list[Step], ImportWarnings]:
    return steps_of(records_of(*document(LOG)), "pi")


def read_values(*values: Any) -> tuple[list[Step], ImportWarnings]:
    return steps_of([Record(f"log line {index + 1}", value) for index, value in enumerate(values)], "pi")


def entry(kind: str, id: str | None = None, parent: str | None = None, /, **fields: Any) -> dict[str, Any]:
    tree = {} if id is None else {"id": id, "parentId": parent}
    return {"type": kind, **tree, "timestamp": "2026-01-01T00:00:05.000Z", **fields}


def message(role: str, content: Any, id: str | None = None, parent: str | None = None, /, **fields: Any) -> Any:
    return entry("message", id, parent, message={"role": role, "content": content, **fields})


def user(content: Any, id: str | None = None, parent: str | None = None, /) -> Any:
    return message("user", content, id, parent, timestamp=1767225601000)


def answer(content: str, id: str | None = None, parent: str | None = None, /, **fields: Any) -> Any:
    fields = {"stopReason": "stop", "timestamp": 1767225602000, **fields}
    return message("assistant", [{"type": "text", "text": content}], id, parent, **fields)


def calls(*ids: str, **fields: Any) -> Any:
    content = [{"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}} for id in ids]
    return message("assistant", content, **{"stopReason": "toolUse", "timestamp": 1767225602000, **fields})


def result(id: Any, content: str = "ok", **fields: Any) -> Any:
    parts = [{"type": "text", "text": content}]
    return message("toolResult", parts, **{"toolCallId": id, "toolName": "bash", "isError": False, **fields})


def events(*values: Any) -> list[Event]:
    [log] = visible_logs(read_values(HEADER, *values)[0]).values()
    return log


def surface(log: list[Event]) -> list[tuple[str, str | None]]:
    folded = Surface()
    folded.add_all(log)
    return [(message.role.lower(), message.content) for message in folded.messages()]


def of_type(kind: type[E], log: list[Event]) -> list[E]:
    return [event for event in log if isinstance(event, kind)]


# The real log


def test_the_real_log_has_the_counts_of_its_manifest() -> None:
    [log] = visible_logs(real()[0]).values()
    found = Counter(event.type for event in log)
    # 55 user messages, and the summaries of two compactions.
    assert found["user/message"] == 55 + 2
    assert (found["assistant/message"], found["tool/result"], found["system/message"]) == (484, 448, 0)
    assert found["tool/call"] == 454
    bash = [event for event in of_type(CustomEvent, log) if event.name == "bashExecution"]
    assert len(bash) == 3
    answered = {event.call_id for event in of_type(ToolResult, log)}
    assert sum(event.call_id not in answered for event in of_type(ToolCall, log)) == 6
    assert sum(event.reasoning is not None for event in of_type(AssistantMessage, log)) == 49
    assert sum(event.error is not None for event in of_type(ToolResult, log)) == 12
    # 18 aborted answers and one that failed.
    assert sum(event.interrupted for event in of_type(AssistantMessage, log)) == 19
    assert sum(event.status is RunStatus.FAILED for event in of_type(TurnEnd, log)) == 19
    names = Counter(event.name for event in of_type(CustomEvent, log))
    assert (names["compaction"], names["model_change"], names["thinking_level_change"]) == (2, 5, 5)


def test_the_real_log_is_recognised_by_its_header_and_what_it_repeats() -> None:
    steps, warnings = real()
    [session] = [step for step in steps if isinstance(step, ForeignSession)]
    assert session.id == "ffae836b-9420-4060-ac13-7745215f90ff"
    assert session.repeats == session.parent_id == "d97339c6-6c10-4827-846b-9ff1d9c3dc37"
    assert json.loads(session.metadata or "")["cwd"] == "/Users/badlogic/workspaces/pi-mono"
    [named] = [step for step in steps if isinstance(step, ForeignLabel)]
    assert named.label.startswith("alright, read @packages/coding-agent/src/main.ts")
    assert warnings.kinds() == {
        "message of neither the user nor the model kept as custom": 3,
        "thought lost fields": 47,
        "tool call lost fields": 3,
    }


def test_compactions_of_the_real_log_replace_what_precedes_the_first_kept_entry() -> None:
    values = values_of(LOG)
    [log] = visible_logs(real()[0]).values()
    first, second = [event for event in of_type(UserMessage, log) if event.replaces]
    for replacing, kept in ((first, 293), (second, 551)):
        before = Surface()
        before.add_all(log[: replacing.seq])
        after = Surface()
        after.add_all(log[: replacing.seq + 1])
        kept_messages = sum(value.get("message", {}).get("role") == "assistant" for value in values[kept:])
        contents = [message.content for message in after.messages()]
        assert contents[0] == replacing.content
        old = [message.content for message in before.messages()]
        assert contents[1:] == old[len(old) - len(contents) + 1 :]
        assert kept_messages > 0
        assert len(contents) < len(old)
    assert [value["summary"] for value in values if value["type"] == "compaction"] == [first.content, second.content]


def test_a_prefix_of_the_real_log_gives_a_prefix_of_its_steps() -> None:
    found = records_of(*document(LOG))
    steps, _ = steps_of(found, "pi")
    before = 0
    for cut in (*range(1, 40), *range(40, len(found), 91)):
        of_prefix, _ = steps_of(found[:cut], "pi")
        assert of_prefix == steps[: len(of_prefix)]
        assert len(of_prefix) >= before
        before = len(of_prefix)


def test_the_end_of_no_prefix_of_the_real_log_yields_steps() -> None:
    head, found = peek_records(iter(records_of(*document(LOG))))
    source = reader_for("log", head, "pi")
    for record in found:
        assert source.add(record)
        assert source.end() == ()


@pytest.mark.parametrize("name", [LOG, ORPHANS])
def test_the_surface_of_a_real_log_is_valid_at_every_cut(name: str) -> None:
    [log] = visible_logs(steps_of(records_of(*document(name)), "pi")[0]).values()
    folded = Surface()
    for seq, event in enumerate(log):
        folded.check_replace(event)
        folded.add(event)
        if seq % 29 == 0 or (isinstance(event, UserMessage) and event.replaces) or name == ORPHANS:
            check(folded)
    check(folded)


def test_runs_of_the_real_log_show_its_durations_and_tokens() -> None:
    values = values_of(LOG)
    [log] = visible_logs(real()[0]).values()
    found = runs(log, "s")
    assert len(found) == 55
    assert found[0].query is not None and found[0].query.startswith("alright, read @packages")
    # The first call began at 22:41:05.294, its last result arrived at 22:41:09.399.
    assert found[0].steps[0].duration_ms == 4105
    assert found[0].steps[0].token_count == 2916
    total = sum(value["message"]["usage"]["totalTokens"] for value in values if value.get("message", {}).get("usage"))
    assert sum(run.token_count or 0 for run in found) == total


def test_a_log_takes_the_events_of_real_logs_and_of_trees() -> None:
    mutations.check(real()[0])
    mutations.check(steps_of(records_of(*document(ORPHANS)), "pi")[0])
    mutations.check(read_values(*tree())[0])


# Contents of a log


def test_only_logs_of_pi_are_recognised() -> None:
    assert pi.fits([HEADER])
    assert pi.fits(["broken", user("hi")])
    assert pi.fits(values_of(LOG)[:20])
    assert not pi.fits([])
    assert not pi.fits([{"type": "session", "id": "s", "createdAt": 0, "cwd": "/"}])
    assert not pi.fits([HEADER | {"format": "sapwood"}])
    assert not pi.fits([{"type": "message", "role": "user", "content": "hi"}])
    assert not pi.fits([{"type": "user", "uuid": "u", "timestamp": "", "message": {"role": "user"}}])
    assert not pi.fits([None, 3, "x", [], {}])


def test_an_aborted_answer_is_interrupted_and_its_calls_have_no_result() -> None:
    log = events(user("go"), calls("a", stopReason="aborted", errorMessage="Request was aborted."), user("again"))
    assert [event.type for event in log] == [
        "turn/start",
        "user/message",
        "step/start",
        "assistant/message",
        "tool/call",
        "step/end",
        "turn/end",
        "turn/start",
        "user/message",
    ]
    [answered] = of_type(AssistantMessage, log)
    assert answered.interrupted
    [ended] = of_type(TurnEnd, log)
    assert (ended.status, ended.error) == (RunStatus.FAILED, "Request was aborted.")
    assert [event.error for event in of_type(StepEnd, log)] == ["Request was aborted."]


def test_an_answer_that_failed_says_why() -> None:
    log = events(user("go"), answer("", stopReason="error", errorMessage="400 bad"))
    [ended] = of_type(TurnEnd, log)
    assert (ended.status, ended.error) == (RunStatus.FAILED, "400 bad")


def test_a_step_lasts_from_the_model_call_to_the_last_result() -> None:
    log = events(
        user("go"), calls("a", "b"), result("b", timestamp=1767225606000), result("a", timestamp=1767225609000)
    )
    [started], [ended] = of_type(StepStart, log), of_type(StepEnd, log)
    assert (started.timestamp, ended.timestamp) == (1767225602000, 1767225609000)
    [answered] = of_type(AssistantMessage, log)
    assert answered.timestamp == 1767225605000
    assert all(event.step_id == started.step_id for event in of_type(ToolResult, log))
    assert not of_type(TurnEnd, log)


def test_tokens_include_those_read_from_a_cache() -> None:
    usage = {"input": 1, "output": 2, "cacheRead": 30, "cacheWrite": 400, "totalTokens": 433}
    [ended] = of_type(StepEnd, events(user("go"), answer("ok", usage=usage)))
    assert ended.token_count == 433
    assert json.loads(ended.model_output or "") == {"usage": usage, "stopReason": "stop"}
    [unknown] = of_type(StepEnd, events(user("go"), answer("ok", usage={"input": -1, "output": "x"})))
    assert unknown.token_count is None


def test_a_shell_command_of_the_user_is_neither_text_nor_call() -> None:
    shell = {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0, "timestamp": 1}
    [event] = events(entry("message", message=shell))
    assert isinstance(event, CustomEvent)
    assert (event.name, json.loads(event.data)) == ("bashExecution", shell)


def test_pictures_stay_in_blocks_and_thoughts_in_reasoning() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    log = events(user(parts), message("assistant", [thinking, {"type": "text", "text": "ok"}], stopReason="stop"))
    [asked], [answered] = of_type(UserMessage, log), of_type(AssistantMessage, log)
    assert (asked.content, json.loads(asked.blocks or "")) == ("see", parts)
    assert (answered.content, answered.reasoning, answered.blocks) == ("ok", "hm", None)


def test_details_of_a_tool_precede_its_result() -> None:
    details = {"diff": "+1", "truncation": {"truncated": True}}
    log = events(user("go"), calls("a"), result("a", details=details))
    kept, answered = of_type(CustomEvent, log)[0], of_type(ToolResult, log)[0]
    assert kept.seq == answered.seq - 1
    assert json.loads(kept.data) == {"toolCallId": "a", "details": details}
    assert answered.truncated


def test_a_failed_tool_gives_an_error() -> None:
    [failed] = of_type(ToolResult, events(user("go"), calls("a"), result("a", "no such file", isError=True)))
    assert (failed.result, failed.error) == (None, "no such file")


def test_call_ids_used_again_pair_in_order() -> None:
    log = events(user("go"), calls("a"), result("a", "1"), calls("a"), result("a", "2"), answer("done"))
    steps = [(event.step_id, event.result) for event in of_type(ToolResult, log)]
    assert steps == [("step-1", '"1"'), ("step-2", '"2"')]


def test_the_index_of_a_compaction_counts_the_header_and_records_that_were_left_out() -> None:
    values = [HEADER, user("one"), answer("1"), {"type": 3}, user("two"), answer("2")]
    compaction = entry("compaction", summary="so far", firstKeptEntryIndex=4, tokensBefore=10)
    steps, refused = mutations.read_leniently("pi", [*values, compaction, user("three")])
    assert refused == {3}
    [log] = visible_logs(steps).values()
    assert surface(log) == [("user", "so far"), ("user", "two"), ("assistant", "2"), ("user", "three")]
    [facts] = of_type(CustomEvent, log)
    assert json.loads(facts.data) == {"firstKeptEntryIndex": 4, "tokensBefore": 10}


def test_a_compaction_that_keeps_nothing_replaces_all() -> None:
    log = events(
        user("one", "a"), answer("1", "b", "a"), entry("compaction", "c", "b", summary="all", firstKeptEntryId="?")
    )
    assert surface(log) == [("user", "all")]


def test_a_compaction_that_keeps_all_replaces_nothing() -> None:
    log = events(user("one", "a"), entry("compaction", "b", "a", summary="none", firstKeptEntryId="a"))
    assert surface(log) == [("user", "one"), ("user", "none")]


def test_a_compaction_that_keeps_what_an_earlier_one_kept_replaces_its_summary() -> None:
    log = events(
        user("one", "a"),
        answer("1", "b", "a"),
        user("two", "c", "b"),
        answer("2", "d", "c"),
        entry("compaction", "e", "d", summary="first", firstKeptEntryId="c"),
        user("three", "f", "e"),
        entry("compaction", "g", "f", summary="second", firstKeptEntryId="d"),
    )
    assert surface(log) == [("user", "second"), ("assistant", "2"), ("user", "three")]
    [hidden] = of_type(SurfaceHide, log)
    assert hidden.reason == "compaction"


# The tree


def tree() -> list[Any]:
    return [
        HEADER,
        user("one", "a"),
        answer("1", "b", "a"),
        user("two", "c", "b"),
        answer("2", "d", "c"),
        user("other two", "e", "b"),
        answer("other 2", "f", "e"),
        user("three", "g", "d"),
        answer("other 2 again", "h", "e"),
    ]


def test_a_branch_is_a_fork_right_after_the_entry_that_it_follows() -> None:
    steps, warnings = read_values(*tree())
    sessions = [step for step in steps if isinstance(step, ForeignSession)]
    # The first answer is complete with 6 events; the turn of the question "other two" is open for 2 more.
    assert [(each.key, each.id, each.source, each.at_seq, each.counted) for each in sessions] == [
        ("s", "s", None, 0, True),
        ("s:e", "s:e", "s", 6, False),
        ("s:h", "s:h", "s:e", 8, False),
    ]
    logs = visible_logs(steps)
    assert surface(logs["s"]) == [
        ("user", "one"),
        ("assistant", "1"),
        ("user", "two"),
        ("assistant", "2"),
        ("user", "three"),
    ]
    assert surface(logs["s:e"])[2:] == [("user", "other two"), ("assistant", "other 2")]
    assert surface(logs["s:h"])[2:] == [("user", "other two"), ("assistant", "other 2 again")]
    assert [event.turn_id for event in of_type(TurnStart, logs["s:h"])] == ["turn-1", "turn-2"]
    assert [run.status for run in runs(logs["s:h"], "s:h")] == [RunStatus.SUCCESS, RunStatus.SUCCESS]
    assert ForeignLabel("s:e", "other two") in steps
    assert warnings.kinds() == {}


def test_a_tree_gives_a_prefix_of_its_steps_at_every_cut() -> None:
    steps, _ = read_values(*tree())
    for cut in range(1, len(tree())):
        of_prefix, _ = read_values(*tree()[:cut])
        assert of_prefix == steps[: len(of_prefix)]


def test_a_branch_from_inside_a_step_continues_it() -> None:
    started = calls("x") | {"id": "b", "parentId": "a"}
    one, two = result("x", "1") | {"id": "c", "parentId": "b"}, result("x", "2") | {"id": "d", "parentId": "b"}
    logs = visible_logs(read_values(HEADER, user("go", "a"), started, one, two)[0])
    ends = [[(event.step_id, event.result) for event in of_type(ToolResult, log)] for log in logs.values()]
    assert ends == [[("step-1", '"1"')], [("step-1", '"2"')]]
    assert [len(of_type(StepEnd, log)) for log in logs.values()] == [1, 1]


def test_branches_from_inside_steps_have_their_measures() -> None:
    def step(id: str, parent: str, call: str, usage: dict[str, int]) -> list[Any]:
        return [
            calls(call, usage=usage) | {"id": id, "parentId": parent},
            result(call) | {"id": f"{id}-result", "parentId": id},
        ]

    first, second = step("b", "a", "x", {"input": 3, "output": 4}), step("c", "b-result", "y\ud800", {"input": 5})
    branches = [user("first", "d", "b"), user("second", "e", "c")]
    logs = visible_logs(read_values(HEADER, user("go", "a"), *first, *second, *branches)[0])
    measured = {
        key: [(each.token_count, each.model_output) for each in of_type(StepEnd, log)] for key, log in logs.items()
    }
    assert len(measured["s"]) == 2
    assert measured["s:d"] == measured["s"][:1]
    assert measured["s:e"] == measured["s"]


def test_a_turn_that_a_branch_leaves_open_ends_with_the_next_question() -> None:
    started = calls("x") | {"id": "b", "parentId": "a"}
    values = [HEADER, user("go", "a"), started, result("x") | {"id": "c", "parentId": "b"}, user("no", "d", "b")]
    log = visible_logs(read_values(*values)[0])["s:d"]
    ended = [(each.type, each.timestamp) for each in log if isinstance(each, StepEnd | TurnEnd)]
    assert ended == [("step/end", 1767225601000), ("turn/end", 1767225601000)]


def test_a_second_root_is_a_fork_that_shares_nothing() -> None:
    steps, _ = read_values(HEADER, user("one", "a"), user("again", "b"))
    [_, branch] = [step for step in steps if isinstance(step, ForeignSession)]
    assert (branch.source, branch.at_seq) == ("s", 0)
    assert surface(visible_logs(steps)["s:b"]) == [("user", "again")]


def test_the_summary_of_a_branch_is_at_the_start_of_the_next_one() -> None:
    summary = entry("branch_summary", "e", "b", summary="tried two", fromId="d", details={"files": 1})
    steps, _ = read_values(*tree()[:5], summary, user("next", "f", "e"))
    log = visible_logs(steps)["s:e"]
    assert surface(log)[2:] == [("user", "tried two"), ("user", "next")]
    assert json.loads(of_type(CustomEvent, log)[0].data) == {"fromId": "d", "details": {"files": 1}}


def test_a_compaction_on_a_branch_keeps_what_the_branch_shows() -> None:
    values = [*tree()[:7], entry("compaction", "x", "f", summary="sum", firstKeptEntryId="e")]
    logs = visible_logs(read_values(*values)[0])
    assert surface(logs["s:e"]) == [("user", "sum"), ("user", "other two"), ("assistant", "other 2")]
    elsewhere = [*tree()[:7], entry("compaction", "x", "f", summary="sum", firstKeptEntryId="d")]
    assert surface(visible_logs(read_values(*elsewhere)[0])["s:e"]) == [("user", "sum")]


def test_entries_with_an_unknown_parent_or_a_used_id_follow_the_previous_one() -> None:
    steps, warnings = read_values(HEADER, user("one", "a"), answer("1", "b", "gone"), answer("2", "b", "a"))
    assert len([step for step in steps if isinstance(step, ForeignSession)]) == 1
    assert warnings.kinds() == {
        "record whose parent is not in the log put after the previous one": 1,
        "record with the id of an earlier one put after the previous one": 1,
    }


def test_a_name_is_the_label_of_the_session_and_a_label_that_of_its_branch() -> None:
    named = entry("session_info", "x", "f", name="My session")
    marked = entry("label", "y", "x", targetId="e", label="detour")
    steps, _ = read_values(*tree()[:7], named, marked, entry("label", "z", "y", targetId="a", label="start"))
    assert [step for step in steps if isinstance(step, ForeignLabel)] == [
        ForeignLabel("s", "one"),
        ForeignLabel("s:e", "other two"),
        ForeignLabel("s", "My session"),
        ForeignLabel("s:e", "detour"),
    ]
    labels = [json.loads(event.data) for event in of_type(CustomEvent, visible_logs(steps)["s:e"])]
    assert labels == [{"targetId": "e", "label": "detour"}, {"targetId": "a", "label": "start"}]


def test_a_name_given_first_is_kept() -> None:
    steps, _ = read_values(HEADER, entry("session_info", "x", None, name="First"), user("one", "a", "x"))
    assert [step for step in steps if isinstance(step, ForeignLabel)] == [ForeignLabel("s", "First")]


def test_entries_of_extensions_keep_their_name_and_their_messages_reach_the_model() -> None:
    log = events(
        entry("custom", "a", None, customType="todo", data={"n": 1}),
        entry("custom_message", "b", "a", customType="note", content="remember", display=True, details={"x": 1}),
        message("hookMessage", "hooked", "c", "b", customType="hook"),
        entry("model_change", "d", "c", provider="p", modelId="m"),
        entry("brand_new", "e", "d", payload=[1]),
    )
    contents = [(event.name, json.loads(event.data)) for event in of_type(CustomEvent, log)]
    assert contents == [
        ("todo", {"n": 1}),
        ("note", {"display": True, "details": {"x": 1}}),
        ("hook", {}),
        ("model_change", {"provider": "p", "modelId": "m"}),
        ("brand_new", {"payload": [1]}),
    ]
    assert surface(log) == [("user", "remember"), ("user", "hooked")]
    assert not of_type(TurnStart, log)


# Broken logs


def test_a_log_without_its_header_gets_an_id_made_of_its_first_record() -> None:
    steps, warnings = read_values(user("one", "a"), answer("1", "b", "a"))
    longer, _ = read_values(user("one", "a"), answer("1", "b", "a"), user("two", "c", "b"))
    [session] = [step for step in steps if isinstance(step, ForeignSession)]
    assert session.id is not None and session.id.startswith("pi:")
    assert longer[: len(steps)] == steps
    assert warnings.kinds() == {"session got an id made from its first record, as it has no valid one": 1}


def test_logs_one_after_the_other_are_sessions_of_their_own() -> None:
    steps, _ = read_values(HEADER, user("one", "a"), HEADER | {"id": "t"}, user("two", "a"))
    assert {key: surface(log) for key, log in visible_logs(steps).items()} == {
        "s": [("user", "one")],
        "t": [("user", "two")],
    }
    with pytest.raises(errors.BadInput, match="log line 2: a second header of the session s"):
        read_values(HEADER, HEADER)


def test_times_that_run_backwards_stay_and_unreadable_ones_are_counted() -> None:
    odd = user("two") | {"timestamp": "yesterday"}
    early = user("three") | {"timestamp": "1999-01-01T00:00:00Z"}
    early["message"] = early["message"] | {"timestamp": "x"}
    steps, warnings = read_values(HEADER, user("one"), odd, early)
    [log] = visible_logs(steps).values()
    assert [event.timestamp for event in of_type(UserMessage, log)] == [1767225601000, 1767225601000, 915148800000]
    assert warnings.kinds() == {"time that cannot be read left out": 2}


def test_surrogates_and_nul_are_kept() -> None:
    [asked] = of_type(UserMessage, events(user("a\ud800b\x00")))
    assert asked.content == "a\ufffdb\x00"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (3, "must be an object"),
        ({"type": None}, "type: must be a string"),
        (entry("message"), "message: must be an object"),
        (entry("message", message={"content": "x"}), "message.role: must be a string"),
        (user(7), "message.content: must be a string, a list of parts or null"),
        (entry("compaction", summary=None), "summary: must be a string"),
    ],
)
def test_a_record_that_breaks_the_format_is_refused_with_its_location(value: Any, reason: str) -> None:
    with pytest.raises(errors.BadInput, match=f"log line 2.*{reason}"):
        read_values(HEADER, value)


@given(mutations.mutated(values_of(LOG)[:45] + values_of(ORPHANS)[1:]))
def test_any_record_is_read_or_refused(drawn: tuple[list[Any], int]) -> None:
    values, changed = drawn
    steps, refused = mutations.read_leniently("pi", values)
    assert refused <= {changed}
    mutations.check(steps)


@given(mutations.mutated(tree()))
def test_a_refused_record_leaves_no_trace(drawn: tuple[list[Any], int]) -> None:
    values, _ = drawn
    steps, refused = mutations.read_leniently("pi", values)
    without = [value for index, value in enumerate(values) if index not in refused]
    assert steps == mutations.read_leniently("pi", without)[0]


def test_events_of_a_branch_belong_to_it_alone() -> None:
    steps, _ = read_values(*tree())
    contents = Counter(step.key for step in steps if isinstance(step, ForeignEvent))
    assert contents == {"s": 14, "s:e": 6, "s:h": 4}


def test_content_nested_too_deep_is_left_out() -> None:
    for values, changed in mutations.with_nesting(tree()):
        steps, refused = mutations.read_leniently("pi", values)
        assert refused <= {changed}
        mutations.check(steps)
