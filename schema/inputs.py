"""Optional arguments: UNSET (left out) is not null."""

from collections.abc import Mapping
from typing import Any, TypeVar

from strawberry import UNSET

T = TypeVar("T")


def given(value: T | None) -> T | None:
    """The value, or None if it was left out."""
    return None if value is UNSET else value


def only_given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that were not left out; null counts as given."""
    return {name: value for name, value in values.items() if value is not UNSET}
