"""The side of a parsing process on which its steps are taken."""

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

from storage.transfer.formats.shared.foreign import ImportWarnings, Step
from storage.transfer.parsing.document import Part
from storage.transfer.parsing.frames import Begun, Ended, Failed, Frame, Passed, Taken, Told, Wanted, dumps, loads
from storage.transfer.parsing.serving import AHEAD_WEIGHT, serve

START = "fork" if sys.platform == "linux" else "spawn"
"""How the process starts: a forked one is there at once and shares memory, but is not safe on all systems."""

Look = Callable[[Sequence[Step]], Awaitable[Exception | None]]


class ParserLost(Exception):
    """The parsing process is gone before it has told all: it was killed, or had no memory."""


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Has an interrupt come after this: one that came into what Python runs beside a fork would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Parser:
    """A process that parses documents, in the order in which they are wanted, ahead of whoever takes their steps.

    To be made before there are other threads, used from one event loop, and closed; also a context manager.
    `is_lost`: it can't be used any more.
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
        self._arriving: _Arriving | None = None
        self._arrived: asyncio.Queue[_Arriving | None] = asyncio.Queue()
        self._taken: _Arriving | None = None
        self._wanted: deque[Wanted] = deque()
        self._count = 0
        self._untold = 0
        self._look: Look | None = None
        self._looks: set[asyncio.Task[None]] = set()
        self.is_lost = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process."""
        return int(self._process.pid)

    def close(self) -> None:
        """Ends the process, whatever it is at."""
        self._process.kill()
        self._process.join()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def want(self, documents: Sequence[Wanted], look: Look | None = None) -> None:
        """Has these documents parsed after those that were wanted before.

        `look` sees the first steps of a document that waits and is still ahead: where it gives an error, parsing that
        document ends, and who takes it gets the error.
        """
        self._look = look
        self._wanted += documents
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._receive, args=(loop,), name="sapwood-parser", daemon=True)
            self._thread.start()
        self._send(documents)

    async def next(self) -> "_Arriving":
        """The next document; what is left of the one before is passed over. Raises ParserLost."""
        if self._taken is not None:
            self._drop(self._taken)
        self._taken = await self._arrived.get()
        if self._taken is None:
            raise ParserLost
        return self._taken

    def go_on(self, weight: int) -> None:
        """Lets the process go on by so many characters, which are taken, once they are worth a message."""
        self._untold += weight
        if self._untold > AHEAD_WEIGHT // 4:
            self._send(Taken(self._untold))
            self._untold = 0

    def _drop(self, document: "_Arriving") -> None:
        if not document.is_complete:
            self._send(Passed(document.number))
        document.is_dropped = True
        while not document.frames.empty():
            self._put(document, document.frames.get_nowait())

    def _put(self, document: "_Arriving", frame: Frame | None) -> None:
        if not document.is_dropped:
            document.frames.put_nowait(frame)
        elif isinstance(frame, Told):
            self.go_on(frame.weight)

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # of a process that is gone, as is heard from the receiving thread
            self._connection.send_bytes(dumps(message))

    def _receive(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # of a loop that is closed
            try:
                while True:
                    loop.call_soon_threadsafe(self._hear, loads(self._connection.recv_bytes()))
            except (EOFError, OSError):
                pass  # the process is gone
            finally:
                loop.call_soon_threadsafe(self._lose)

    def _hear(self, frame: Frame) -> None:
        document = self._arriving
        if document is None:
            document = self._arriving = _Arriving(self._count, self._wanted.popleft())
            self._count += 1
            self._arrived.put_nowait(document)
        if isinstance(frame, Ended | Failed):
            document.is_complete = True
            self._arriving = None
        if isinstance(frame, Told) and document.may_wait:
            document.may_wait = False
            if self._look is not None and document is not self._taken:
                task = asyncio.create_task(self._see(self._look, document, frame.steps))
                self._looks.add(task)
                task.add_done_callback(self._looks.discard)
        self._put(document, frame)

    async def _see(self, look: Look, document: "_Arriving", steps: Sequence[Step]) -> None:
        error = await look(steps)
        if error is not None and document is not self._taken:
            self._drop(document)
            document.error = error

    def _lose(self) -> None:
        self.is_lost = True
        if self._arriving is not None:
            self._put(self._arriving, None)
        self._arrived.put_nowait(None)


class _Arriving:
    """A document of which frames come in; None is the last one if the process is lost."""

    def __init__(self, number: int, wanted: Wanted) -> None:
        self.number = number
        self.may_wait = wanted.waits
        self.frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self.is_complete = self.is_dropped = False
        self.error: Exception | None = None

    async def frame(self) -> Frame:
        if self.error is not None:
            raise self.error
        frame = await self.frames.get()
        if frame is None:
            raise ParserLost
        if isinstance(frame, Failed):
            raise frame.error
        return frame


class Parsed:
    """The next document of a parser. `losses` are complete when all its parts are told; `on_read` hears of each how
    many more bytes were read."""

    def __init__(self, parser: Parser, on_read: Callable[[int], None]) -> None:
        self.losses = ImportWarnings()
        self._parser = parser
        self._on_read = on_read

    async def begin(self) -> str:
        """The name of its format. Raises BadInput, OSError, ParserLost and what looking at it ahead has given."""
        self._document = await self._parser.next()
        frame = await self._document.frame()
        assert isinstance(frame, Begun)
        return frame.format

    async def parts(self) -> AsyncGenerator[Part, None]:
        """Its steps, in order. Raises BadInput, OSError and ParserLost."""
        while not isinstance(frame := await self._document.frame(), Ended):
            assert isinstance(frame, Told)
            weight = frame.weight
            self._on_read(frame.read)
            try:
                yield Part(frame.steps, weight)
            finally:
                self._parser.go_on(weight)
            del frame  # which may be a large part of the memory, until the next one is there
        self.losses = frame.losses
