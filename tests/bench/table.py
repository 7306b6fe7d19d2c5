"""Rows of results, and ratios of two things measured alternately."""

import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

ROUNDS = 5

Measure = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was measured, its ratio, and the bound, a minimum if `at_least` and a maximum otherwise."""

    what: str
    ratio: float
    bound: float
    at_least: bool
    detail: str

    def __str__(self) -> str:
        reached = self.ratio >= self.bound if self.at_least else self.ratio <= self.bound
        sign = ">=" if self.at_least else "<="
        verdict = "reached" if reached else "MISSED"
        return f"{self.what:<74} {self.ratio:>8.2f}  {sign} {self.bound:<5g} {verdict:<8} {self.detail}"


async def in_turn(first: Measure, second: Measure, rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Measures both alternately, after one pair to warm up.

    Returns the median of first / second over the pairs, then the median of each.
    """
    pairs = []
    for turn in range(rounds + 1):
        pair = (await first(), await second())
        if turn:
            pairs.append(pair)
    return (
        statistics.median(one / other for one, other in pairs),
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
    )


def report(row: Row) -> None:
    """Prints a row."""
    print(row, flush=True)


def note(text: str) -> None:
    """Prints progress to stderr."""
    print(text, file=sys.stderr, flush=True)
