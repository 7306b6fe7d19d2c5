"""Model inputs in the audit view."""

import json

import pytest

from storage.events import StepStart, TurnStart
from tests.storage.views.test_runs import one


def test_a_model_input_keeps_role_and_truncated_content_of_each_message() -> None:
    messages = [
        {"role": "system", "content": "s" * 600},
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
        {"role": "tool", "content": {"a": 1}, "tool_call_id": "c"},
        "bare",
    ]
    shown = [
        {"role": "system", "content": "s" * 500},
        {"role": "user", "content": "look\n[image_url]"},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": '{"a":1}'},
        {"role": None, "content": "bare"},
    ]
    assert model_input_shown(messages) == shown
    assert model_input_shown({"model": "m", "messages": messages}) == shown
    assert model_input_shown({"system": "be brief", "messages": [{"role": "user", "content": "hi"}]}) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (None, None),
        ("a prompt", [{"role": None, "content": "a prompt"}]),
        ({"prompt": "p" * 600}, [{"role": None, "content": '{"prompt":"' + "p" * 489}]),
        ([], []),
    ],
)
def test_a_model_input_of_another_shape_is_shown_in_short(given: object, shown: object) -> None:
    assert model_input_shown(given) == shown


def model_input_shown(given: object) -> object:
    [step] = one(TurnStart(turn_id="t"), StepStart(step_id="1", model_input=json.dumps(given))).steps
    return None if step.model_input is None else json.loads(step.model_input)


def test_a_model_input_nested_as_deep_as_the_log_takes_is_shown_too() -> None:
    deep = "[" * 500 + "]" * 500
    [step] = one(TurnStart(turn_id="t"), StepStart(step_id="1", model_input=deep)).steps
    assert step.model_input is not None
