"""Instants, as callers may write them."""

import pytest

from storage import errors, text

AT = 1_796_066_467_250


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-30T19:21:07.250Z",
        "2026-11-30t19:21:07.25z",
        "2026-11-30 19:21:07.250Z",
        "2026-11-30 19:21:07.250+00:00",
        "2026-11-30T20:51:07.250999+01:30",
        "2026-11-30T19:21:07.250-00:00",
    ],
)
def test_an_instant_may_be_spelled_as_in_rfc_3339(value: str) -> None:
    assert text.instant(value, "at") == AT


@pytest.mark.parametrize(
    ("value", "next_second"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2016-12-31 23:59:60.5z", "2017-01-01T00:00:00.5Z"),
        ("2017-01-01T05:29:60+05:30", "2017-01-01T00:00:00Z"),
    ],
)
def test_a_leap_second_is_the_next_one(value: str, next_second: str) -> None:
    assert text.instant(value, "at") == text.instant(next_second, "at")


@pytest.mark.parametrize(
    "value", ["", "z", "now", "2026-11-30", "2026-11-30T19:21:07", "2026-11-30T19:60:07Z", "9999-12-31T23:59:60Z", "5"]
)
def test_other_texts_are_refused(value: str) -> None:
    with pytest.raises(errors.BadInput, match="at: "):
        text.instant(value, "at")
