"""Chat messages become events, a turn per user message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    StepEnd,
    StepStart,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.transfer.formats.registry import ForeignDocument, ForeignSession, read_document, reader_for
from storage.transfer.formats.shared.record import Record
from storage.views.surface import Surface
from tests.storage.transfer.formats.documents import check_broken, nested
from tests.storage.transfer.formats.mutations import odd
from tests.storage.views.surface_logs import numbered
from tests.storage.views.validity import check


def read_chat(*messages: dict[str, Any]) -> ForeignDocument:
    return read_document("chat", json.dumps({"messages": messages}))


def events(*messages: dict[str, Any]) -> list[Event]:
    return list(read_chat(*messages).sessions[0].events)


def test_a_conversation_becomes_turns_and_steps_with_calls_after_their_message() -> None:
    """The last turn stays open, as no later record ends it."""
    arguments = '{"q": 1e2}'
    calls = [
        {"id": "a", "type": "function", "function": {"name": "find", "arguments": arguments}},
        {"id": "b", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
    ]
    first, second = {"turn_id": "turn-1", "step_id": "step-1"}, {"turn_id": "turn-1", "step_id": "step-2"}
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
        StepStart(**first),
        AssistantMessage(content="", **first),
        ToolCall(call_id="a", name="find", args=json.dumps(arguments), **first),
        ToolCall(call_id="b", name="sh", args='"ls"', **first),
        ToolResult(call_id="b", result='"x"', **first),
        ToolResult(call_id="a", result='""', **first),
        StepEnd(**first),
        StepStart(**second),
        AssistantMessage(content="done", reasoning="hm", **second),
        StepEnd(**second),
        TurnEnd(turn_id="turn-1"),
        TurnStart(turn_id="turn-2"),
        UserMessage(content="thanks", turn_id="turn-2"),
    ]


def test_text_parts_are_joined_and_other_parts_keep_the_whole_list() -> None:
    texts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    user = events({"role": "user", "content": texts}, {"role": "user", "content": [*texts, image]})
    assert user[1] == UserMessage(content="a b", turn_id="turn-1")
    assert isinstance(user[4], UserMessage)
    assert user[4].content == "a b"
    assert json.loads(user[4].blocks or "") == [*texts, image]


def test_text_parts_that_say_more_than_their_text_are_kept_whole() -> None:
    part = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    [_, message] = events({"role": "user", "content": [part]})
    assert isinstance(message, UserMessage)
    assert (message.content, json.loads(message.blocks or "")) == ("a", [part])


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "done"}]},
        {"content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "output_text", "text": "done"}]},
    ],
)
def test_reasoning_is_kept_in_every_encoding(fields: dict[str, Any]) -> None:
    reading = read_chat({"role": "assistant", "content": "done"} | fields)
    [message] = [event for event in reading.sessions[0].events if isinstance(event, AssistantMessage)]
    assert (message.content, message.reasoning) == ("done", "hm")
    assert reading.warnings == []


def test_a_second_reasoning_is_counted() -> None:
    reading = read_chat({"role": "assistant", "content": "", "reasoning": {"a": 1}, "reasoning_content": "hm"})
    assert reading.warnings == ["1 assistant message lost a second or unreadable reasoning"]


def test_a_refusal_is_a_part_of_its_own_on_the_surface() -> None:
    log = events({"role": "assistant", "content": None, "refusal": "no"})
    [message] = Surface().add_all(log).openai()
    assert json.loads(message) == {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}


def test_a_legacy_function_call_is_answered_by_the_function_message_after_it() -> None:
    reading = read_chat(
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": "done", "name": "helper"},
    )
    log = reading.sessions[0].events
    assert [event.call_id for event in log if isinstance(event, ToolCall | ToolResult)] == ["call-1", "call-1"]
    assert [event.agent_name for event in log if isinstance(event, StepStart)] == [None, "helper"]
    assert [event.type for event in log].count("turn/end") == 1


def test_an_instruction_of_a_developer_is_a_system_message_and_counted() -> None:
    reading = read_chat({"role": "developer", "content": "be brief"})
    assert reading.sessions[0].events == [SystemMessage(content="be brief")]
    assert reading.warnings == ["1 developer message became a system message"]


def test_the_surface_is_the_messages_of_the_log() -> None:
    """Messages that the API accepts come back unchanged, including calls with reused ids and pictures."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_call_id": "a"},
        {"role": "assistant", "content": "again", "tool_calls": [call, {**call, "id": "b"}]},
        {"role": "tool", "content": "3", "tool_call_id": "b"},
        {"role": "tool", "content": [{"type": "text", "text": "2"}], "tool_call_id": "a"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "bye"},
    ]
    surface = Surface()
    for event in numbered(events(*messages)):
        check(surface.add(event))
    assert [json.loads(message) for message in surface.openai()] == messages


def test_a_conversation_with_more_messages_has_more_events() -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "s"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": [call, call]},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
        {"role": "critic", "content": "hm"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "v"},
    ]
    log = events(*messages)
    for end in range(len(messages)):
        part = events(*messages[:end])
        assert part == log[: len(part)]
        assert len(part) < len(log)


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
    assert reading.warnings == [
        "3 tool calls without an id got one",
        "3 tool results without a call id got that of the oldest call without a result",
    ]


def test_a_call_id_of_any_length_still_pairs_call_and_result() -> None:
    call = {"id": "x" * 300, "function": {"name": "f", "arguments": {"a": 1}}}
    log = events(
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "x" * 300, "content": "1"},
    )
    [[id, other]] = [[event.call_id for event in log if isinstance(event, ToolCall | ToolResult)]]
    assert id == other
    assert len(id) <= 256


def test_content_without_an_event_is_counted_or_kept_as_custom() -> None:
    critic = {"role": "critic", "name": "f", "content": "1"}
    reading = read_chat({"role": "user", "name": "ann", "content": "hi"}, critic)
    assert reading.warnings == ["1 message of unknown role kept as custom", "1 user message lost name"]
    custom = reading.sessions[0].events[2]
    assert isinstance(custom, CustomEvent)
    assert (custom.name, json.loads(custom.data)) == ("critic", critic)


def test_each_line_is_a_session_with_its_other_fields() -> None:
    lines = ['{"messages": [], "tools": [1]}', '[{"role": "user", "content": " hi\\n you "}]']
    reading = read_document("chat", "\n".join(lines))
    assert [len(session.events) for session in reading.sessions] == [0, 2]
    assert [session.metadata for session in reading.sessions] == ['{"tools":[1]}', None]
    assert [session.label for session in reading.sessions] == [None, "hi you"]
    assert reading.warnings == []


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "1"}]},
    {"role": "assistant", "content": "a", "reasoning": "r"},
]


@pytest.mark.parametrize(
    "content", [json.dumps(MESSAGES), json.dumps(MESSAGES, indent=1), "\n".join(map(json.dumps, MESSAGES))]
)
def test_records_that_are_messages_make_one_session(content: str) -> None:
    reading = read_document("chat", content)
    [session] = reading.sessions
    assert (reading.format, session.label) == ("openai", "u")
    assert list(session.events) == events(*MESSAGES)


def test_a_broken_message_among_records_affects_nothing_else() -> None:
    values = [*MESSAGES[:2], {"role": 5}, *MESSAGES[2:]]
    head = [Record(f"x [{index}]", value) for index, value in enumerate(values)]
    source = reader_for("x", head, lenient=True)
    steps = [step for record in head for step in source.add(record)]
    steps += source.end()
    [session] = steps
    assert isinstance(session, ForeignSession)
    kept = CustomEvent(name="message", data='{"role":5}', turn_id="turn-1")
    log = list(session.events)
    assert log.pop(3) == kept
    assert log == events(*MESSAGES)
    assert source.warnings.messages() == [
        "1 message that could not be read kept as custom, x [2].role: must be a string, is a int"
    ]


def test_lone_surrogates_become_replacement_characters() -> None:
    reading = read_document("chat", r'[{"role": "user", "content": "\ud800"}]')
    assert reading.sessions[0].events[1] == UserMessage(content="\ufffd", turn_id="turn-1")


def test_nul_is_kept() -> None:
    reading = read_document("chat", r'[{"role": "user", "content": "a\u0000"}]')
    assert reading.sessions[0].events[1] == UserMessage(content="a\0", turn_id="turn-1")


@given(st.integers(0, 2**32))
def test_a_broken_conversation_is_read_or_refused_without_a_trace(seed: int) -> None:
    good = {"messages": MESSAGES, "tools": []}
    check_broken("openai", good, odd(good, seed))


@given(st.integers(0, 2**32))
def test_a_broken_message_is_read_or_refused_without_a_trace(seed: int) -> None:
    good = MESSAGES[seed % len(MESSAGES)]
    check_broken("openai", good, odd(good, seed))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": 1}, r"messages\[0\].role: must be a string"),
        ({"role": "user", "content": 5}, r"messages\[0\].content: must be a string, a list of parts or null"),
        ({"role": "assistant", "tool_calls": [{}]}, r"messages\[0\].tool_calls\[0\].function: must be an object"),
        ({"role": "assistant", "function_call": {"name": 1}}, r"messages\[0\].function_call.name: must be a string"),
        ({"role": "user", "content": 10**3}, r"messages\[0\].content: must be a string"),
        ({"role": "tool", "content": nested(600)}, r"messages\[0\].content: nested deeper"),
    ],
)
def test_a_broken_message_is_refused_with_its_location(message: dict[str, Any], expected: str) -> None:
    with pytest.raises(errors.BadInput, match=rf"chat line 1 {expected}"):
        events(message)


def test_a_line_that_is_not_a_conversation_is_refused() -> None:
    with pytest.raises(errors.BadInput, match=r"chat line 2 messages: must be a list, is a int"):
        read_document("chat", '{"messages": []}\n5')
