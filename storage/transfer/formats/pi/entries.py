"""A compact index of the entries of a pi log: a branch may start after any of them."""

import marshal
import zlib
from array import array
from typing import Any, NamedTuple

from storage.transfer.formats.pi.messages import Thread
from storage.transfer.formats.shared.log_builder import LogState
from storage.transfer.formats.shared.open_calls import CallLayer

_WINDOW, _MEMORY = -10, 1
"""Settings for zlib: a window of 1 KiB without a header, and the least memory."""


class EntryPosition(NamedTuple):
    """The thread that an entry is on, the seq of its first event, and the state after its last one."""

    thread: Thread
    first: int
    state: LogState


class EntryIndex:
    """The positions of entries by a 64-bit hash of their id, in about 300 bytes each."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._threads: list[Thread] = []
        self._firsts = array("q")
        self._states = bytearray()
        self._begins = array("q", [0])
        self._calls: list[CallLayer | None] = []
        self._like = b""

    def __contains__(self, id: str) -> bool:
        return hash(id) in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, id: str, position: EntryPosition) -> None:
        """Add the position of an entry; it replaces that of an earlier one with the same id."""
        self._numbers[hash(id)] = len(self._threads)
        self._threads.append(position.thread)
        self._firsts.append(position.first)
        self._states += self._packed(position.state)
        self._begins.append(len(self._states))
        self._calls.append(position.state.calls.below)

    def get(self, id: object) -> EntryPosition | None:
        """Return the position of an entry, None for an unknown id."""
        number = self._numbers.get(hash(id)) if isinstance(id, str) else None
        if number is None:
            return None
        return EntryPosition(self._threads[number], self._firsts[number], self._unpacked(number))

    def _packed(self, state: LogState) -> bytes:
        """A state as bytes, without the calls that it shares with others."""
        calls = state.calls
        own = (dict(calls.calls), dict(calls.answered), calls.size)
        return marshal.dumps((state.head, state.turn, state.step, state.counts, own, self._shortened(state.step_end)))

    def _unpacked(self, number: int) -> LogState:
        packed = self._states[self._begins[number] : self._begins[number + 1]]
        head, turn, step, counts, own, step_end = marshal.loads(packed)
        return LogState(head, turn, step, counts, CallLayer(self._calls[number], *own), self._restored(step_end))

    def _shortened(self, step_end: dict[str, Any]) -> bytes:
        """The fields of a step's end, compressed with those of the first such step as the dictionary."""
        if not step_end:
            return b""
        whole = marshal.dumps(step_end)
        self._like = self._like or whole
        deflate = zlib.compressobj(wbits=_WINDOW, memLevel=_MEMORY, zdict=self._like)
        return deflate.compress(whole) + deflate.flush()

    def _restored(self, step_end: bytes) -> dict[str, Any]:
        if not step_end:
            return {}
        restored: dict[str, Any] = marshal.loads(zlib.decompressobj(_WINDOW, zdict=self._like).decompress(step_end))
        return restored
