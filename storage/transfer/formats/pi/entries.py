"""The entries of a log of pi, kept as small as their number needs, as each may be gone on from."""

import marshal
import zlib
from array import array
from typing import Any, NamedTuple

from storage.transfer.formats.dialogue import Mark
from storage.transfer.formats.open_calls import Layer
from storage.transfer.formats.pi.messages import Line

_WINDOW, _MEMORY = -10, 1
"""Of zlib: 1 KiB without a header, as little work as there is."""


class Place(NamedTuple):
    """The path that an entry is on, the seq of its first event, and what is open behind its last one."""

    line: Line
    first: int
    mark: Mark


class Places:
    """The places of entries by id, of which the hash of 64 bits is kept. They take about 300 bytes each."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._lines: list[Line] = []
        self._firsts = array("q")
        self._marks = bytearray()
        self._begins = array("q", [0])
        self._calls: list[Layer | None] = []
        self._like = b""

    def __contains__(self, id: str) -> bool:
        return hash(id) in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, id: str, place: Place) -> None:
        """Keeps the place of an entry; of two with the same id that of the later one."""
        self._numbers[hash(id)] = len(self._lines)
        self._lines.append(place.line)
        self._firsts.append(place.first)
        self._marks += self._packed(place.mark)
        self._begins.append(len(self._marks))
        self._calls.append(place.mark.calls.below)

    def get(self, id: object) -> Place | None:
        """The place of an entry, None for an id of none."""
        number = self._numbers.get(hash(id)) if isinstance(id, str) else None
        if number is None:
            return None
        return Place(self._lines[number], self._firsts[number], self._unpacked(number))

    def _packed(self, mark: Mark) -> bytes:
        """A mark, without the calls that it shares with others."""
        calls = mark.calls
        own = (dict(calls.calls), dict(calls.answered), calls.size)
        return marshal.dumps((mark.head, mark.turn, mark.step, mark.counts, own, self._shortened(mark.step_end)))

    def _unpacked(self, number: int) -> Mark:
        packed = self._marks[self._begins[number] : self._begins[number + 1]]
        head, turn, step, counts, own, step_end = marshal.loads(packed)
        return Mark(head, turn, step, counts, Layer(self._calls[number], *own), self._restored(step_end))

    def _shortened(self, step_end: dict[str, Any]) -> bytes:
        """What was measured of a step, as what is other than in the first one that was."""
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
