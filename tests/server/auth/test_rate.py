"""Token buckets and socket counts, with a clock of the test's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.auth.rate import FORGET_AT, RateLimited, SocketCounts, TokenBuckets, admit


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    buckets = TokenBuckets(rate=2, burst=3)
    assert [buckets.take("a", 10) for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b", 10) == 0
    assert buckets.take("a", 10.25) == 0.25
    assert buckets.take("a", 10.5) == 0
    assert buckets.take("a", 10.5) == 0.5
    assert [buckets.take("a", 1_000) for _ in range(4)] == [0, 0, 0, 0.5]


@given(
    rate=st.integers(1, 50),
    burst=st.integers(1, 20),
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=200),
)
def test_no_period_sees_more_than_burst_and_rate_allow(rate: int, burst: int, gaps: list[float]) -> None:
    """A caller that waits for the reported time is let in."""
    buckets = TokenBuckets(rate, burst)
    now, passed = 0.0, []
    for gap in gaps:
        now += gap
        if (wait := buckets.take("a", now)) == 0:
            passed.append(now)
        else:
            assert 0 < wait <= 1 / rate + 1e-6
            now += wait
            assert buckets.take("a", now) == 0
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + (passed[last] - passed[first]) * rate + 1e-3


def test_a_clock_that_runs_backwards_adds_no_tokens() -> None:
    buckets = TokenBuckets(rate=1, burst=1)
    assert buckets.take("a", 100) == 0
    assert buckets.take("a", 50) == 1


def test_full_buckets_are_dropped() -> None:
    buckets = TokenBuckets(rate=1, burst=5)
    for number in range(5 * FORGET_AT):
        buckets.take(f"caller-{number}", number / 1_000)
    assert len(buckets) <= FORGET_AT + 1


def test_a_caller_beyond_its_rate_gets_the_seconds_to_wait() -> None:
    buckets = TokenBuckets(rate=0.1, burst=1)
    admit(buckets, "a", 0)
    with pytest.raises(RateLimited) as refused:
        admit(buckets, "a", 0)
    assert (refused.value.code, refused.value.details) == ("RATE_LIMITED", {"retryAfter": 10})
    admit(buckets, None, 0)
    admit(None, "a", 0)


def test_sockets_are_counted_by_caller() -> None:
    counts = SocketCounts(2)
    for key in ("a", "a", "b"):
        counts.enter(key)
    with pytest.raises(RateLimited, match="may have 2 sockets open"):
        counts.enter("a")
    counts.leave("a")
    counts.enter("a")
    for key in ("a", "a", "b"):
        counts.leave(key)
    assert len(counts) == 0
