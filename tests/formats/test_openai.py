"""Chat messages become events, a turn per user message."""

import json
from typing import Any

import pytest

from storage import errors
from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.formats import Reading, read


def read_chat(*messages: dict[str, Any]) -> Reading:
    [reading] = read([("chat", json.dumps({"messages": messages}))])
    return reading


def events(*messages: dict[str, Any]) -> list[Event]:
    return list(read_chat(*messages).sessions[0].events)


def test_a_conversation_becomes_turns_with_calls_after_their_message() -> None:
    arguments = '{"q": 1e2}'
    calls = [
        {"id": "a", "type": "function", "function": {"name": "find", "arguments": arguments}},
        {"id": "b", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
    ]
    assert events(
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "find it"},
        {"role": "assistant", "content": None, "tool_calls": calls, "refusal": None},
        {"role": "tool", "tool_call_id": "b", "content": "x"},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "assistant", "content": "done", "reasoning_content": "hm"},
        {"role": "user", "content": "thanks"},
    ) == [
        SystemMessage(content="be kind"),
        TurnStart(turn_id="turn-1"),
        UserMessage(content="find it", turn_id="turn-1"),
        AssistantMessage(content="", turn_id="turn-1"),
        ToolCall(call_id="a", name="find", args=json.dumps(arguments), turn_id="turn-1"),
        ToolCall(call_id="b", name="sh", args='"ls"', turn_id="turn-1"),
        ToolResult(call_id="b", result='"x"', turn_id="turn-1"),
        ToolResult(call_id="a", result='""', turn_id="turn-1"),
        AssistantMessage(content="done", reasoning="hm", turn_id="turn-1"),
        TurnEnd(turn_id="turn-1"),
        TurnStart(turn_id="turn-2"),
        UserMessage(content="thanks", turn_id="turn-2"),
        TurnEnd(turn_id="turn-2"),
    ]


def test_text_parts_are_joined_and_other_parts_keep_the_whole_list() -> None:
    texts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    user = events({"role": "user", "content": texts}, {"role": "user", "content": [*texts, image]})
    assert user[1] == UserMessage(content="a b", turn_id="turn-1")
    assert isinstance(user[4], UserMessage)
    assert user[4].content == "a b"
    assert json.loads(user[4].blocks or "") == [*texts, image]


def test_the_parts_of_a_tool_message_are_kept_as_blocks() -> None:
    parts = [{"type": "text", "text": "found"}]
    assert events({"role": "tool", "tool_call_id": "a", "content": parts}) == [
        ToolResult(call_id="a", result='"found"', blocks='[{"type":"text","text":"found"}]')
    ]


def test_missing_call_ids_are_made_up_and_paired_in_order() -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    reading = read_chat(
        {"role": "assistant", "content": "", "tool_calls": [call, {**call, "id": ""}]},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
        {"role": "tool", "content": "3"},
    )
    ids = [event.call_id for event in reading.sessions[0].events if isinstance(event, ToolCall | ToolResult)]
    assert ids == ["call-1", "call-2", "call-1", "call-2", "call-3"]
    assert reading.warnings == ["2 tool calls without an id got one", "3 tool messages without a call id got one"]


def test_what_has_no_place_is_counted_or_kept_as_custom() -> None:
    function = {"role": "function", "name": "f", "content": "1"}
    reading = read_chat({"role": "user", "name": "ann", "content": "hi"}, function)
    assert reading.warnings == ["1 message of unknown role kept as custom", "1 user message lost name"]
    custom = reading.sessions[0].events[2]
    assert isinstance(custom, CustomEvent)
    assert (custom.name, json.loads(custom.data)) == ("function", function)


def test_each_line_is_a_session() -> None:
    lines = ['{"messages": [], "tools": [1]}', '[{"role": "user", "content": "hi"}]']
    [reading] = read([("chat", "\n".join(lines))])
    assert [len(session.events) for session in reading.sessions] == [0, 3]
    assert reading.warnings == ["1 conversation lost tools"]


def test_lone_surrogates_become_replacement_characters() -> None:
    [reading] = read([("chat", r'[{"role": "user", "content": "\ud800"}]')])
    assert reading.sessions[0].events[1] == UserMessage(content="\ufffd", turn_id="turn-1")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": 1}, r"messages\[0\].role: must be a string"),
        ({"role": "user", "content": 5}, r"messages\[0\].content: must be a string, a list of parts or null"),
        ({"role": "assistant", "tool_calls": [{}]}, r"messages\[0\].tool_calls\[0\].function: must be an object"),
        ({"role": "tool", "tool_call_id": "x" * 257, "content": ""}, r"messages\[0\]: call_id: .*at most 256"),
    ],
)
def test_a_broken_message_is_refused_with_its_place(message: dict[str, Any], expected: str) -> None:
    with pytest.raises(errors.BadInput, match=rf"chat line 1 {expected}"):
        events(message)


def test_a_line_that_is_no_conversation_is_refused() -> None:
    with pytest.raises(errors.BadInput, match=r"chat line 2 messages: must be a list, is a int"):
        read([("chat", '{"messages": []}\n5')])
