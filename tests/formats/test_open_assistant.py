"""A tree is a session along first replies; each further reply is a fork of it."""

import json
from typing import Any

import pytest

from storage import errors
from storage.events import AssistantMessage, UserMessage
from storage.formats import Reading, read

from .logs import DATA, OASST, messages, read_log


def node(role: str, content: str, *replies: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "text": content, "replies": replies}


def read_tree(prompt: dict[str, Any]) -> Reading:
    [reading] = read([("x", json.dumps({"message_tree_id": "tree:1", "prompt": prompt}))])
    return reading


def test_further_replies_fork_right_after_their_message() -> None:
    sessions = read_tree(
        node(
            "prompter",
            "p",
            node("assistant", "a", node("prompter", "aa"), node("prompter", "ab")),
            node("assistant", "b", node("prompter", "ba"), node("prompter", "bb", node("assistant", "bba"))),
        )
    ).sessions
    assert [(session.source, session.at_seq, session.counted) for session in sessions] == [
        (None, 0, True),
        ("0", 1, False),
        ("0", 2, False),
        ("1", 2, False),
    ]
    assert [session.parent for session in sessions] == [session.source for session in sessions]
    assert [session.id for session in sessions] == ["tree:1", None, None, None]
    assert sessions[0].events == [
        UserMessage(content="p"),
        AssistantMessage(content="a"),
        UserMessage(content="aa"),
    ]
    assert sessions[3].events == [UserMessage(content="bb"), AssistantMessage(content="bba")]


def test_the_real_trees_keep_every_message_once() -> None:
    reading = read_log(OASST)
    assert sum(session.counted for session in reading.sessions) == 60
    assert messages(reading.sessions) == (282, 402, 0, 0)
    assert reading.warnings == [
        "60 trees lost tree_state",
        (
            "684 messages lost deleted, emojis, lang, message_id, model_name, parent_id, rank, "
            "review_count, review_result, synthetic"
        ),
    ]


def test_every_path_of_the_real_trees_can_be_walked() -> None:
    sessions = {session.key: session for session in read_log(OASST).sessions}

    def visible(key: str | None) -> list[str]:
        if key is None:
            return []
        session = sessions[key]
        own = [event.content for event in session.events if isinstance(event, UserMessage | AssistantMessage)]
        return visible(session.source)[: session.at_seq] + own

    def leaves(message: dict[str, Any], path: list[str]) -> list[list[str]]:
        here = [*path, message["text"]]
        return [leaf for reply in message["replies"] for leaf in leaves(reply, here)] or [here]

    lines = (DATA / OASST).read_text(encoding="utf-8").splitlines()
    expected = [leaf for line in lines for leaf in leaves(json.loads(line)["prompt"], [])]
    assert sorted(visible(key) for key in sessions) == sorted(expected)


def test_the_label_is_the_start_of_the_first_message_on_one_line() -> None:
    [session] = read_tree(node("prompter", "a\n b " + "c" * 100)).sessions
    assert session.label == "a b " + "c" * 76
    [empty] = read_tree(node("prompter", "")).sessions
    assert empty.label is None


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (node("prompter", "p", node("judge", "j")), r"x line 1 prompt.replies\[0\].role: 'judge' is neither"),
        ({"role": "prompter", "replies": [], "text": 5}, "x line 1 prompt.text: must be a string, is a int"),
        ({"role": "prompter", "replies": []}, "x line 1 prompt.text: must be a string, is null"),
    ],
)
def test_a_broken_message_is_refused_with_its_place(prompt: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        read_tree(prompt)
