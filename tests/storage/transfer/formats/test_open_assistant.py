"""The path of first replies of a tree is a session; each further reply is a fork."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import AssistantMessage, UserMessage
from storage.transfer.formats.registry import ForeignDocument, ForeignSession, read_document
from storage.transfer.formats.shared.shared_prefixes import MAX_DEPTH
from tests.storage.transfer.formats.documents import check_broken
from tests.storage.transfer.formats.logs import (
    DATA,
    OASST,
    messages,
    read_log,
    steps_of_values,
    visible_by_id,
    visible_logs,
)
from tests.storage.transfer.formats.mutations import odd


def node(role: str, content: str, *replies: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "text": content, "replies": list(replies)}


def read_tree(prompt: dict[str, Any]) -> ForeignDocument:
    return read_document("x", json.dumps({"message_tree_id": "tree:1", "prompt": prompt}))


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
    assert sum(session.source is not None for session in reading.sessions) == 300
    assert reading.warnings == [
        "684 messages lost deleted, emojis, lang, message_id, model_name, parent_id, rank, review_count, "
        "review_result, synthetic"
    ]
    assert {session.metadata for session in reading.sessions} == {'{"tree_state":"ready_for_export"}', None}


def test_every_path_of_the_real_trees_can_be_walked() -> None:
    logs = visible_logs(read_log(OASST).sessions)
    paths = [
        [event.content for event in log if isinstance(event, UserMessage | AssistantMessage)] for log in logs.values()
    ]

    def leaves(message: dict[str, Any], path: list[str]) -> list[list[str]]:
        here = [*path, message["text"]]
        return [leaf for reply in message["replies"] for leaf in leaves(reply, here)] or [here]

    lines = (DATA / OASST).read_text(encoding="utf-8").splitlines()
    expected = [leaf for line in lines for leaf in leaves(json.loads(line)["prompt"], [])]
    assert sorted(paths) == sorted(expected)


def test_a_fork_has_an_id_of_its_tree_and_its_message() -> None:
    sessions = read_log(OASST).sessions
    ids = {session.id for session in sessions}
    assert None not in ids
    assert len(ids) == 360
    assert all(len((session.id or "").split(":")) == (1 if session.counted else 2) for session in sessions)


def test_a_tree_that_has_grown_gives_the_same_sessions_and_more() -> None:
    def grown(message: dict[str, Any], left: list[int]) -> dict[str, Any]:
        left[0] -= 1
        return message | {"replies": [grown(reply, left) for reply in message["replies"] if left[0] > 0]}

    trees = map(json.loads, (DATA / OASST).read_text(encoding="utf-8").splitlines()[:10])
    for tree in trees:
        full = visible_by_id(read_document("x", json.dumps(tree)))
        for size in range(1, 30):
            small = tree | {"prompt": grown(tree["prompt"], [size])}
            part = visible_by_id(read_document("x", json.dumps(small)))
            assert part.keys() <= full.keys()
            assert all(log == full[id][: len(log)] for id, log in part.items())


def test_fewer_records_give_the_first_of_the_steps() -> None:
    trees = [json.loads(line) for line in (DATA / OASST).read_text(encoding="utf-8").splitlines()]
    steps = steps_of_values("open-assistant", trees)
    for end in range(0, 60, 7):
        part = steps_of_values("open-assistant", trees[:end])
        assert part == steps[: len(part)]


@given(st.integers(0, 2**32))
def test_a_broken_tree_is_read_or_refused_without_a_trace(seed: int) -> None:
    good = {
        "message_tree_id": "tree:1",
        "prompt": node("prompter", "p", node("assistant", "a", node("prompter", "aa")), node("assistant", "b")),
    }
    check_broken("open-assistant", good, odd(good, seed))


def test_two_trees_of_one_id_do_not_share_it() -> None:
    tree = json.dumps({"message_tree_id": "t", "prompt": node("prompter", "p")})
    reading = read_document("x", f"{tree}\n{tree}")
    assert [session.id for session in reading.sessions] == ["t", None]
    assert reading.warnings == ["1 session lost its id, as an earlier one has the same"]


def test_forks_over_the_depth_limit_have_their_whole_log() -> None:
    """A store allows 256 nested forks. The nesting is too deep for JSON, so the test passes values."""
    tree: dict[str, Any] = node("assistant", "last")
    for depth in range(MAX_DEPTH + 2):
        tree = node("assistant", f"{depth}", node("assistant", "first"), tree)
    found = [step for step in steps_of_values("open-assistant", [{"prompt": tree}]) if isinstance(step, ForeignSession)]
    whole = [session for session in found if session.source is not None and session.at_seq is None]
    assert len(found) == MAX_DEPTH + 3
    assert len(whole) == 1
    assert len(whole[0].events) == MAX_DEPTH + 2
    for session in found[-2:]:
        assert session.at_seq == MAX_DEPTH + (session is found[-1]) + 1


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
def test_a_broken_message_is_refused_with_its_location(prompt: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        read_tree(prompt)
