"""Tool invocations of the audit view, and which result each one gets."""

import json
from typing import Any

import pytest

from storage.events import Event, Retrieval, StepStart, TurnEnd, TurnStart
from storage.views.run_tools import ToolInvocation
from storage.views.runs import runs
from tests.storage.views.test_runs import call, log, one, outputs, result


def invocation(*drafts: Event) -> ToolInvocation:
    [found] = one(TurnStart(turn_id="t"), *drafts).tool_invocations
    return found


def test_an_invocation_belongs_to_the_step_named_else_to_the_one_open_else_to_none() -> None:
    run = one(
        TurnStart(turn_id="t"),
        call("before"),
        StepStart(step_id="1"),
        call("inside"),
        StepStart(step_id="2"),
        call("two are open"),
        call("named", step_id="1"),
    )
    assert [(each.call_id, each.step_id) for each in run.tool_invocations] == [
        ("before", None),
        ("inside", "1"),
        ("two are open", None),
        ("named", "1"),
    ]
    assert [len(step.tool_invocations) for step in run.steps] == [2, 0]


def test_an_invocation_without_a_result() -> None:
    found = invocation(call(name="search"))
    assert (found.tool_name, found.input_params, found.success, found.ended_at) == ("search", '{"q":1}', None, None)
    assert (found.output_preview, found.output_length, found.truncated) == (None, None, False)


@pytest.mark.parametrize(
    ("given", "preview", "length", "truncated"),
    [
        ({"result": '"text"'}, "text", 4, False),
        ({"result": '{"a":[1,2]}'}, '{"a":[1,2]}', 11, False),
        ({"result": "null"}, None, None, False),
        ({"result": None, "error": "e"}, None, None, False),
        ({"result": json.dumps("\U0001f600" * 500)}, "\U0001f600" * 500, 500, False),
        ({"result": json.dumps("\U0001f600" * 501)}, "\U0001f600" * 500, 501, False),
        ({"result": json.dumps("x" * 501), "output_length": 501}, "x" * 500, 501, False),
        ({"result": json.dumps("x" * 501), "output_length": 502}, "x" * 500, 502, True),
        ({"result": None, "error": "e", "output_length": 7}, None, 7, True),
        ({"result": '"cut"', "truncated": True}, "cut", 3, True),
        ({"result": '"cut"', "truncated": True, "output_length": 9_000}, "cut", 9_000, True),
        ({"result": '"zero\\u0000byte"'}, "zero\0byte", 9, False),
    ],
)
def test_an_output_has_a_preview_in_code_points_and_the_length_of_the_whole(
    given: dict[str, Any], preview: str | None, length: int | None, truncated: bool
) -> None:
    found = invocation(call(), result(**given))
    assert (found.output_preview, found.output_length, found.truncated) == (preview, length, truncated)


@pytest.mark.parametrize(("error", "success"), [(None, True), ("", True), ("no such file", False)])
def test_a_result_with_an_error_is_no_success(error: str | None, success: bool) -> None:
    found = invocation(call(), result(error=error))
    assert (found.success, found.error) == (success, error or None)


def test_a_duration_comes_from_the_result_else_from_the_clock() -> None:
    assert invocation(call(), result(duration_ms=0.25)).duration_ms == 0.25
    assert invocation(call(), result()).duration_ms == 1_000


def test_retrieval_has_layer_counts_and_details() -> None:
    retrieval = Retrieval(layer="L0+L1", l0_match_count=12, l1_match_count=3, details='{"ids":[1]}')
    found = invocation(call(), result(retrieval=retrieval))
    assert (found.retrieval_layer, found.l0_match_count, found.l1_match_count) == ("L0+L1", 12, 3)
    assert found.retrieval_details == '{"ids":[1]}'


def test_a_late_result_belongs_to_the_call_that_it_answers() -> None:
    first, second = runs(
        log(
            TurnStart(turn_id="1"),
            call("slow"),
            TurnEnd(turn_id="1"),
            TurnStart(turn_id="2"),
            result("slow"),
        ),
        "s",
    )
    assert outputs(first.tool_invocations) == [("slow", "found")]
    assert first.tool_invocations[0].duration_ms == 3_000
    assert second.tool_invocations == ()


def test_a_reused_call_id_is_answered_in_the_current_turn_else_in_the_newest_before() -> None:
    first, second, third = runs(
        log(
            TurnStart(turn_id="1"),
            call(),
            TurnEnd(turn_id="1"),
            TurnStart(turn_id="2"),
            call(),
            call(),
            result(result='"a"'),
            TurnEnd(turn_id="2"),
            TurnStart(turn_id="3"),
            call(),
            result(result='"b"'),
            result(result='"c"'),
            result(result='"d"'),
            result(result='"for no call"'),
        ),
        "s",
    )
    assert outputs(third.tool_invocations) == [("c", "b")]
    assert outputs(second.tool_invocations) == [("c", "a"), ("c", "c")]
    assert outputs(first.tool_invocations) == [("c", "d")]


def test_a_result_for_an_answered_call_changes_nothing() -> None:
    assert invocation(call(), result(), result(result='"again"')).output_preview == "found"


def test_the_result_of_a_call_outside_any_turn_belongs_to_no_run() -> None:
    first, second = runs(
        log(TurnStart(turn_id="1"), call(), TurnEnd(turn_id="1"), call(), TurnStart(turn_id="2"), result()), "s"
    )
    assert outputs(first.tool_invocations) == [("c", None)]
    assert second.tool_invocations == ()
