"""Timers of connections whose peer is too slow."""

import asyncio
from collections.abc import Callable

MIN_PROGRESS = 4096
"""Bytes of a request's body that have to arrive in one period."""


class StallTimer:
    """Calls `stalled` when data wait to be sent and the peer has read none of them for so many seconds."""

    def __init__(self, transport: asyncio.Transport, seconds: float, stalled: Callable[[], None]) -> None:
        self._transport = transport
        self._seconds = seconds
        self._stalled = stalled
        self._unsent = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Data wait: measures from now."""
        self.stop()
        self._unsent = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)

    def stop(self) -> None:
        """No data wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() < self._unsent:
            self.start()
        else:
            self._timer = None
            self._stalled()


class RequestTimer:
    """Calls `late` when a request's headers, or the next `MIN_PROGRESS` bytes of its body, take too long to arrive.

    Most requests arrive at once: they never start it, and stopping it then costs nothing.
    """

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        self._seconds = seconds
        self._late = late
        self._received: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait_for_head(self) -> None:
        """The rest of the headers is missing; measures from the first call."""
        if self._timer is None or self._received is not None:
            self._received = None
            self._start()

    def wait_for_body(self, received: int) -> None:
        """A part of the body is missing; counts the bytes that have just arrived."""
        if self._timer is None or self._received is None:
            self._received = 0
            self._start()
        else:
            self._received += received

    def stop(self) -> None:
        """Nothing is missing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._received is not None and self._received >= MIN_PROGRESS:
            self.wait_for_body(0)
        else:
            self._late()
