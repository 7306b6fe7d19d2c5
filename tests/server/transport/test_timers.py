"""When a request counts as late, by a clock that the test moves."""

import asyncio
from collections.abc import Callable

import pytest

from server.transport.timers import MIN_PROGRESS, RequestTimer


class Clock:
    """Stands for the event loop's timers: the one that waits runs when the test says so."""

    def __init__(self) -> None:
        self.waiting: Callable[[], None] | None = None
        self.started = 0

    def call_later(self, seconds: float, callback: Callable[[], None]) -> "Clock":
        self.waiting = callback
        self.started += 1
        return self

    def cancel(self) -> None:
        self.waiting = None

    def pass_period(self) -> None:
        callback, self.waiting = self.waiting, None
        assert callback is not None
        callback()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    return clock


def test_headers_have_one_period_however_often_parts_arrive(clock: Clock) -> None:
    late: list[str] = []
    timer = RequestTimer(1, lambda: late.append("late"))
    for _ in range(100):
        timer.wait_for_head()
    assert clock.started == 1
    clock.pass_period()
    assert late == ["late"]


def test_a_body_has_a_period_for_each_further_4_kib(clock: Clock) -> None:
    late: list[str] = []
    timer = RequestTimer(1, lambda: late.append("late"))
    timer.wait_for_head()
    timer.wait_for_body(10 * MIN_PROGRESS)  # what came with the headers does not count
    timer.wait_for_body(MIN_PROGRESS)
    clock.pass_period()
    for _ in range(3):
        timer.wait_for_body(MIN_PROGRESS // 2)
        timer.wait_for_body(MIN_PROGRESS // 2)
        clock.pass_period()
    assert late == []
    timer.wait_for_body(MIN_PROGRESS - 1)
    clock.pass_period()
    assert late == ["late"]


def test_a_request_that_is_complete_is_not_late(clock: Clock) -> None:
    timer = RequestTimer(1, lambda: pytest.fail("it was complete"))
    timer.stop()
    timer.wait_for_head()
    timer.stop()
    assert clock.waiting is None
    timer.wait_for_body(1)
    timer.stop()
    assert clock.waiting is None
