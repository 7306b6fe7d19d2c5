"""Tool calls that have no result yet."""

from collections.abc import Mapping
from typing import NamedTuple

Place = tuple[str | None, str | None]
"""The turn and step of a call."""
_LOOSE = 2
"""Calls and answers that each copy has for itself; more are put into a layer that copies share."""


class Layer(NamedTuple):
    """Calls that were made since what is `below`, and how many calls of an id were answered meanwhile.

    Answers go to the oldest calls, which may be in this layer or below. `size` counts calls and answers.
    """

    below: "Layer | None"
    calls: Mapping[str, tuple[Place, ...]]
    answered: Mapping[str, int]
    size: int


class OpenCalls:
    """The calls without a result, by id. A mark of them costs little, however many there are."""

    __slots__ = ("_answered", "_below", "_calls", "_size")

    def __init__(self, layer: Layer | None = None) -> None:
        self._below = layer and layer.below
        self._calls = {id: list(places) for id, places in layer.calls.items()} if layer else {}
        self._answered = dict(layer.answered) if layer else {}
        self._size = layer.size if layer else 0

    def mark(self) -> Layer:
        """The calls as they are now, for another one to go on with."""
        calls = {id: tuple(places) for id, places in self._calls.items()}
        layer = Layer(self._below, calls, dict(self._answered), self._size)
        if self._size <= _LOOSE:
            return layer
        self._below = _merged(layer)
        self._calls, self._answered, self._size = {}, {}, 0
        return Layer(self._below, {}, {}, 0)

    def add(self, id: str, place: Place) -> None:
        """A call was made."""
        self._calls.setdefault(id, []).append(place)
        self._size += 1

    def answer(self, id: str) -> Place | None:
        """Where the oldest call of an id was made, which now has its result; None if there is none."""
        if self._below is not None and (place := self._shared(id)) is not None:
            self._answered[id] = self._answered.get(id, 0) + 1
            self._size += 1
            return place
        places = self._calls.get(id)
        if places is None:
            return None
        self._size -= 1
        place = places.pop(0)
        if not places:
            del self._calls[id]
        return place

    def oldest(self) -> str | None:
        """The id of the oldest call."""
        layers = self._layers()
        answered: dict[str, int] = dict(self._answered)
        for layer in layers:
            for id, count in layer.answered.items():
                answered[id] = answered.get(id, 0) + count
        for layer in layers:
            for id, places in layer.calls.items():
                if answered.get(id, 0) < len(places):
                    return id
                answered[id] -= len(places)
        return next(iter(self._calls), None)

    def _layers(self) -> list[Layer]:
        """From the lowest one on."""
        found = []
        layer = self._below
        while layer is not None:
            found.append(layer)
            layer = layer.below
        return found[::-1]

    def _shared(self, id: str) -> Place | None:
        """The oldest call of an id in the layers."""
        places: list[Place] = []
        answered = self._answered.get(id, 0)
        for layer in self._layers():
            places += layer.calls.get(id, ())
            answered += layer.answered.get(id, 0)
        return places[answered] if answered < len(places) else None


def _merged(layer: Layer) -> Layer | None:
    """The layer, made one with those below that are no larger, so that there are few; None for one of nothing."""
    while layer.below is not None and layer.below.size <= layer.size:
        layer = _joined(layer.below, layer)
    if layer.below is None:
        layer = _settled(layer)
    return layer if layer.size else None


def _joined(lower: Layer, upper: Layer) -> Layer:
    calls, answered = dict(lower.calls), dict(lower.answered)
    for id, places in upper.calls.items():
        calls[id] = calls.get(id, ()) + places
    for id, count in upper.answered.items():
        answered[id] = answered.get(id, 0) + count
    return Layer(lower.below, calls, answered, lower.size + upper.size)


def _settled(lowest: Layer) -> Layer:
    """Without the calls that were answered."""
    calls = {id: places[lowest.answered.get(id, 0) :] for id, places in lowest.calls.items()}
    calls = {id: places for id, places in calls.items() if places}
    return Layer(None, calls, {}, sum(map(len, calls.values())))
