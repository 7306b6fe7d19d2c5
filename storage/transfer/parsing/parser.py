"""The consuming side of a parsing process."""

import asyncio
import contextlib
import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from typing_extensions import override

from storage.transfer.formats.shared.foreign import ImportWarnings, Step
from storage.transfer.parsing.document import StepBatch
from storage.transfer.parsing.frames import (
    Acknowledgement,
    Cancellation,
    EndFrame,
    FailureFrame,
    Frame,
    ParseRequest,
    StartFrame,
    StepsFrame,
    dumps,
    loads,
)
from storage.transfer.parsing.serving import AHEAD_WEIGHT, serve
from storage.transfer.parsing.source import DocumentSource

START = "fork" if sys.platform == "linux" else "spawn"
"""How the process starts. Forking is faster and shares memory, but is not safe on all systems."""

Inspect = Callable[[Sequence[Step]], Awaitable[Exception | None]]


class ParserLost(Exception):
    """The parsing process ended before it had sent everything: it was killed or ran out of memory."""


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delays an interrupt until afterwards. One that arrived in a hook that Python runs around a fork would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Parser:
    """A process that parses documents in the order of the requests, ahead of the consumer of their steps.

    Create it before there are other threads, use it from one event loop, and close it; it is also a context manager.
    `is_lost`: the process has ended, so the parser can't be used any more.
    """

    def __init__(self, start: str = START) -> None:
        context = multiprocessing.get_context(start)
        self._connection, theirs = context.Pipe()
        inherited = self._connection if start == "fork" else None
        process = context.Process  # type: ignore[attr-defined]  # which each context has, though their base does not
        self._process = process(target=serve, args=(theirs, inherited), daemon=True)
        with _interrupts_held() if start == "fork" else contextlib.nullcontext():
            self._process.start()
        theirs.close()
        self._thread: threading.Thread | None = None
        self._arriving: _IncomingDocument | None = None
        self._arrived: asyncio.Queue[_IncomingDocument | None] = asyncio.Queue()
        self._current: _IncomingDocument | None = None
        self._requested: deque[ParseRequest] = deque()
        self._count = 0
        self._unacknowledged = 0
        self._inspect: Inspect | None = None
        self._inspections: set[asyncio.Task[None]] = set()
        self.is_lost = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return int(self._process.pid)

    def close(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.join()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def request(self, documents: Sequence[ParseRequest], inspect: Inspect | None = None) -> None:
        """Has these documents parsed after those requested before.

        `inspect` is called with the first steps of a document that may be deferred and that nobody consumes yet. If it
        returns an error, parsing of that document ends, and its consumer gets the error.
        """
        self._inspect = inspect
        self._requested += documents
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._receive, args=(loop,), name="sapwood-parser", daemon=True)
            self._thread.start()
        self._send(documents)

    async def next(self) -> "_IncomingDocument":
        """The next document. Drops what is left of the one before. Raises ParserLost."""
        if self._current is not None:
            self._drop(self._current)
        self._current = await self._arrived.get()
        if self._current is None:
            raise ParserLost
        return self._current

    def acknowledge(self, weight: int) -> None:
        """Lets the process read on by as many characters as were consumed. Small amounts are sent together."""
        self._unacknowledged += weight
        if self._unacknowledged > AHEAD_WEIGHT // 4:
            self._send(Acknowledgement(self._unacknowledged))
            self._unacknowledged = 0

    def _drop(self, document: "_IncomingDocument") -> None:
        if not document.is_complete:
            self._send(Cancellation(document.number))
        document.is_dropped = True
        while not document.frames.empty():
            self._put(document, document.frames.get_nowait())

    def _put(self, document: "_IncomingDocument", frame: Frame | None) -> None:
        if not document.is_dropped:
            document.frames.put_nowait(frame)
        elif isinstance(frame, StepsFrame):
            self.acknowledge(frame.weight)

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # the process is gone, as the receiving thread notices too
            self._connection.send_bytes(dumps(message))

    def _receive(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            try:
                while True:
                    loop.call_soon_threadsafe(self._on_frame, loads(self._connection.recv_bytes()))
            except (EOFError, OSError):
                pass  # the process is gone
            finally:
                loop.call_soon_threadsafe(self._lose)

    def _on_frame(self, frame: Frame) -> None:
        document = self._arriving
        if document is None:
            document = self._arriving = _IncomingDocument(self._count, self._requested.popleft())
            self._count += 1
            self._arrived.put_nowait(document)
        if isinstance(frame, EndFrame | FailureFrame):
            document.is_complete = True
            self._arriving = None
        if isinstance(frame, StepsFrame) and document.may_defer:
            document.may_defer = False
            if self._inspect is not None and document is not self._current:
                task = asyncio.create_task(self._run_inspection(self._inspect, document, frame.steps))
                self._inspections.add(task)
                task.add_done_callback(self._inspections.discard)
        self._put(document, frame)

    async def _run_inspection(self, inspect: Inspect, document: "_IncomingDocument", steps: Sequence[Step]) -> None:
        error = await inspect(steps)
        if error is not None and document is not self._current:
            self._drop(document)
            document.error = error

    def _lose(self) -> None:
        self.is_lost = True
        if self._arriving is not None:
            self._put(self._arriving, None)
        self._arrived.put_nowait(None)


class _IncomingDocument:
    """A document whose frames are arriving. None is the last one if the process is lost."""

    def __init__(self, number: int, request: ParseRequest) -> None:
        self.number = number
        self.may_defer = request.may_defer
        self.frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self.is_complete = self.is_dropped = False
        self.error: Exception | None = None

    async def frame(self) -> Frame:
        if self.error is not None:
            raise self.error
        frame = await self.frames.get()
        if frame is None:
            raise ParserLost
        if isinstance(frame, FailureFrame):
            raise frame.error
        return frame


class ParserSource(DocumentSource):
    """The next document of a parser. `on_read` is called with the number of bytes read for each batch."""

    def __init__(self, parser: Parser, on_read: Callable[[int], None]) -> None:
        self.warnings = ImportWarnings()
        self._parser = parser
        self._on_read = on_read

    @override
    async def begin(self) -> str:
        """As in the base class. Also raises OSError, ParserLost and the error that an inspection returned."""
        self._document = await self._parser.next()
        frame = await self._document.frame()
        assert isinstance(frame, StartFrame)
        return frame.format

    @override
    async def batches(self) -> AsyncGenerator[StepBatch, None]:
        """As in the base class. Also raises OSError and ParserLost."""
        while not isinstance(frame := await self._document.frame(), EndFrame):
            assert isinstance(frame, StepsFrame)
            weight = frame.weight
            self._on_read(frame.read)
            try:
                yield StepBatch(frame.steps, weight)
            finally:
                self._parser.acknowledge(weight)
            del frame  # frees what may be much memory before the next one arrives
        self.warnings = frame.warnings
