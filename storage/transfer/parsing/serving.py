"""The parsing process: parses the documents that it is told to, one after the other, until nobody listens any more."""

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
from storage.transfer.parsing.frames import Begun, Ended, Failed, Frame, Passed, Taken, Told, Wanted, dumps, loads
from storage.transfer.parsing.memory import give_memory_back

PART_WEIGHT = 128 * 1024
"""About how many characters of events are told at once."""
AHEAD_WEIGHT = 4 * 1024 * 1024
"""About how many characters of events may be told that nobody has taken yet; one part may be larger."""
BUFFER_BYTES = 1024 * 1024
"""What is read of a file at once."""


class _Left(Exception):
    """Nobody is at the other end any more."""


def serve(connection: Connection, inherited: Connection | None) -> None:
    """Runs until the other end of the connection is closed; a forked process has inherited it."""
    if inherited is not None:
        inherited.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the other one decides what comes of it
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    give_memory_back()
    with contextlib.suppress(_Left):
        _Served(connection).run()


def _leave_with_parent() -> None:
    """Ends this process when the one that started it is gone, also while it parses what tells nothing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Served:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._wanted: deque[Wanted] = deque()
        self._number = 0
        self._passed = -1
        self._ahead = 0

    def run(self) -> None:
        while True:
            while not self._wanted:
                self._hear()
            try:
                self._parse(self._wanted.popleft())
            except _Left:
                raise
            except (errors.SapwoodError, OSError) as error:
                self._tell(Failed(error))
            except Exception:  # a fault of ours, which is to be seen where the others are
                self._tell(Failed(RuntimeError(traceback.format_exc())))
            self._number += 1

    def _parse(self, wanted: Wanted) -> None:
        with Path(wanted.path).open("rb", buffering=0) as file, io.BufferedReader(file, BUFFER_BYTES) as stream:
            document = Document(wanted.name, stream, wanted.format)
            self._tell(Begun(document.format))
            steps: list[Step] = []
            weight = read = 0
            for part in document.parts():
                steps += part.steps
                weight += part.weight
                if weight < PART_WEIGHT:
                    continue
                at = file.tell()
                content = dumps(Told(steps, weight, at - read))
                self._ahead += weight
                del part, steps  # which may be a large part of the memory
                steps, weight, read = [], 0, at
                self._send(content)
                del content
                self._listen()
                if self._passed >= self._number:
                    break
            self._ahead += weight
            self._tell(Told(steps, weight, file.tell() - read))
            self._tell(Ended(document.losses))

    def _listen(self) -> None:
        """Hears what was said; waits while too much is not taken yet and still wanted."""
        while self._connection.poll() or (self._ahead > AHEAD_WEIGHT and self._passed < self._number):
            self._hear()

    def _hear(self) -> None:
        try:
            match loads(self._connection.recv_bytes()):
                case Taken(weight=weight):
                    self._ahead -= weight
                case Passed(number=number):
                    self._passed = number
                case wanted:
                    self._wanted += wanted
        except (EOFError, OSError) as error:
            raise _Left from error

    def _tell(self, frame: Frame) -> None:
        self._send(dumps(frame))

    def _send(self, content: bytes) -> None:
        try:
            self._connection.send_bytes(content)
        except OSError as error:
            raise _Left from error
