"""Records, the context of the next request, and messages in the format of the chat completions API."""

import json
from typing import Any

import pytest

from storage import errors, text
from storage.events import AssistantMessage, Event, InsightDelivered, ToolResult, UserMessage
from storage.session import Slot
from storage.views.context import context
from storage.views.message import Role
from storage.views.records import records
from tests.storage.views.surface_logs import (
    END,
    START,
    assistant,
    call,
    chunk,
    folded,
    hide,
    result,
    short,
    system,
    user,
)
from tests.storage.views.validity import problems

LOG = [system("s"), user("q"), assistant("a"), call("A"), call("B"), result("A"), user("r"), chunk("c")]
PENDING = Slot(content="new", version=4, updated_at=9, at_seq=2)
DELIVERED = InsightDelivered(content="old", version=3, turn_id="t", timestamp=5)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["s", "q", "a", "ok", "r", "c"]),
        ({"role": Role.USER}, ["q", "r"]),
        ({"role": Role.TOOL}, ["ok"]),
        ({"from_seq": 6}, ["r", "c"]),
        ({"from_seq": 4}, ["a", "ok", "r", "c"]),
        ({"since_memory": 6, "from_seq": 1}, ["r", "c"]),
        ({"from_seq": 99}, []),
        ({"offset": 1, "limit": 2}, ["q", "a"]),
        ({"role": Role.USER, "from_seq": 1, "offset": 1, "limit": 1}, ["r"]),
        ({"limit": 0}, []),
        ({"offset": 99}, []),
    ],
)
def test_records_are_filtered_then_skipped_then_limited(filters: dict[str, Any], found: list[str]) -> None:
    assert [message.content for message in records(folded(*LOG), **filters)] == found


@pytest.mark.parametrize(
    ("filters", "argument"), [({"from_seq": -1}, "fromSeq"), ({"offset": -1}, "offset"), ({"limit": -1}, "limit")]
)
def test_negative_numbers_are_refused(filters: dict[str, Any], argument: str) -> None:
    with pytest.raises(errors.BadInput, match=f"{argument}: must not be negative, is -1"):
        records(folded(*LOG), **filters)


def leading(log: list[Event], prompt: str | None, pending: Slot | None) -> list[str]:
    surface = folded(*log)
    made = context(surface, prompt, pending)
    sent = json.loads(made.openai)
    count = len(sent) - len(made.messages)
    assert problems(sent) == []
    assert sent[count:] == json.loads(surface.openai_text())
    assert (list(made.messages), made.at_seq) == (surface.messages(), len(log))
    assert all(message["role"] == "system" for message in sent[:count])
    return [message["content"] for message in sent[:count]]


def test_the_context_is_system_prompt_insight_messages() -> None:
    assert leading(LOG, "be kind", PENDING) == ["be kind", "new"]
    assert leading(LOG, None, PENDING) == ["new"]
    assert leading([], "be kind", None) == ["be kind"]
    assert leading([], "", PENDING.model_copy(update={"content": None, "cleared": True})) == []


def test_a_delivered_insight_shows_until_its_turn_ends() -> None:
    log: list[Event] = [START, user("q"), DELIVERED, assistant("a")]
    assert leading([*log[:2]], None, PENDING) == ["new"]
    assert leading(log, None, None) == ["old"]
    assert leading(log, None, PENDING) == ["old"]
    assert leading([*log, hide(0, 4)], None, PENDING) == ["old"]
    assert leading([*log, END], None, PENDING) == ["new"]
    assert leading([*log, END], None, None) == []
    later = DELIVERED.model_copy(update={"content": "later", "version": 4})
    assert leading([*log, later], None, None) == ["later"]
    other = later.model_copy(update={"turn_id": "u"})
    assert leading([*log, other, END], None, None) == ["later"]
    assert leading([*log, other, later], None, None) == ["later"]
    assert leading([*log, other, DELIVERED], None, None) == ["old"]
    assert leading([*log, later.model_copy(update={"turn_id": None}), END], None, PENDING) == ["new"]


def test_an_insight_shows_its_version_and_time() -> None:
    insight = context(folded(START, DELIVERED), None, PENDING).insight
    assert insight == Slot(content="old", version=3, updated_at=5, at_seq=1)
    assert context(folded(START), None, PENDING).insight == PENDING


TEXT = {"type": "text", "text": "see"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
FOREIGN = {"type": "image", "source": {"n": 1}}
SOUND = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
SILENT = {"type": "input_audio", "input_audio": {"data": ""}}
SAID = {"type": "text", "text": "text"}
DEEP = {"type": "image_url", "image_url": json.loads("[" * 300 + "]" * 300)}


@pytest.mark.parametrize(
    ("blocks", "content"),
    [
        ([TEXT, IMAGE], [TEXT, IMAGE]),
        ([IMAGE, FOREIGN], [{"type": "text", "text": "text"}, IMAGE]),
        ([TEXT, FOREIGN], [TEXT]),
        ([FOREIGN], "text"),
        ([], "text"),
        ({"type": "text", "text": "no list"}, "text"),
        ([{"type": "text", "text": 5}, {"type": 7}, "x", DEEP], "text"),
        ([{"type": "image_url", "image_url": {}}, {"type": "image_url", "image_url": {"url": None}}], "text"),
        ([SOUND, SILENT], [SAID, SOUND]),
    ],
)
def test_blocks_that_the_api_accepts_become_parts(blocks: object, content: object) -> None:
    surface = folded(UserMessage(content="text", blocks=json.dumps(blocks)))
    [sent] = json.loads(surface.openai_text())
    assert sent == {"role": "user", "content": content}
    [message] = surface.messages()
    assert (message.content, json.loads(message.blocks or "")) == ("text", blocks)


def test_parts_depend_on_the_role_and_an_error_is_never_lost() -> None:
    refusal, blocks = {"type": "refusal", "refusal": "no"}, json.dumps([TEXT, IMAGE])
    log: list[Event] = [
        AssistantMessage(content="x", blocks=json.dumps([refusal, IMAGE])),
        call("A"),
        call("B"),
        ToolResult(call_id="A", result='"x"', blocks=blocks),
        ToolResult(call_id="B", error="bad", blocks=blocks),
    ]
    sent = json.loads(folded(*log).openai_text())
    assert [message["content"] for message in sent] == [[refusal], [TEXT], "bad"]
    assert problems(sent) == []


def test_nested_blocks_are_sent_however_deep() -> None:
    # The list of blocks, a block and its file are three of the 500 levels that a writer may nest.
    deep = {"type": "file", "file": {"a": json.loads("[" * 497 + "]" * 497)}}
    blocks = text.to_json([deep], "blocks")
    assert json.loads(folded(UserMessage(content="", blocks=blocks)).openai_text())[0]["content"] == [deep]


def test_a_call_is_sent_as_a_function() -> None:
    assert json.loads(folded(assistant(""), call("A", args='{"a":1}'), result("A", None)).openai_text()) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "A", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "content": "", "tool_call_id": "A"},
    ]
    assert short(folded(call("A")).messages()[1]) == ("?", "A")
