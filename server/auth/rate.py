"""How much one caller may ask for: operations by token buckets, sockets by a count."""

import math
from collections import Counter

from storage import errors

FORGET_AT = 10_000
"""Buckets, at which those that are full again are dropped: they differ in nothing from new ones."""

ROUNDING = 1e-9
"""Of a token: who waited as long as told finds one, whatever floats make of it."""


class RateLimited(errors.SapwoodError):
    """Too much at once; less is welcome. `details` hold `retryAfter`, in seconds, where waiting helps."""

    code = "RATE_LIMITED"


class TokenBuckets:
    """A bucket of `burst` tokens per caller, filled at `rate` tokens a second. Times are seconds of any one clock."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}
        self._forget_at = FORGET_AT

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str, now: float) -> float:
        """Takes a token. 0 where there was one, else the seconds until there is."""
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
    """Lets an operation of a caller pass. Raises RateLimited. Open access has no key and no limit."""
    if buckets is None or key is None:
        return
    wait = buckets.take(key, now)
    if wait > 0:
        seconds = math.ceil(wait)
        raise RateLimited(f"too many operations at once: try again in {seconds} s", retryAfter=seconds)


class SocketCounts:
    """How many sockets each caller has open."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()

    def enter(self, key: str) -> None:
        """Counts a socket in. Raises RateLimited where the caller has enough."""
        if self._open[key] >= self._limit:
            raise RateLimited(f"a caller holds at most {self._limit} sockets: close one first")
        self._open[key] += 1

    def leave(self, key: str) -> None:
        """Counts a socket out that was counted in."""
        self._open[key] -= 1
        if self._open[key] <= 0:
            del self._open[key]

    def __len__(self) -> int:
        return len(self._open)
