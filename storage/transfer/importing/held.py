"""Files that are kept open, so that what one says can be read when another has taken its name."""

import io
import os
from typing import BinaryIO


class Kept:
    """The files of which their readers have read last, one for each of them and up to `most`."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._files: dict[object, io.FileIO] = {}

    def keep(self, reader: object, stream: BinaryIO) -> None:
        """Keeps the file of a stream, which may be closed, for a reader that has none yet or this one."""
        file = self._files.pop(reader, None)
        self._files[reader] = file or io.FileIO(os.dup(stream.fileno()))
        while len(self._files) > self._most:
            self.drop(next(iter(self._files)))

    def open(self, reader: object) -> BinaryIO | None:
        """A reader's file, to be closed after use."""
        file = self._files.get(reader)
        # A stream of its own, as one that is used again holds what the file said before.
        return None if file is None else os.fdopen(os.dup(file.fileno()), "rb")

    def drop(self, reader: object) -> None:
        """Keeps a reader's file no longer."""
        file = self._files.pop(reader, None)
        if file is not None:
            file.close()
