"""Converts times of logs to ms since 1970. What is not a valid time gives None."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from storage.text import EPOCH

_LONGEST = 64
"""Maximum length in characters of an instant, however many digits its seconds have."""
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999


def iso(value: object) -> int | None:
    """Convert an ISO 8601 instant; without a zone it is taken as UTC."""
    return _iso(value) if isinstance(value, str) and len(value) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _iso(value: str) -> int | None:
    """Cached, as records of one moment and the parts of one record share their times."""
    try:
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return _within((parsed - EPOCH) // timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return None


def has_zone(value: object) -> bool:
    """Whether an ISO 8601 instant names its zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def seconds(value: object) -> int | None:
    """Convert seconds since 1970; logs that write 0 mean no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    try:
        return _within(round(value * 1000))
    except (ValueError, OverflowError):
        return None


def milliseconds(value: object) -> int | None:
    """Convert milliseconds since 1970; logs that write 0 mean no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return None
    try:
        return _within(round(value))
    except (ValueError, OverflowError):
        return None


def _within(value: int) -> int | None:
    return value if _FIRST <= value <= _LAST else None
