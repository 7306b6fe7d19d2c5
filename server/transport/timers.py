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
    """Calls `late` when a request's headers, or the next `MIN_PROGRESS` bytes of its body, take too long to arrive."""

    def __init__(self, seconds: float, late: Callable[[], None]) -> None:
        self._seconds = seconds
        self._late = late
        self._received: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait_for_head(self) -> None:
        """The headers have to arrive from now on."""
        self._received = None
        self._start()

    def wait_for_body(self) -> None:
        """The body has to arrive from now on."""
        self._received = 0
        self._start()

    def received(self, size: int) -> None:
        """Counts bytes of the body."""
        if self._received is not None:
            self._received += size

    def stop(self) -> None:
        """The request is complete."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)

    def _check(self) -> None:
        if self._received is not None and self._received >= MIN_PROGRESS:
            self.wait_for_body()
        else:
            self._timer = None
            self._late()
