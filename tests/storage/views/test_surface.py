"""Which messages a log makes: groups of calls, results, interrupted answers."""

import pytest

from storage.events import (
    CardEvent,
    ChunkKind,
    CustomEvent,
    Event,
    InsightDelivered,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.views.message import Message, MessageToolCall, Role
from storage.views.surface import Surface
from tests.storage.views.surface_logs import (
    END,
    START,
    STEP,
    STEP_END,
    assistant,
    call,
    chunk,
    folded,
    numbered,
    result,
    seqs,
    shown,
    system,
    user,
)
from tests.storage.views.validity import check

CARD = CardEvent(card_type="Table", payload="type: Table")


def test_the_worked_example_of_sixteen_events_gives_six_messages() -> None:
    second = {"turn_id": "t2", "step_id": "s1"}
    log = [
        TurnStart(turn_id="t1"),
        StepStart(turn_id="t1", step_id="s1"),
        user("Hello"),
        assistant("Hi. What can I do?"),
        StepEnd(turn_id="t1", step_id="s1"),
        TurnEnd(turn_id="t1"),
        TurnStart(turn_id="t2"),
        StepStart(**second),
        user("What is 6 * 7?"),
        ToolCall(call_id="c", name="calculator", args='{"expression":"6 * 7"}', **second),
        ToolResult(call_id="c", result="42", **second),
        StepEnd(**second),
        StepStart(turn_id="t2", step_id="s2"),
        assistant("42."),
        StepEnd(turn_id="t2", step_id="s2"),
        TurnEnd(turn_id="t2"),
    ]
    assert len(log) == 16
    surface = folded(*log)
    check(surface)
    assert surface.messages() == [
        Message(Role.USER, "Hello", source_event_seqs=(2,)),
        Message(Role.ASSISTANT, "Hi. What can I do?", source_event_seqs=(3,)),
        Message(Role.USER, "What is 6 * 7?", source_event_seqs=(8,)),
        Message(
            Role.ASSISTANT,
            None,
            tool_calls=[MessageToolCall("c", "calculator", '{"expression":"6 * 7"}')],
            source_event_seqs=(9,),
        ),
        Message(Role.TOOL, "42", tool_call_id="c", source_event_seqs=(10,)),
        Message(Role.ASSISTANT, "42.", source_event_seqs=(13,)),
    ]
    assert (surface.head, shown(folded(*log[:6]))) == (16, shown(surface)[:2])


def test_an_empty_log_has_an_empty_surface() -> None:
    assert (Surface().messages(), Surface().openai_text()) == ([], "[]")


def test_calls_in_parallel_answered_across_a_user_text() -> None:
    surface = folded(call("A"), call("B"), result("B", 1), user("wait"), result("A", 2), result("A", 3))
    assert shown(surface) == [("assistant", None, "A", "B"), ("B", "1"), ("A", "2"), ("user", "wait")]
    assert seqs(surface) == [(0, 1), (2,), (4,), (3,)]


@pytest.mark.parametrize("between", [TurnStart(turn_id="u"), END, StepStart(step_id="s2"), system("x"), user("x")])
def test_a_bound_or_a_text_closes_the_group(between: Event) -> None:
    calls = [
        ids for message in shown(folded(START, assistant("a"), call("A"), between, call("B"))) if (ids := message[2:])
    ]
    assert calls == [("A",), ("B",)]


@pytest.mark.parametrize(
    "between", [STEP_END, chunk("x"), CARD, InsightDelivered(content="i", version=1), CustomEvent(name="n", data="1")]
)
def test_other_events_leave_the_group_open(between: Event) -> None:
    assert shown(folded(START, STEP, assistant("a"), call("A"), between, call("B")))[0] == ("assistant", "a", "A", "B")


def test_a_new_assistant_message_gets_the_next_calls() -> None:
    surface = folded(assistant("a"), call("A"), assistant("b"), call("B"))
    assert shown(surface) == [("assistant", "a", "A"), ("?", "A"), ("assistant", "b", "B"), ("?", "B")]


def test_a_result_closes_the_group_only_outside_steps() -> None:
    pairs = [call("A"), result("A"), call("B"), result("B")]
    together = [("assistant", None, "A", "B"), ("A", "ok"), ("B", "ok")]
    apart = [("assistant", None, "A"), ("A", "ok"), ("assistant", None, "B"), ("B", "ok")]
    assert shown(folded(*pairs)) == apart
    assert shown(folded(START, *pairs, END)) == apart
    assert shown(folded(START, STEP, *pairs)) == together
    assert shown(folded(START, STEP, STEP_END, *pairs)) == apart
    assert shown(folded(START, STEP, END, *pairs)) == apart


def test_a_late_result_that_names_its_step_is_inside_it() -> None:
    log = [START, STEP, call("A"), STEP_END, result("A", step_id="s"), call("B", step_id="s"), result("B")]
    assert shown(folded(*log)) == [("assistant", None, "A", "B"), ("A", "ok"), ("B", "ok")]


def test_an_id_that_the_group_has_makes_a_new_message() -> None:
    surface = folded(assistant("a"), call("A"), call("A"), call("B"), result("A", 1), result("B", 2), result("A", 3))
    assert shown(surface) == [
        ("assistant", "a", "A"),
        ("A", "1"),
        ("assistant", None, "A", "B"),
        ("B", "2"),
        ("A", "3"),
    ]


def test_reused_ids_answer_the_call_of_the_turn_first_and_then_the_newest_before() -> None:
    old = [call("A"), user("x"), call("A"), TurnStart(turn_id="u"), call("A"), user("y"), call("A")]
    answers = [result("A", n) for n in (1, 2, 3, 4, 5)]
    calls = {message[1]: shown(folded(*old, *answers)).index(message) for message in shown(folded(*old, *answers))}
    assert sorted((calls[str(n)], n) for n in (1, 2, 3, 4)) == [(1, 4), (4, 3), (6, 1), (9, 2)]
    assert "5" not in calls


def test_a_result_without_a_call_is_left_out() -> None:
    assert shown(folded(user("x"), result("A"), assistant("y"))) == [("user", "x"), ("assistant", "y")]


def test_an_unanswered_call_gets_a_supplied_result_until_one_is_logged() -> None:
    log = [call("A"), call("B"), result("B"), user("x")]
    supplied = folded(*log).messages()[2]
    assert "outcome is unknown" in (supplied.content or "")
    assert (supplied.repaired, supplied.source_event_seqs, supplied.timestamp) == (True, (), None)
    assert shown(folded(*log))[1:3] == [("B", "ok"), ("?", "A")]
    assert shown(folded(*log, result("A")))[1:3] == [("B", "ok"), ("A", "ok")]


def test_the_whole_answer_replaces_its_chunks() -> None:
    surface = folded(START, STEP, chunk("He"), chunk("llo"), assistant("Hello"), STEP_END, END)
    assert [(message.content, message.repaired) for message in surface.messages()] == [("Hello", False)]


@pytest.mark.parametrize("bound", [STEP_END, END, TurnStart(turn_id="u"), StepStart(step_id="s2"), user("x")])
def test_an_interrupted_answer_precedes_what_ended_it(bound: Event) -> None:
    log = [START, STEP, chunk("He"), chunk("hm", kind=ChunkKind.REASONING), chunk("llo"), bound, assistant("Other")]
    first, *rest = folded(*log).messages()
    assert first == Message(Role.ASSISTANT, "Hello", source_event_seqs=(2, 4), repaired=True)
    assert [message.content for message in rest] == [*(["x"] if bound.type == "user/message" else []), "Other"]
    assert folded(*log[:5]).messages() == [first]


def test_an_interrupted_answer_neither_opens_nor_closes_a_group() -> None:
    surface = folded(START, STEP, assistant("a"), call("A"), chunk("b"), STEP_END, call("B"))
    assert shown(surface) == [("assistant", "a", "A", "B"), ("?", "A"), ("?", "B"), ("assistant", "b")]
    surface = folded(START, STEP, chunk("b"), STEP_END, call("A"))
    assert shown(surface) == [("assistant", "b"), ("assistant", None, "A"), ("?", "A")]


def test_chunks_without_text_make_no_message() -> None:
    assert folded(START, chunk(""), chunk("x", kind=ChunkKind.TOOL_ARGS)).messages() == []
    assert folded(START, chunk(""), END).messages() == []


def test_a_system_message_does_not_end_chunks() -> None:
    log = [START, chunk("a"), system("s"), chunk("b")]
    assert shown(folded(*log)) == [("system", "s"), ("assistant", "ab")]
    assert shown(folded(*log, assistant("ab"))) == [("system", "s"), ("assistant", "ab")]


def test_an_empty_answer_without_calls_stays_as_it_is() -> None:
    assert shown(folded(assistant(""), user("x"), assistant(""), call("A"), result("A"))) == [
        ("assistant", ""),
        ("user", "x"),
        ("assistant", None, "A"),
        ("A", "ok"),
    ]


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ({"result": '"text"'}, "text"),
        ({"result": '{"b":1,"a":[2.0]}'}, '{"b":1,"a":[2.0]}'),
        ({"result": "null"}, ""),
        ({}, ""),
        ({"error": "bad"}, "bad"),
        ({"error": "bad", "result": '"half"'}, "bad\n\nhalf"),
        ({"error": "bad", "result": "null"}, "bad"),
        ({"result": "false"}, "false"),
    ],
)
def test_content_of_a_tool_message(given: dict[str, str], content: str) -> None:
    assert folded(call("A"), ToolResult(call_id="A", **given)).messages()[1].content == content


@pytest.mark.parametrize(
    ("args", "arguments"), [('{"a":1}', '{"a":1}'), ('"{broken"', "{broken"), ('""', ""), ("[1,2]", "[1,2]")]
)
def test_arguments_are_text_as_given_or_json(args: str, arguments: str) -> None:
    [made] = folded(call("A", args=args)).messages()[0].tool_calls or ()
    assert made.arguments == arguments


def test_an_event_is_folded_once_and_in_order() -> None:
    log = numbered([user("a"), user("b")])
    with pytest.raises(ValueError, match="event 0 cannot be folded onto a surface of 2 events"):
        Surface().add_all(log).add(log[0])


def test_a_copy_is_independent() -> None:
    surface = folded(assistant("a"), call("A"))
    other = surface.copy()
    surface.add(result("A", 1))
    other.add(call("B")).add(result("B", 2))
    other.add(system("s", 0, 0))
    assert shown(surface) == [("assistant", "a", "A"), ("A", "1")]
    assert shown(other) == [("system", "s")]
    assert (surface.head, other.head) == (3, 5)


def test_a_copy_knows_the_steps_that_are_open() -> None:
    surface = folded(START, STEP, call("A"))
    for state in (surface.copy(), surface):
        state.add(result("A")).add(call("B"))
        assert shown(state) == [("assistant", None, "A", "B"), ("A", "ok"), ("?", "B")]
