"""The event that each kind of record becomes."""

import json
from typing import Any

import pytest

from storage import errors
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    ChunkKind,
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
from storage.transfer.formats.shared.foreign import ForeignEvent
from tests.storage.transfer.formats.deepseek_logs import HEADER, events, read_one, record, text_of
from tests.storage.transfer.formats.logs import records_of, steps_of


def test_the_last_title_is_the_label() -> None:
    session, _ = read_one(record("session/title", title="a"), record("session/title", title="b"))
    assert session.label == "b"


def test_zero_characters_survive() -> None:
    chunk = record("user/message", role="user", content=[{"type": "text", "text": "a\0b"}])
    assert events(chunk) == [UserMessage(content="a\0b")]


def test_a_turn_with_a_call_and_tokens() -> None:
    call = {"turn": 1, "step": 1}
    arguments = '{"a": 1}'
    result = {
        "source": {"kind": "tool", "callId": "c"},
        "role": "user",
        "content": [{"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": "ok"}]}],
    }
    content = [
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        {"type": "tool-call", "id": "c", "name": "f", "arguments": arguments},
    ]
    names: dict[str, Any] = {"turn_id": "1", "step_id": "1"}
    assert events(
        record("turn/start", turn=1),
        record("step/start", **call),
        record("tool-call-chunks", **call, args=["{", "}"], dt=[1]),
        record("assistant/chunk", **call, chunk={"type": "reasoning-delta", "text": "hm"}),
        record("assistant/chunk", **call, chunk={"type": "finish"}),
        record(
            "assistant/message",
            **call,
            message={"role": "assistant", "content": content},
            usage={"inputTokens": 3, "outputTokens": 4},
        )
        | {"surfaceOp": "append", "sourceEventSeqs": [2, 3]},
        record("tool/call", **call, callId="c", name="f", arguments=arguments),
        record("step/end", **call),
        record("turn/end", turn=1, reason={"kind": "completed"}),
        record("tool/result", **call, message=result),
        record("todo/write", turn=1, todos=[]),
    ) == [
        TurnStart(turn_id="1"),
        StepStart(**names),
        AssistantChunk(delta="{", kind=ChunkKind.TOOL_ARGS, **names),
        AssistantChunk(delta="}", kind=ChunkKind.TOOL_ARGS, **names),
        AssistantChunk(delta="hm", kind=ChunkKind.REASONING, **names),
        CustomEvent(name="assistant/chunk", data='{"turn":1,"step":1,"chunk":{"type":"finish"}}', **names),
        AssistantMessage(content="ab", reasoning="hm", source_event_seqs=[2, 3], **names),
        ToolCall(call_id="c", name="f", args=json.dumps(arguments), **names),
        StepEnd(token_count=7, **names),
        TurnEnd(turn_id="1"),
        ToolResult(call_id="c", result='"ok"', **names),
        CustomEvent(name="todo/write", data='{"turn":1,"todos":[]}'),
    ]


def test_blocks_other_than_text_are_kept() -> None:
    image = {"type": "image", "source": {"n": 1}}
    message = {"role": "user", "content": [{"type": "tool-result", "toolCallId": "c", "content": [image]}]}
    blocks = '[{"type":"image","source":{"n":1}}]'
    assert events(record("user/message", content=[image]), record("tool/result", message=message)) == [
        UserMessage(content="", blocks=blocks),
        ToolResult(call_id="c", result='""', blocks=blocks),
    ]


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ({"kind": "max-tokens"}, "max-tokens"),
        ({"kind": "error", "message": "no key"}, "error: no key"),
        ({"kind": "error", "failure": {"message": "too long", "code": "X"}}, "error: too long"),
        (None, "ended without a reason"),
    ],
)
def test_a_turn_that_did_not_complete_failed(reason: object, error: str) -> None:
    end = events(record("turn/start", turn=1), record("turn/end", turn=1, reason=reason))[1]
    assert end == TurnEnd(turn_id="1", status=RunStatus.FAILED, error=error)


def test_bounds_out_of_order_are_kept_as_custom() -> None:
    session, warnings = read_one(
        record("turn/end", turn=1),
        record("turn/start", turn=1),
        record("turn/start", turn=1),
        record("step/end", turn=1, step=1),
        record("assistant/chunk", turn=2, step=1, chunk={"type": "text-delta", "text": "a"}),
    )
    assert [event.type for event in session.events] == ["custom", "turn/start", "custom", "custom", "assistant/chunk"]
    assert session.events[4] == AssistantChunk(delta="a")
    assert "3 records of a turn or step out of order kept as custom" in warnings
    assert "1 record named a turn or step that was not open, and is kept without it" in warnings


def test_times_are_those_of_the_log() -> None:
    session, _ = read_one(record("turn/start", turn=1) | {"time": 5}, record("x") | {"time": 6}, record("x"))
    assert [event.timestamp for event in session.events] == [5, 6, None]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"data": {}}, "log line 2: type: must be a string, is null"),
        ({"type": "turn/start"}, "log line 2: data: must be an object, is null"),
        (record("user/message", content=5), "log line 2: data.content: must be a list"),
        (record("tool/call", name="f", arguments="{}"), "log line 2: call_id: .*at least 1"),
        (record("text-chunks", texts=[5]), "log line 2: delta: "),
        (record("user/message", content=[]) | {"surfaceOp": "prepend"}, "log line 2: surfaceOp 'prepend'"),
        (record("user/message", content=[]) | {"surfaceOp": {"op": "swap"}}, "log line 2: op: "),
        (record("user/message", content=[]) | {"surfaceOp": {"op": "replace"}}, "log line 2: surfaceOp replaces, but"),
    ],
)
def test_a_broken_record_is_refused_with_its_line(line: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        read_one(line)


def test_a_broken_record_leaves_a_placeholder_so_that_later_seqs_stay_right() -> None:
    log = text_of(HEADER, record("a")) + "\n{torn\n" + json.dumps(record("user/message", content=5))
    steps, warnings = steps_of(records_of("log", f"{log}\n{json.dumps(record('b'))}"), lenient=True)
    assert [step.event for step in steps if isinstance(step, ForeignEvent)] == [
        CustomEvent(name="a", data="{}"),
        CustomEvent(name="record/left-out", data="{}"),
        CustomEvent(name="record/left-out", data="{}"),
        CustomEvent(name="b", data="{}"),
    ]
    assert warnings.left_out == 2


def test_an_invalid_time_affects_only_the_time() -> None:
    session, warnings = read_one(record("x") | {"time": "soon"}, record("turn/start", turn=1) | {"time": 10**30})
    assert [event.timestamp for event in session.events] == [None, None]
    assert "2 records lost its time, which cannot be read" in warnings


def test_odd_numbers_of_tokens_are_not_counted() -> None:
    named = {"turn": 1, "step": 1}
    usage = {"inputTokens": 10**400, "outputTokens": -5}
    message = {"role": "assistant", "content": []}
    steps = (record("turn/start", turn=1), record("step/start", **named), record("step/end", **named))
    spoken = record("assistant/message", **named, message=message, usage=usage)
    assert events(steps[0], steps[1], spoken, steps[2])[-1] == StepEnd(turn_id="1", step_id="1")


def test_invalid_turn_ids_open_no_turn() -> None:
    assert [event.type for event in events(record("turn/start", turn=""), record("turn/start", turn="x" * 257))] == [
        "custom",
        "custom",
    ]
