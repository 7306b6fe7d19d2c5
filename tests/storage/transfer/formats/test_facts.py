"""Metadata, times and measures of a log are stored as far as possible; the rest is counted."""

import json

import pytest

from storage.session import MAX_SLOT_BYTES
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.foreign import ImportWarnings


def test_metadata_keeps_order_and_leaves_out_empty_fields() -> None:
    warnings = ImportWarnings()
    given: dict[str, object] = {"b": 1, "none": None, "empty": {}, "zero": 0, "false": False, "a": ["\ud800"]}
    assert facts.metadata(given, "log", warnings) == '{"b":1,"zero":0,"false":false,"a":["\ufffd"]}'
    assert warnings.messages() == []
    assert facts.metadata({"none": None}, "log", warnings) is None


@pytest.mark.parametrize("value", [2**70, float("nan"), [float("inf")]])
def test_a_field_that_cannot_be_stored_is_counted(value: object) -> None:
    warnings = ImportWarnings()
    assert facts.metadata({"a": 1, "b": value}, "log", warnings) == '{"a":1}'
    assert warnings.messages() == ["1 session lost metadata that cannot be stored: b"]


def test_fields_beyond_what_a_session_takes_are_counted() -> None:
    warnings = ImportWarnings()
    kept = facts.metadata({"a": "é" * 300_000, "b": "é" * 300_000, "c": 1}, "log", warnings)
    assert json.loads(kept or "").keys() == {"a", "c"}
    assert warnings.messages() == ["1 session lost metadata beyond 1 MiB: b"]


def test_metadata_can_be_as_large_as_a_session_allows() -> None:
    fits = "x" * (MAX_SLOT_BYTES - len('{"a":""}'))
    kept = facts.metadata({"a": fits}, "log", ImportWarnings())
    assert len(kept or "") == MAX_SLOT_BYTES
    assert facts.metadata({"a": fits + "x"}, "log", ImportWarnings()) is None


@pytest.mark.parametrize("value", [None, True, "1", -1, float("nan"), float("inf"), 10**400, []])
def test_an_invalid_measure_is_none(value: object) -> None:
    assert facts.amount(value) is None
    assert facts.total(value) is None
    assert facts.total(value, 2) == 2


def test_measures_are_scaled_and_rounded() -> None:
    assert facts.amount(0.25, 1000) == 250
    assert facts.total(1, 2, None) == 3
    assert facts.whole(0.1 + 0.2) == 0.3
    assert facts.whole(None) is None
