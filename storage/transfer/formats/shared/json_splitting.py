"""Splits JSON text into the texts of its values without decoding them, so that a list or object can have any size.

A broken value does not affect the others, as long as its brackets and quotes are balanced.
"""

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

CHUNK = 256 * 1024
_IN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_IN_VALUE = re.compile(rb'[^"\[\]{}]*')
_BETWEEN = re.compile(rb'[^"\[\]{},]*')
_IN_KEY = re.compile(rb'[^"\[\]{},:]*')
_SPACE = re.compile(rb"[ \t\r\n]*")
_BRACKETS = re.compile(rb"[\[{]+")
_QUOTE = ord('"')
_OPENING = frozenset(b"[{")
_CLOSING = frozenset(b"]}")


class MalformedJson(Exception):
    """The text of a list or an object ends too early, or is not JSON. `location` is set where it is known."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.location: str | None = None


class Scanner:
    """Reads values, one after the other, from a stream of JSON text. Skips a value of more than `limit` bytes."""

    def __init__(self, head: bytes, stream: BinaryIO, limit: int) -> None:
        self._buffer = head
        self._at = 0
        self._stream = stream
        self._limit = limit

    def peek(self) -> bytes:
        """Return the next byte that is not white space, empty at the end."""
        while (at := self._passed(_SPACE)) == len(self._buffer) and self._fill():
            pass
        return self._buffer[at : at + 1]

    def skip(self) -> None:
        """Skip the byte that `peek` returned."""
        self._at += 1

    def rest(self) -> bytes:
        """Return what was read from the stream but not yet scanned."""
        return self._buffer[self._at :]

    def items(self) -> Iterator[bytes | None]:
        """Yield the texts of the items of the list that begins here, None for one over the limit.

        Raises MalformedJson.
        """
        self.skip()
        if self.peek() == b"]":
            self.skip()
            return
        end = b","
        while end == b",":
            item = self._text(_BETWEEN)
            end = self._end(b"]")
            yield item

    def fields(self) -> Iterator[bytes | None]:
        """Yield the texts of the names in the object that begins here; the caller must read each value.

        Raises MalformedJson.
        """
        self.skip()
        if self.peek() == b"}":
            self.skip()
            return
        end = b","
        while end == b",":
            name = self._text(_IN_KEY)
            self._end(b":", more=b"")
            self.peek()
            yield name
            end = self._end(b"}")

    def value(self) -> bytes | None:
        """Return the text of the value that begins here, None if it is over the limit."""
        return self._text(_BETWEEN)

    def _end(self, closing: bytes, more: bytes = b",") -> bytes:
        found = self.peek()
        if not found:
            raise MalformedJson("the document ends in the middle")
        if found not in (closing, more):
            raise MalformedJson(f"not JSON: expected {_shown(closing)}, found {_shown(found)}")
        self.skip()
        return found

    def _text(self, outermost: re.Pattern[bytes]) -> bytes | None:
        """The text up to where `outermost` stops matching, outside strings and brackets."""
        parts: list[bytes] = []
        size = depth = 0
        quoted = done = False
        while not done:
            start = self._at
            depth, quoted, done = self._scan(outermost, depth, quoted)
            parts.append(self._buffer[start : self._at])
            size += len(parts[-1])
            if size > self._limit:
                parts.clear()
            if not done and not self._fill():
                break
        return None if size > self._limit else b"".join(parts)

    def _scan(self, outermost: re.Pattern[bytes], depth: int, quoted: bool) -> tuple[int, bool, bool]:
        """Scan to the end of the text, or of the buffer; the last item says whether the text ended."""
        buffer = self._buffer
        while True:
            at = self._passed(_IN_STRING if quoted else _IN_VALUE if depth else outermost)
            if at == len(buffer) or (quoted and buffer[at] != _QUOTE):
                return depth, quoted, False
            byte = buffer[at]
            if byte == _QUOTE:
                quoted = not quoted
            elif byte in _OPENING:
                depth += self._passed(_BRACKETS) - at
                continue
            elif byte in _CLOSING and depth:
                depth -= 1
            else:
                return depth, quoted, True
            self._at += 1

    def _passed(self, pattern: re.Pattern[bytes]) -> int:
        """Advance past what the pattern matches here, possibly nothing, and return the new offset."""
        found = pattern.match(self._buffer, self._at)
        assert found is not None
        self._at = found.end()
        return self._at

    def _fill(self) -> bool:
        """Read more into the buffer, and drop what was scanned."""
        more = self._stream.read(CHUNK)
        self._buffer = self._buffer[self._at :] + more
        self._at = 0
        return bool(more)


def _shown(byte: bytes) -> str:
    return repr(byte.decode("latin-1"))


def chained(head: bytes, stream: BinaryIO) -> BinaryIO:
    """Return a stream of `head`, followed by the rest of `stream`."""
    return io.BufferedReader(_ChainedStream(head, stream), CHUNK)


class _ChainedStream(io.RawIOBase):
    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = io.BytesIO(head)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._head.read(len(buffer)) or self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)
