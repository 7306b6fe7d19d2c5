"""Hides act on what their range has made so far; trims consist of hides."""

from collections.abc import Sequence

import pytest

from storage import errors
from storage.events import CardEvent, Event, SurfaceHide
from storage.views.records import records
from storage.views.trim import hides_for_trim
from tests.storage.views.surface_logs import (
    END,
    START,
    STEP,
    assistant,
    call,
    chunk,
    folded,
    hide,
    result,
    seqs,
    shown,
    system,
    user,
)
from tests.storage.views.validity import check

GROUP = [user("q"), assistant("a"), call("A"), call("B"), result("B", "b"), result("A", "a"), user("next")]


@pytest.mark.parametrize(
    ("start", "stop", "left"),
    [
        (0, 7, []),
        (0, 1, [("assistant", "a", "A", "B"), ("B", "b"), ("A", "a"), ("user", "next")]),
        (0, 0, [("user", "q"), ("assistant", "a", "A", "B"), ("B", "b"), ("A", "a"), ("user", "next")]),
        (1, 2, [("user", "q"), ("assistant", None, "A", "B"), ("B", "b"), ("A", "a"), ("user", "next")]),
        (2, 3, [("user", "q"), ("assistant", "a", "B"), ("B", "b"), ("user", "next")]),
        (2, 4, [("user", "q"), ("assistant", "a"), ("user", "next")]),
        (1, 4, [("user", "q"), ("user", "next")]),
        (4, 5, [("user", "q"), ("assistant", "a", "A", "B"), ("A", "a"), ("?", "B"), ("user", "next")]),
        (3, 5, [("user", "q"), ("assistant", "a", "A"), ("A", "a"), ("user", "next")]),
    ],
)
def test_a_hide_removes_what_its_range_made(start: int, stop: int, left: list[object]) -> None:
    surface = folded(*GROUP, hide(start, stop))
    check(surface)
    assert shown(surface) == left


def test_a_call_whose_result_was_hidden_is_answered_again() -> None:
    surface = folded(*GROUP, hide(4, 5), result("B", "again"))
    assert shown(surface)[2:4] == [("A", "a"), ("B", "again")]


def test_calls_that_wait_again_keep_their_order() -> None:
    log = [call("A"), user("x"), call("A"), result("A", 1), result("A", 2), hide(4, 5), hide(3, 4)]
    assert shown(folded(*log, result("A", 3), result("A", 4))) == [
        ("assistant", None, "A"),
        ("A", "3"),
        ("user", "x"),
        ("assistant", None, "A"),
        ("A", "4"),
    ]


def test_a_hidden_call_gets_no_result() -> None:
    assert shown(folded(call("A"), call("B"), hide(0, 1), result("A"), result("B"))) == [
        ("assistant", None, "B"),
        ("B", "ok"),
    ]


def test_a_message_without_its_hidden_content_is_known_by_its_first_call() -> None:
    surface = folded(*GROUP, hide(1, 2))
    assert seqs(surface)[1] == (2, 3)
    assert shown(surface.add(system("sum", 2, 2))) == [("user", "q"), ("system", "sum"), ("user", "next")]


def test_an_empty_answer_left_without_calls_is_removed() -> None:
    assert shown(folded(user("q"), assistant(""), call("A"), result("A"), hide(2, 3))) == [("user", "q")]


def test_hiding_a_replacement_hides_what_it_replaced() -> None:
    surface = folded(*GROUP, system("sum", 0, 1), hide(7, 8))
    assert shown(surface) == [("user", "next")]
    surface = folded(*GROUP, result("B", "short", 4, 4), hide(7, 8))
    assert shown(surface)[2:4] == [("A", "a"), ("?", "B")]


def test_hiding_what_was_replaced_leaves_the_replacement() -> None:
    assert shown(folded(*GROUP, system("sum", 0, 6), hide(0, 7))) == [("system", "sum")]


def test_a_hide_does_not_affect_later_events() -> None:
    surface = folded(START, STEP, assistant("a"), hide(0, 3), call("A"), SurfaceHide(from_seq=4, to_seq=9), user("x"))
    assert shown(surface) == [("user", "x")]


def test_a_group_stays_open_while_its_message_exists() -> None:
    kept = folded(START, STEP, assistant("a"), call("A"), hide(2, 3), call("B"))
    assert shown(kept)[0] == ("assistant", None, "A", "B")
    gone = folded(START, STEP, assistant("a"), call("A"), hide(3, 4), call("A"), hide(2, 6), call("B"))
    assert shown(gone) == [("assistant", None, "B"), ("?", "B")]


@pytest.mark.parametrize("end", [[], [END]])
def test_parts_of_an_interrupted_answer_can_be_hidden(end: list[Event]) -> None:
    log = [START, chunk("a"), chunk("b"), chunk("c"), *end]
    assert seqs(folded(*log, hide(2, 3))) == [(1, 3)]
    assert shown(folded(*log, hide(1, 3))) == [("assistant", "c")]
    assert shown(folded(*log, hide(0, 4))) == []


def trimmed(log: Sequence[Event], keep: int) -> tuple[list[tuple[int, int]], list[object]]:
    surface = folded(*log)
    hides = hides_for_trim(surface, keep)
    before = [message for message in surface.messages() if not message.supplied]
    surface.add_all(hides)
    check(surface)
    left = [message for message in surface.messages() if not message.supplied]
    assert left == before[len(before) - len(left) :]
    return [(each.from_seq, each.to_seq) for each in hides], list(shown(surface))


@pytest.mark.parametrize(
    ("keep", "hides", "left"), [(0, [(0, 7)], 0), (1, [(0, 6)], 1), (2, [(0, 1)], 4), (4, [(0, 1)], 4), (5, [], 5)]
)
def test_a_trim_keeps_the_newest_and_tool_groups_whole(keep: int, hides: list[tuple[int, int]], left: int) -> None:
    assert trimmed(GROUP, keep) == (hides, shown(folded(*GROUP))[5 - left :])
    assert trimmed(GROUP, 6) == ([], shown(folded(*GROUP)))


def test_supplied_results_are_not_counted() -> None:
    log = [user("1"), call("A"), user("2"), user("3")]
    assert trimmed(log, 3) == ([(0, 1)], [("assistant", None, "A"), ("?", "A"), ("user", "2"), ("user", "3")])


def test_a_trim_hides_around_what_stays_visible() -> None:
    log = [user("1"), user("2"), user("3"), user("4"), system("sum", 2, 3), system("one", 1, 1)]
    assert shown(folded(*log)) == [("user", "1"), ("system", "one"), ("system", "sum")]
    assert trimmed(log, 1) == ([(0, 1), (5, 6)], [("system", "sum")])
    late = [call("A"), call("B"), result("B"), user("x"), result("A")]
    assert trimmed(late, 1) == ([(0, 3), (4, 5)], [("user", "x")])


def test_a_trim_hides_everything_before_what_stays_visible() -> None:
    card = CardEvent(card_type="Table", payload="type: Table")
    log = [card, user("1"), card, user("2"), card, user("3")]
    assert trimmed(log, 1)[0] == [(0, 4)]


def test_a_streaming_answer_is_a_record() -> None:
    log = [user("q"), chunk("a"), chunk("b")]
    assert trimmed(log, 1) == ([(0, 1)], [("assistant", "ab")])
    assert trimmed(log, 0) == ([(0, 3)], [])


def test_nothing_to_trim_and_negative_numbers() -> None:
    assert hides_for_trim(folded(START, END), 0) == []
    with pytest.raises(errors.BadInput, match="keepRecent: must not be negative, is -1"):
        hides_for_trim(folded(*GROUP), -1)


def test_trims_of_trims() -> None:
    surface = folded(*GROUP)
    for keep in (4, 1, 0):
        surface.add_all(hides_for_trim(surface, keep))
        assert len(records(surface)) == keep
        assert hides_for_trim(surface, keep) == []
