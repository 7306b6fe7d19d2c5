"""Real logs of Claude Code: the counts of MANIFEST, every cut, and records broken in any way."""

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import ADAPTER, AssistantMessage, Event, StepEnd, SurfaceOpKind, ToolResult, UserMessage, dump
from storage.transfer.formats.claude_code.format import fits, reader
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.record import BrokenRecord, Record
from storage.views.surface import Surface
from tests.storage.transfer.formats.logs import DATA, records_of, steps_of, visible_logs
from tests.storage.views.validity import check

COMPACTED = "claude-code/session-624a4a58.jsonl"
TURN = "claude-code/incremental-subagents/turn-2.jsonl"
AGENT = "claude-code/incremental-subagents/turn-2/subagents/agent-a485154.jsonl"
IMAGE = "claude-code/user-image.jsonl"
NAMES = (COMPACTED, TURN, AGENT, IMAGE)
FOUND: dict[str, list[Record | BrokenRecord]] = {name: records_of(name, (DATA / name).read_bytes()) for name in NAMES}
VALUES = [record.value for name in (TURN, AGENT, IMAGE) for record in FOUND[name] if isinstance(record, Record)]


def log_of(name: str) -> list[Event]:
    [log] = visible_logs(steps_of(FOUND[name])[0]).values()
    return log


@pytest.mark.parametrize("name", NAMES)
def test_a_real_log_is_recognised_by_its_records(name: str) -> None:
    assert fits([record.value for record in FOUND[name][:20] if isinstance(record, Record)])


@pytest.mark.parametrize(
    ("name", "user", "assistant", "calls"),
    [
        # Of the 21 user records one is meta, and two are a typed command and its output: not messages.
        # The 132 assistant records are parts of 55 messages.
        (COMPACTED, 18, 55, 48),
        # 30 assistant records are parts of 11 messages.
        (TURN, 1, 11, 14),
        # 23 assistant records are parts of 6 messages; three hold only calls, which need no message of their own.
        (AGENT, 1, 3, 20),
        (IMAGE, 1, 0, 0),
    ],
)
def test_messages_calls_and_results_are_those_of_the_log(name: str, user: int, assistant: int, calls: int) -> None:
    found = Counter(event.type for event in log_of(name))
    assert (found["user/message"], found["assistant/message"], found["system/message"]) == (user, assistant, 0)
    assert (found["tool/call"], found["tool/result"]) == (calls, calls)
    records = [record.value for record in FOUND[name] if isinstance(record, Record)]
    ids = {value["message"]["id"] for value in records if value["type"] == "assistant"}
    assert found["step/start"] == len(ids)
    surface = Surface().add_all(log_of(name))
    assert not any(message.repaired for message in surface.messages())


def test_thoughts_errors_and_pictures_are_all_there() -> None:
    messages = {name: [event for event in log_of(name) if isinstance(event, AssistantMessage)] for name in NAMES}
    thoughts = [sum(bool(message.reasoning) for message in found) for found in messages.values()]
    assert thoughts == [55, 11, 0, 0]
    failed = [event.error for name in NAMES for event in log_of(name) if isinstance(event, ToolResult) and event.error]
    assert len(failed) == 1
    assert "File does not exist" in failed[0]
    [picture] = [e for e in log_of(IMAGE) if isinstance(e, UserMessage)]
    assert [part["type"] for part in json.loads(picture.blocks or "")] == ["image", "text"]


def test_the_durations_and_tokens_of_the_log_are_on_its_events() -> None:
    durations = [event.duration_ms for event in log_of(TURN) if isinstance(event, ToolResult) and event.duration_ms]
    assert durations == [349797, 299, 174]
    assert all(event.token_count for name in NAMES for event in log_of(name) if isinstance(event, StepEnd))


def test_losses_are_counted() -> None:
    assert {name: steps_of(FOUND[name])[1].messages() for name in NAMES} == {
        COMPACTED: ["14 user records lost thinkingMetadata", "55 thinkings lost signature"],
        TURN: ["1 user record lost thinkingMetadata", "11 thinkings lost signature"],
        AGENT: [],
        IMAGE: [],
    }


def test_each_log_is_one_session_and_the_sub_agents_is_a_child_of_the_one_that_ran_it() -> None:
    found = {name: [s for s in steps_of(FOUND[name])[0] if isinstance(s, ForeignSession)] for name in NAMES}
    assert [len(sessions) for sessions in found.values()] == [1, 1, 1, 1]
    assert found[AGENT][0].parent_id == found[TURN][0].id
    assert found[AGENT][0].id == f"{found[TURN][0].id}:a485154"


def test_the_compaction_leaves_its_summary_and_what_came_after() -> None:
    log = log_of(COMPACTED)
    [summary] = [e for e in log if isinstance(e, UserMessage) and e.surface_op.op is SurfaceOpKind.REPLACE]
    first, *rest = Surface().add_all(log).messages()
    assert first.content == summary.content
    assert first.content is not None
    assert first.content.startswith("This session is being continued from a previous conversation")
    assert all(seq > summary.seq for message in rest for seq in message.source_event_seqs)


@pytest.mark.parametrize("name", NAMES)
def test_the_surface_is_valid_at_every_cut(name: str) -> None:
    surface = Surface()
    for event in log_of(name):
        surface.check_replace(event)
        check(surface.add(event))


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_log_gives_a_prefix_of_the_steps(name: str) -> None:
    whole = steps_of(FOUND[name])[0]
    for cut in range(1, len(FOUND[name]) + 1, 5 if name == COMPACTED else 1):
        part = steps_of(FOUND[name][:cut])[0]
        assert part == whole[: len(part)]


@pytest.mark.parametrize("name", NAMES)
def test_every_event_names_turns_and_steps_that_began(name: str) -> None:
    turns: set[str | None] = {None}
    steps: set[tuple[str | None, str | None]] = set()
    for event in log_of(name):
        if event.type == "turn/start":
            turns.add(event.turn_id)
        if event.type == "step/start":
            steps.add((event.turn_id, event.step_id))
        assert event.turn_id in turns
        assert event.step_id is None or (event.turn_id, event.step_id) in steps


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in paths(item, (*path, key)))]


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 10**30, 1e300, 0.5, "", "x", "\ud800\0", "a b" * 200, [], {}, [[]], [{}], {"type": None}]
).map(copy.deepcopy)


@st.composite
def broken_logs(draw: st.DrawFn) -> list[Any]:
    """Consecutive records of real logs, some with fields changed or removed, some repeated or moved."""
    start = draw(st.integers(0, len(VALUES) - 2))
    values = [copy.deepcopy(value) for value in VALUES[start : start + draw(st.integers(2, 12))]]
    for _ in range(draw(st.integers(1, 6))):
        value = draw(st.sampled_from(values))
        path = draw(st.sampled_from(paths(value)[1:] or [()]))
        if not path:
            continue
        inner: Any = value
        for key in path[:-1]:
            inner = inner[key]
        if draw(st.booleans()) and isinstance(inner, dict):
            del inner[path[-1]]
        else:
            inner[path[-1]] = draw(ODD)
    return draw(st.permutations(values)) if draw(st.booleans()) else values


@given(broken_logs())
def test_any_record_is_read_or_refused(values: list[Any]) -> None:
    source = reader("log", ImportWarnings())
    steps: list[Step] = []
    for number, value in enumerate(values):
        try:
            steps += source.add(Record(f"log line {number}", value))
        except errors.BadInput as error:
            assert error.message.startswith(f"log line {number}: ")
    steps += source.end()
    keys: set[str] = set()
    for step in steps:
        if isinstance(step, ForeignSession):
            assert step.key not in keys
            assert {step.parent, step.source} - {None} <= keys
            keys.add(step.key)
        else:
            assert step.key in keys
        if isinstance(step, ForeignEvent):
            ADAPTER.validate_python(dump(step.event))
    for log in visible_logs(steps).values():
        check(Surface().add_all(log))
