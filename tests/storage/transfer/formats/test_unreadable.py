"""An unreadable message affects nothing else in any format with whole conversations; strict reading refuses it."""

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import AssistantMessage, CustomEvent, Event, UserMessage
from storage.transfer.formats.registry import peek_records, read_document, reader_for
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.records import read_records
from tests.storage.transfer.formats.documents import check_log, nested
from tests.storage.transfer.formats.logs import visible_logs
from tests.storage.transfer.formats.mutations import SEEDS, check, odd


def lenient(value: object, format: str | None = None) -> tuple[list[Step], ImportWarnings]:
    head, found = peek_records(read_records("x", io.BytesIO(json.dumps(value).encode())))
    source = reader_for("x", head, format, lenient=True)
    steps = [step for record in found for step in source.add(record)]
    steps += source.end()
    check(steps)
    return steps, source.warnings


def sessions(steps: Sequence[Step]) -> list[ForeignSession]:
    return [step for step in steps if isinstance(step, ForeignSession)]


def said(events: Sequence[Event]) -> list[str]:
    """The texts of messages, and the data of custom events."""
    found = []
    for event in events:
        match event:
            case UserMessage() | AssistantMessage():
                found.append(event.content)
            case CustomEvent():
                found.append(f"{event.name} {event.data}")
    return found


# Conversations that are lists


class Listed(NamedTuple):
    """A format whose records hold lists: a document with one, the location of the list, and two messages for it."""

    format: str
    document: Callable[[list[Any]], Any]
    location: str
    first: Any
    second: Any
    noun: str = "message"


USER, ASSISTANT = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
ACTION = {"id": 0, "timestamp": "2025-04-30T16:32:00", "action": "message"}
LISTS = [
    Listed("openai", lambda said: {"messages": said}, "x line 1 messages", USER, ASSISTANT),
    Listed("openai", lambda said: said, "x ", USER, ASSISTANT),
    Listed("tau-bench", lambda said: [{"task_id": 1, "traj": said}], "x [0].traj messages", USER, ASSISTANT),
    Listed("swe-agent", lambda said: {"trajectory": [], "history": said}, "x line 1 history", USER, ASSISTANT),
    Listed(
        "inspect",
        lambda said: {"eval": {"task": "t"}, "status": "success", "samples": [{"messages": said}]},
        "x samples[0] messages",
        USER,
        ASSISTANT,
    ),
    Listed(
        "openhands",
        lambda said: {"history": said},
        "x line 1 history",
        {**ACTION, "source": "user", "args": {"content": "u"}},
        {**ACTION, "source": "agent", "args": {"content": "a"}},
        "event",
    ),
]
EACH_LIST = pytest.mark.parametrize("listed", LISTS, ids=lambda listed: listed.format)


@EACH_LIST
@pytest.mark.parametrize(
    "odd", [{"role": "user", "content": 5}, {"role": None}, {"content": "?"}, {"role": "assistant", "tool_calls": 5}]
)
def test_a_message_that_cannot_be_read_becomes_custom_and_the_others_are_read(listed: Listed, odd: Any) -> None:
    steps, warnings = lenient(listed.document([listed.first, odd, listed.second, listed.first]))
    kept = f"{listed.noun} {json.dumps(odd, separators=(',', ':'))}"
    assert said(sessions(steps)[-1].events) == ["u", kept, "a", "u"]
    kind = f"{listed.noun} that could not be read kept as custom"
    assert warnings.kinds()[kind] == 1
    [warning] = [warning for warning in warnings.messages() if kind in warning]
    assert warning.startswith(f"1 {kind}, {listed.location}[1]")


@EACH_LIST
def test_the_first_of_several_unreadable_messages_is_reported(listed: Listed) -> None:
    _, warnings = lenient(listed.document([listed.first, {"role": 5}, {"role": 6}, listed.first, listed.first]))
    told = f"2 {listed.noun}s that could not be read kept as custom, the first: {listed.location}[1]"
    assert any(warning.startswith(told) for warning in warnings.messages())


@EACH_LIST
def test_a_message_that_no_event_can_store_is_left_out_and_reported(listed: Listed) -> None:
    deep = {"role": "user", "content": nested(600)}
    steps, warnings = lenient(listed.document([listed.first, deep, listed.second, listed.first]))
    assert said(sessions(steps)[-1].events) == ["u", "a", "u"]
    assert warnings.first_broken.startswith(f"{listed.location}[1]")
    assert warnings.kinds()["record left out"] == 1


@EACH_LIST
@pytest.mark.parametrize("odd", [5, "text", None, [[]]])
@pytest.mark.parametrize("at", [0, 1])
def test_a_message_that_is_not_an_object_affects_nothing_else(listed: Listed, odd: Any, at: int) -> None:
    messages = [listed.first, listed.second, listed.first]
    steps, warnings = lenient(listed.document([*messages[:at], odd, *messages[at:]]))
    texts = [text for session in sessions(steps) for text in said(session.events)]
    assert [text for text in texts if text in ("u", "a")] == ["u", "a", "u"]
    [warning] = [warning for warning in warnings.messages() if f"{listed.location}[{at}]" in warning]
    assert warning.startswith(("1 record left out", f"1 {listed.noun} that could not be read kept as custom"))


@EACH_LIST
@pytest.mark.parametrize("odd", [5, {"role": "user", "content": 5}])
def test_read_strictly_such_a_message_is_refused_with_its_location(listed: Listed, odd: Any) -> None:
    with pytest.raises(errors.BadInput) as refused:
        read_document("x", json.dumps(listed.document([listed.first, odd, listed.second])), listed.format)
    assert refused.value.message.startswith(f"{listed.location}[1]")


@EACH_LIST
def test_fewer_messages_give_the_first_of_the_events(listed: Listed) -> None:
    messages = [listed.first, {"role": 5}, listed.second, 5, listed.first, {"role": "user", "content": 5}]
    whole = said(sessions(lenient(listed.document(messages), listed.format)[0])[-1].events)
    for size in range(1, len(messages)):
        part = said(sessions(lenient(listed.document(messages[:size]), listed.format)[0])[-1].events)
        assert part == whole[: len(part)]


def test_trials_that_share_a_message_that_cannot_be_read_share_their_beginning() -> None:
    odd = {"role": "user", "content": 5}
    trials = [{"task_id": 1, "traj": [USER, odd, {"role": "user", "content": nested(600)}, USER]} for _ in range(2)]
    [_, first, second] = sessions(lenient(trials)[0])
    assert (second.source, second.at_seq) == (first.key, len(first.events) - 1)
    assert [event.type for event in (first.events[-1], *second.events)] == ["turn/end"] * 2


@pytest.mark.parametrize(
    ("listed", "field"), [(LISTS[3], "trajectory"), (LISTS[4], "events")], ids=["swe-agent", "inspect"]
)
def test_other_fields_that_are_not_objects_are_reported(listed: Listed, field: str) -> None:
    for given_odd, location in ((5, ""), ([{}, 5], "[1]")):
        document = listed.document([USER])
        (document["samples"][0] if listed.format == "inspect" else document)[field] = given_odd
        steps, warnings = lenient(document, listed.format)
        assert "u" in said(sessions(steps)[-1].events)
        assert f" {field}{location}: must be" in warnings.first_broken
        with pytest.raises(errors.BadInput, match=rf" {field}.*: must be"):
            read_document("x", json.dumps(document), listed.format)


@pytest.mark.parametrize("odd", [[5], [[]], [{}], {"messages": [5]}])
def test_a_list_without_messages_is_not_a_conversation(odd: object) -> None:
    steps, warnings = lenient([{"messages": [USER]}, odd])
    assert [said(session.events) for session in sessions(steps)] == [["u"]]
    assert warnings.first_broken.startswith("x [1] messages[0]")


# Conversations that are trees


def reply(role: object, content: object, *replies: Any) -> dict[str, Any]:
    return {"role": role, "text": content, "replies": list(replies)}


def turn(id: str, content: object, *children: Any) -> dict[str, Any]:
    return {"messageId": id, "isCreatedByUser": True, "text": content, "children": list(children)}


def of_open_assistant(content: object) -> Any:
    """The message `p`, a reply to it with this content, and two replies to the reply."""
    second = reply("assistant", content, reply("prompter", "b"), reply("prompter", "c"))
    return {"prompt": reply("prompter", "p", second)}


def of_librechat(content: object) -> Any:
    return {"conversationId": "c", "messages": [turn("1", "p", turn("2", content, turn("3", "b"), turn("4", "c")))]}


def of_librechat_flat(content: object) -> Any:
    parents = {"1": None, "2": "1", "3": "2", "4": "2"}
    texts = {"1": "p", "2": content, "3": "b", "4": "c"}
    messages = [
        {"messageId": id, "isCreatedByUser": True, "text": texts[id], "parentMessageId": parent}
        for id, parent in parents.items()
    ]
    return {"conversationId": "c", "messages": messages}


def of_chatgpt(content: object) -> Any:
    def node(parent: str | None, content: object, *children: str) -> dict[str, Any]:
        message = {"author": {"role": "user"}, "content": {"parts": [content]} if isinstance(content, str) else content}
        return {"message": message, "parent": parent, "children": list(children)}

    nodes = {"1": node(None, "p", "2"), "2": node("1", content, "3", "4"), "3": node("2", "b"), "4": node("2", "c")}
    return {"conversation_id": "c", "mapping": nodes}


EACH_TREE = pytest.mark.parametrize("tree", [of_open_assistant, of_librechat, of_librechat_flat, of_chatgpt])


@EACH_TREE
@pytest.mark.parametrize("odd", [5, {"a": 1}, True])
def test_replies_to_an_unreadable_message_keep_their_position(tree: Any, odd: object) -> None:
    steps, warnings = lenient(tree(odd))
    first, second = visible_logs(sessions(steps)).values()
    p, custom, b = said(first)
    assert (p, b, said(second)) == ("p", "b", ["p", custom, "c"])
    assert custom.startswith("message {")
    assert warnings.kinds()["message that could not be read kept as custom"] == 1
    [warning] = [warning for warning in warnings.messages() if "could not be read" in warning]
    assert warning.startswith("1 message that could not be read kept as custom, x ")


@EACH_TREE
def test_replies_to_a_message_that_no_event_can_store_keep_their_position(tree: Any) -> None:
    steps, warnings = lenient(tree(nested(600)))
    assert [said(log) for log in visible_logs(sessions(steps)).values()] == [["p", "b"], ["p", "c"]]
    assert warnings.kinds()["record left out"] == 1


@EACH_TREE
def test_a_tree_is_read_strictly_only_if_each_message_can_be(tree: Any) -> None:
    assert read_document("x", json.dumps(tree("a"))).sessions
    with pytest.raises(errors.BadInput, match=r"^x .*: must be"):
        read_document("x", json.dumps(tree(5)))


def test_a_reply_of_an_unknown_role_becomes_custom() -> None:
    steps, _ = lenient({"prompt": reply("prompter", "p", reply("judge", "j", reply("assistant", "a")))})
    [session] = sessions(steps)
    assert said(session.events) == ["p", 'message {"role":"judge","text":"j"}', "a"]


@pytest.mark.parametrize("prompt", [reply(5, "p"), reply("prompter", None), {"role": "prompter", "replies": []}])
def test_a_prompt_that_cannot_be_read_keeps_its_replies(prompt: dict[str, Any]) -> None:
    [session] = sessions(lenient({"prompt": prompt | {"replies": [reply("assistant", "a")]}})[0])
    assert said(session.events)[1:] == ["a"]


@pytest.mark.parametrize("odd", [5, "text", None])
def test_replies_that_are_not_objects_are_left_out_and_reported(odd: object) -> None:
    steps, warnings = lenient({"prompt": reply("prompter", "p", odd, reply("assistant", "a"))})
    assert [said(session.events) for session in sessions(steps)] == [["p", "a"]]
    assert warnings.first_broken.startswith("x line 1 prompt.replies[0]: must be an object")
    steps, warnings = lenient({"prompt": {"role": "prompter", "text": "p", "replies": 5}})
    assert [said(session.events) for session in sessions(steps)] == [["p"]]
    assert warnings.first_broken.startswith("x line 1 prompt.replies: must be a list")


@pytest.mark.parametrize("odd", [5, "text", None])
def test_nested_messages_of_librechat_that_are_not_objects_are_left_out_and_reported(odd: object) -> None:
    document = {"conversationId": "c", "messages": [turn("1", "p", odd, turn("2", "a") | {"children": 5})]}
    steps, warnings = lenient(document)
    assert [said(session.events) for session in sessions(steps)] == [["p", "a"]]
    assert warnings.first_broken.startswith("x line 1.messages[0].children[0]: must be an object")
    assert warnings.left_out == 2


@pytest.mark.parametrize("at", [0, 2])
def test_flat_messages_of_librechat_that_are_not_objects_are_left_out_and_reported(at: int) -> None:
    document = of_librechat_flat("a")
    document["messages"].insert(at, 5)
    steps, warnings = lenient(document)
    assert [said(log) for log in visible_logs(sessions(steps)).values()] == [["p", "a", "b"], ["p", "a", "c"]]
    assert warnings.first_broken.startswith(f"x line 1.messages[{at}]: must be an object")


@pytest.mark.parametrize("odd", [5, "text", None])
def test_children_of_a_node_that_is_not_an_object_move_to_its_parent(odd: object) -> None:
    document = of_chatgpt("a")
    document["mapping"]["2"] = odd
    document["mapping"]["9"] = odd
    steps, warnings = lenient(document)
    assert [said(log) for log in visible_logs(sessions(steps)).values()] == [["p", "b"], ["p", "c"]]
    assert warnings.left_out == 2
    assert warnings.first_broken.startswith("x line 1 2: must be an object")


@pytest.mark.parametrize("odd", [5, "unknown", {}])
def test_a_node_with_an_odd_parent_stays_where_its_parent_lists_it(odd: object) -> None:
    document = of_chatgpt("a")
    document["mapping"]["2"]["parent"] = odd
    steps, _ = lenient(document)
    assert [said(log) for log in visible_logs(sessions(steps)).values()] == [["p", "a", "b"], ["p", "a", "c"]]


# Other fields of conversations


@pytest.mark.parametrize("odd", [nested(600)])
@pytest.mark.parametrize(
    "told",
    [
        lambda odd: {"messages": [USER], "odd": odd, "sound": 1},
        lambda odd: {"task_id": 1, "traj": [USER], "reward": odd, "info": {"sound": 1}},
        lambda odd: {"prompt": reply("prompter", "u"), "odd": odd, "sound": 1},
        lambda odd: {**of_librechat("a"), "odd": odd, "sound": 1},
        lambda odd: {**of_chatgpt("a"), "odd": odd, "sound": 1, "current_node": "4"},
    ],
    ids=["openai", "tau-bench", "open-assistant", "librechat", "chatgpt"],
)
def test_a_fact_that_cannot_be_stored_affects_nothing_else(told: Callable[[object], Any], odd: object) -> None:
    steps, warnings = lenient([told(odd)])
    session = next(session for session in sessions(steps) if session.events)
    metadata = json.loads(session.metadata or "")
    assert "odd" not in metadata
    assert '"sound": 1' in json.dumps(metadata)
    assert warnings.left_out == 1
    assert warnings.first_broken.startswith("x [0]")
    with pytest.raises(errors.BadInput, match=r"^x \[0\]"):
        read_document("x", json.dumps([told(odd)]))


CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
RESULT = {"role": "tool", "content": "r", "tool_call_id": "c"}
WHOLE: list[tuple[str, Any]] = [
    *((listed.format, listed.document([listed.first, listed.second, CALL, RESULT, listed.second])) for listed in LISTS),
    ("open-assistant", of_open_assistant("a")),
    ("librechat", of_librechat("a")),
    ("librechat", of_librechat_flat("a")),
    ("chatgpt", of_chatgpt("a")),
]


@given(st.sampled_from(WHOLE), SEEDS)
def test_odd_conversations_give_valid_steps(whole: tuple[str, Any], seed: int) -> None:
    format, document = whole
    steps, _ = lenient(odd(document, seed), format)
    for log in visible_logs(steps).values():
        check_log(log)
