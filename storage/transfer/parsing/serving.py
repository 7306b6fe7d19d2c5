"""The parsing process: parses the documents requested, one after the other, until the other side is gone."""

import contextlib
import io
import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from multiprocessing.connection import Connection
from pathlib import Path

from storage import errors
from storage.transfer.formats.shared.foreign import Step
from storage.transfer.parsing.document import Document
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
from storage.transfer.parsing.memory import return_large_blocks

BATCH_WEIGHT = 128 * 1024
"""About how many characters of events go into one frame."""
AHEAD_WEIGHT = 4 * 1024 * 1024
"""About how many characters of events may be sent that were not acknowledged yet. A single frame may be larger."""
BUFFER_BYTES = 1024 * 1024
"""How much of a file is read at once."""


class _Disconnected(Exception):
    """The other side has closed the connection."""


def serve(connection: Connection, inherited: Connection | None) -> None:
    """Runs until the other side closes the connection. `inherited` is the other side's end, which a fork has too."""
    if inherited is not None:
        inherited.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes; the other one decides what to do
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    return_large_blocks()
    with contextlib.suppress(_Disconnected):
        _Worker(connection).run()


def _exit_with_parent() -> None:
    """Exits when the parent process is gone, even while parsing a document that yields no steps."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Worker:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._requested: deque[ParseRequest] = deque()
        self._number = 0
        self._cancelled = -1
        self._ahead = 0

    def run(self) -> None:
        while True:
            while not self._requested:
                self._receive()
            try:
                self._parse(self._requested.popleft())
            except _Disconnected:
                raise
            except (errors.SapwoodError, OSError) as error:
                self._send(FailureFrame(error))
            except Exception:  # a bug, which must show where the other errors do
                self._send(FailureFrame(RuntimeError(traceback.format_exc())))
            self._number += 1

    def _parse(self, request: ParseRequest) -> None:
        with Path(request.path).open("rb", buffering=0) as file, io.BufferedReader(file, BUFFER_BYTES) as stream:
            document = Document(request.name, stream, request.format)
            self._send(StartFrame(document.format))
            steps: list[Step] = []
            weight = read = 0
            for batch in document.batches():
                steps += batch.steps
                weight += batch.weight
                if weight < BATCH_WEIGHT:
                    continue
                position = file.tell()
                content = dumps(StepsFrame(steps, weight, position - read))
                self._ahead += weight
                del batch, steps  # frees what may be much memory
                steps, weight, read = [], 0, position
                self._send_bytes(content)
                del content
                self._receive_pending()
                if self._cancelled >= self._number:
                    break
            self._ahead += weight
            self._send(StepsFrame(steps, weight, file.tell() - read))
            self._send(EndFrame(document.warnings))

    def _receive_pending(self) -> None:
        """Receives what was sent. Waits while too much is unacknowledged and the document is not cancelled."""
        while self._connection.poll() or (self._ahead > AHEAD_WEIGHT and self._cancelled < self._number):
            self._receive()

    def _receive(self) -> None:
        try:
            match loads(self._connection.recv_bytes()):
                case Acknowledgement(weight=weight):
                    self._ahead -= weight
                case Cancellation(number=number):
                    self._cancelled = number
                case requests:
                    self._requested += requests
        except (EOFError, OSError) as error:
            raise _Disconnected from error

    def _send(self, frame: Frame) -> None:
        self._send_bytes(dumps(frame))

    def _send_bytes(self, content: bytes) -> None:
        try:
            self._connection.send_bytes(content)
        except OSError as error:
            raise _Disconnected from error
