"""Limits per caller: a rate of operations by token buckets, and a number of sockets."""

import math
from collections import Counter

from storage import errors

FORGET_AT = 10_000
"""Number of buckets at which full ones are dropped. A full bucket equals a new one."""

ROUNDING = 1e-9
"""Part of a token that may be missing: a caller that waits for the reported time must find one despite rounding."""


class RateLimited(errors.SapwoodError):
    """A caller does too much at once. `details` hold `retryAfter`, in seconds, where waiting helps."""

    code = "RATE_LIMITED"


class TokenBuckets:
    """A bucket of `burst` tokens per caller, filled at `rate` tokens per second. Times are seconds of any one clock."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}
        self._forget_at = FORGET_AT

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str, now: float) -> float:
        """Takes a token and returns 0, or returns the seconds until there is one."""
        tokens, since = self._buckets.get(key, (float(self._burst), now))
        tokens = self._filled(tokens, since, now)
        wait = 0.0 if tokens >= 1 - ROUNDING else (1 - tokens) / self._rate
        self._buckets[key] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > self._forget_at:
            self._forget_full(now)
            self._forget_at = max(FORGET_AT, 2 * len(self._buckets))
        return wait

    def _filled(self, tokens: float, since: float, now: float) -> float:
        return min(float(self._burst), tokens + max(0.0, now - since) * self._rate)

    def _forget_full(self, now: float) -> None:
        full = [
            key for key, (tokens, since) in self._buckets.items() if self._filled(tokens, since, now) >= self._burst
        ]
        for key in full:
            del self._buckets[key]


def admit(buckets: TokenBuckets | None, key: str | None, now: float) -> None:
    """Counts an operation of a caller. Raises RateLimited. Open access has no key, and so no limit."""
    if buckets is None or key is None:
        return
    wait = buckets.take(key, now)
    if wait > 0:
        seconds = math.ceil(wait)
        raise RateLimited(f"too many operations: try again in {seconds} s", retryAfter=seconds)


class SocketCounts:
    """The number of sockets that each caller has open."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()

    def enter(self, key: str) -> None:
        """Counts a new socket. Raises RateLimited if the caller has as many as it may."""
        if self._open[key] >= self._limit:
            raise RateLimited(f"a caller may have {self._limit} sockets open: close one first")
        self._open[key] += 1

    def leave(self, key: str) -> None:
        """Uncounts a socket that `enter` counted."""
        self._open[key] -= 1
        if self._open[key] <= 0:
            del self._open[key]

    def __len__(self) -> int:
        return len(self._open)
