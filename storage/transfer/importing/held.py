"""Files held open, so that they can be read to their end after they were renamed."""

import io
import os
from typing import BinaryIO


class HeldFiles:
    """The files that were read last, one for each reader and `limit` in all."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._files: dict[object, io.FileIO] = {}

    def hold(self, reader: object, stream: BinaryIO) -> None:
        """Holds the file of a stream, which may be closed, unless the reader has one already. Makes it the newest."""
        file = self._files.pop(reader, None)
        self._files[reader] = file or io.FileIO(os.dup(stream.fileno()))
        while len(self._files) > self._limit:
            self.release(next(iter(self._files)))

    def open(self, reader: object) -> BinaryIO | None:
        """A new stream over a reader's file, which the caller closes; None where it is not held."""
        file = self._files.get(reader)
        # Each use gets its own stream: the buffer of a shared one would be out of date.
        return None if file is None else os.fdopen(os.dup(file.fileno()), "rb")

    def release(self, reader: object) -> None:
        """Closes a reader's file, if it is held."""
        file = self._files.pop(reader, None)
        if file is not None:
            file.close()
