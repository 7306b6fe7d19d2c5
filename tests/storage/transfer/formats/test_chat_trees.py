"""Exports of ChatGPT and LibreChat: the path of first children is the session, each further child begins a fork."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.transfer.formats.registry import read_document
from storage.views.surface import Surface
from tests.storage.transfer.formats.documents import check_broken
from tests.storage.transfer.formats.logs import (
    CHATGPT_EXPORT,
    CHATGPT_TREE,
    DATA,
    LIBRECHAT,
    counts,
    messages,
    read_log,
    visible_by_id,
    visible_logs,
)
from tests.storage.transfer.formats.mutations import odd
from tests.storage.views.validity import check


def values(name: str) -> list[dict[str, Any]]:
    value = json.loads((DATA / name).read_text(encoding="utf-8-sig"))
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("name", "format", "sessions", "forks", "expected", "calls"),
    [
        (CHATGPT_EXPORT, "chatgpt", 2, 0, (5, 9, 5, 2), 4),
        (CHATGPT_TREE, "chatgpt", 1, 2, (5, 6, 0, 1), 0),
        (LIBRECHAT, "librechat", 1, 2, (4, 5, 0, 0), 0),
    ],
)
def test_the_real_exports_keep_every_message_once(
    name: str, format: str, sessions: int, forks: int, expected: tuple[int, int, int, int], calls: int
) -> None:
    reading = read_log(name)
    assert reading.format == format
    assert sum(session.counted for session in reading.sessions) == sessions
    assert sum(session.source is not None for session in reading.sessions) == forks
    assert messages(reading.sessions) == expected
    assert counts(reading.sessions)["tool/call"] == calls


@pytest.mark.parametrize("name", [CHATGPT_EXPORT, CHATGPT_TREE, LIBRECHAT])
def test_the_surface_of_a_real_export_is_valid_at_every_cut(name: str) -> None:
    for log in visible_logs(read_log(name).sessions).values():
        surface = Surface()
        for event in log:
            check(surface.add(event))


def test_a_conversation_that_has_grown_gives_the_same_sessions_and_more() -> None:
    for conversation in [*values(CHATGPT_EXPORT), *values(CHATGPT_TREE)]:
        full = visible_by_id(read_document("x", json.dumps([conversation])))
        mapping = conversation["mapping"]
        order = sorted(mapping, key=lambda id: (mapping[id]["message"] or {}).get("create_time") or 0)
        for size in range(2, len(order)):
            kept = {
                id: mapping[id] | {"children": [child for child in mapping[id]["children"] if child in order[:size]]}
                for id in mapping
                if id in order[:size]
            }
            part = visible_by_id(read_document("x", json.dumps([conversation | {"mapping": kept}])))
            assert part.keys() <= full.keys()
            assert all(log == full[id][: len(log)] for id, log in part.items())


def test_the_branch_that_is_shown_is_named() -> None:
    main = read_log(CHATGPT_TREE).sessions[0]
    facts = json.loads(main.metadata or "")
    assert facts["currentSession"] == f"{main.id}:{facts['current_node']}"


def test_flat_messages_of_librechat_give_the_same_logs_as_nested_ones() -> None:
    [nested] = values(LIBRECHAT)
    flat: list[dict[str, Any]] = []
    waiting = list(nested["messages"])
    while waiting:
        message = waiting.pop(0)
        flat.append({name: value for name, value in message.items() if name != "children"})
        waiting += message["children"]
    other = read_document("x", json.dumps(nested | {"messages": flat, "recursive": False}))
    assert visible_by_id(other) == visible_by_id(read_log(LIBRECHAT))


@given(st.integers(0, 2**32))
def test_a_broken_conversation_of_chatgpt_is_read_or_refused_without_a_trace(seed: int) -> None:
    good = values(CHATGPT_TREE)[0]
    check_broken("chatgpt", good, odd(good, seed))


@given(st.integers(0, 2**32))
def test_a_broken_conversation_of_librechat_is_read_or_refused_without_a_trace(seed: int) -> None:
    [good] = values(LIBRECHAT)
    check_broken("librechat", good, odd(good, seed))
