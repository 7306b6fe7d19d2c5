"""Compaction: a message replaces a range of nodes, and a result replaces one result."""

import pytest

from storage import errors
from storage.events import Event
from storage.views.surface import Surface
from tests.storage.views.surface_logs import (
    END,
    START,
    STEP,
    assistant,
    call,
    chunk,
    folded,
    hide,
    numbered,
    result,
    shown,
    system,
    user,
)
from tests.storage.views.validity import check

GROUP = [user("q"), assistant("a"), call("A"), call("B"), result("B", "b"), result("A", "a"), user("next")]
"""Nodes 0, 1, 4, 5, 6."""
BEFORE, AFTER = ("user", "q"), ("user", "next")
CALLS, RESULTS = ("assistant", "a", "A", "B"), [("B", "b"), ("A", "a")]
SUM = ("system", "sum")


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, 0, [SUM, CALLS, *RESULTS, AFTER]),
        (0, 6, [SUM]),
        (0, 1, [SUM, AFTER]),
        (0, 4, [SUM, AFTER]),
        (1, 1, [BEFORE, SUM, AFTER]),
        (1, 4, [BEFORE, SUM, AFTER]),
        (4, 4, [BEFORE, CALLS, ("A", "a"), ("?", "B"), SUM, AFTER]),
        (5, 5, [BEFORE, CALLS, ("B", "b"), ("?", "A"), SUM, AFTER]),
        (4, 5, [BEFORE, CALLS, ("?", "A"), ("?", "B"), SUM, AFTER]),
        (5, 6, [BEFORE, CALLS, ("B", "b"), ("?", "A"), SUM]),
        (4, 6, [BEFORE, CALLS, ("?", "A"), ("?", "B"), SUM]),
        (6, 6, [BEFORE, CALLS, *RESULTS, SUM]),
    ],
)
def test_a_message_replaces_the_nodes_from_start_to_end(start: int, end: int, left: list[object]) -> None:
    surface = folded(*GROUP, system("sum", start, end))
    check(surface)
    got = shown(surface)
    assert got == left
    assert surface.messages()[got.index(SUM)].source_event_seqs == (7,)


def test_replacements_chain_and_nest() -> None:
    log = [user("1"), assistant("2"), user("3"), assistant("4"), user("5")]
    inner = [*log, user("A", 1, 2)]
    assert shown(folded(*inner)) == [("user", "1"), ("user", "A"), ("assistant", "4"), ("user", "5")]
    chained = [*inner, user("B", 5, 5)]
    assert shown(folded(*chained))[1] == ("user", "B")
    outer = [*chained, system("C", 0, 3)]
    assert shown(folded(*outer)) == [("system", "C"), ("user", "5")]
    assert shown(folded(*outer, assistant("D", 7, 4))) == [("assistant", "D")]


def test_a_later_replacement_inside_the_same_results_precedes_the_earlier_one() -> None:
    surface = folded(*GROUP, system("1", 5, 5), system("2", 4, 4), user("end"))
    assert shown(surface)[4:] == [("system", "2"), ("system", "1"), AFTER, ("user", "end")]


def test_a_replacing_message_neither_opens_nor_closes_a_group() -> None:
    surface = folded(START, STEP, user("q"), assistant("a"), call("A"), assistant("sum", 2, 2), call("B"))
    assert shown(surface) == [("assistant", "sum"), ("assistant", "a", "A", "B"), ("?", "A"), ("?", "B")]


def test_a_group_whose_message_is_replaced_is_closed() -> None:
    surface = folded(START, STEP, assistant("a"), call("A"), assistant("sum", 2, 2), call("B"), result("A"))
    assert shown(surface) == [("assistant", "sum"), ("assistant", None, "B"), ("?", "B")]


def test_a_replacing_message_ends_no_chunks() -> None:
    log = [user("q"), chunk("a"), user("sum", 0, 0), chunk("b")]
    assert shown(folded(*log)) == [("user", "sum"), ("assistant", "ab")]
    assert shown(folded(*log, assistant("ab"))) == [("user", "sum"), ("assistant", "ab")]
    assert shown(folded(*log, assistant("sum", 2, 2), user("x"))) == [
        ("assistant", "sum"),
        ("assistant", "ab"),
        ("user", "x"),
    ]


def test_an_interrupted_answer_can_be_replaced_before_and_after_a_bound() -> None:
    log = [user("q"), chunk("a"), chunk("b")]
    assert shown(folded(*log, system("sum", 0, 1))) == [("system", "sum")]
    assert shown(folded(*log, system("sum", 1, 1), chunk("c"))) == [BEFORE, ("system", "sum"), ("assistant", "c")]
    assert shown(folded(*log, START, system("sum", 1, 1), user("x"))) == [BEFORE, ("system", "sum"), ("user", "x")]


def test_a_call_whose_result_was_replaced_can_be_answered_again() -> None:
    surface = folded(*GROUP, system("sum", 4, 4), result("B", "again"))
    assert shown(surface)[2:5] == [("A", "a"), ("B", "again"), SUM]


def test_a_result_replaces_the_result_of_its_call_in_position() -> None:
    surface = folded(*GROUP, result("B", "short", 4, 4), result("B", "shorter", 7, 7))
    assert shown(surface) == [BEFORE, CALLS, ("B", "shorter"), ("A", "a"), AFTER]
    assert surface.messages()[2].source_event_seqs == (8,)


ANSWERED = [user("q"), assistant("a"), call("A"), result("A"), call("A"), result("A")]


@pytest.mark.parametrize(
    ("log", "event", "message"),
    [
        (GROUP, user("s", 0, 2), r"events\[0\]\.userMessage\.surfaceOp\.end: 2 is no node of the surface"),
        (GROUP, user("s", 2, 6), r"surfaceOp\.start: 2 is no node"),
        (GROUP, user("s", 0, 7), r"surfaceOp\.end: 7 is no node"),
        (GROUP, user("s", 6, 0), r"surfaceOp: start 6, end 0: start stands after end"),
        (GROUP, user("s", 5, 4), r"start 5, end 4: start stands after end"),
        (GROUP, result("A", 1, 4, 4), r"a tool result replaces exactly one result of callId 'A'"),
        (GROUP, result("A", 1, 4, 5), r"a tool result replaces exactly one result"),
        (GROUP, result("A", 1, 1, 1), r"a tool result replaces exactly one result"),
        ([*GROUP, user("s", 0, 1)], user("s", 0, 0), r"surfaceOp\.start: 0 is no node"),
        ([*GROUP, hide(0, 1)], user("s", 0, 0), r"surfaceOp\.start: 0 is no node"),
        ([user("q"), chunk("a"), chunk("b")], user("s", 0, 2), r"surfaceOp\.end: 2 is no node"),
        ([user("q"), chunk("a"), END], result("A", 1, 1, 1), r"a tool result replaces exactly one result"),
        ([START, STEP, chunk("")], user("s", 2, 2), r"surfaceOp\.start: 2 is no node"),
        ([call("A"), result("A"), result("A")], user("s", 0, 2), r"surfaceOp\.end: 2 is no node"),
    ],
)
def test_bounds_that_are_no_nodes_or_in_the_wrong_order_are_refused(
    log: list[Event], event: Event, message: str
) -> None:
    surface = folded(*log)
    before = surface.openai_text()
    with pytest.raises(errors.BadInput, match=message):
        surface.check_replace(event, "events[0].userMessage")
    assert surface.openai_text() == before
    surface.add(event)
    assert surface.openai_text() == before


def test_start_and_end_may_be_the_same_and_other_events_pass_the_check() -> None:
    surface = folded(*ANSWERED)
    for event in (user("s", 0, 0), result("A", 1, 5, 5), user("s"), call("A"), START):
        surface.check_replace(event)


def test_drafts_of_one_append_can_name_each_other() -> None:
    surface = Surface().add_all(numbered([user("a")])).copy()
    surface.add(user("b")).add(chunk("c"))
    surface.check_replace(user("s", 1, 2))
    surface.add(user("s", 1, 2)).add(user("d"))
    assert shown(surface) == [("user", "a"), ("user", "s"), ("user", "d")]
    assert surface.head == 5
