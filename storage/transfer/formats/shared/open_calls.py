"""Tool calls that have no result yet."""

from collections.abc import Mapping
from typing import NamedTuple

CallSite = tuple[str | None, str | None]
"""The turn and step that a call was made in."""
_MAX_UNSHARED = 2
"""Calls and answers that each copy keeps for itself; more go into a layer that copies share."""


class CallLayer(NamedTuple):
    """The calls made since the layer `below`, and the number of calls answered since then, by id.

    Answers go to the oldest calls, in this layer or below. `size` counts calls and answers.
    """

    below: "CallLayer | None"
    calls: Mapping[str, tuple[CallSite, ...]]
    answered: Mapping[str, int]
    size: int


class OpenCalls:
    """The calls without a result, by id. A snapshot is cheap, however many calls there are."""

    __slots__ = ("_answered", "_below", "_calls", "_size")

    def __init__(self, layer: CallLayer | None = None) -> None:
        self._below = layer and layer.below
        self._calls = {id: list(sites) for id, sites in layer.calls.items()} if layer else {}
        self._answered = dict(layer.answered) if layer else {}
        self._size = layer.size if layer else 0

    def snapshot(self) -> CallLayer:
        """Return the current calls, for another instance to start with."""
        calls = {id: tuple(sites) for id, sites in self._calls.items()}
        layer = CallLayer(self._below, calls, dict(self._answered), self._size)
        if self._size <= _MAX_UNSHARED:
            return layer
        self._below = _merged(layer)
        self._calls, self._answered, self._size = {}, {}, 0
        return CallLayer(self._below, {}, {}, 0)

    def add(self, id: str, site: CallSite) -> None:
        """Add a call."""
        self._calls.setdefault(id, []).append(site)
        self._size += 1

    def answer(self, id: str) -> CallSite | None:
        """Close the oldest call with this id. Return where it was made, None if there is no such call."""
        if self._below is not None and (site := self._shared(id)) is not None:
            self._answered[id] = self._answered.get(id, 0) + 1
            self._size += 1
            return site
        sites = self._calls.get(id)
        if sites is None:
            return None
        self._size -= 1
        site = sites.pop(0)
        if not sites:
            del self._calls[id]
        return site

    def oldest(self) -> str | None:
        """Return the id of the oldest call."""
        layers = self._layers()
        answered: dict[str, int] = dict(self._answered)
        for layer in layers:
            for id, count in layer.answered.items():
                answered[id] = answered.get(id, 0) + count
        for layer in layers:
            for id, sites in layer.calls.items():
                if answered.get(id, 0) < len(sites):
                    return id
                answered[id] -= len(sites)
        return next(iter(self._calls), None)

    def _layers(self) -> list[CallLayer]:
        """The shared layers, lowest first."""
        found = []
        layer = self._below
        while layer is not None:
            found.append(layer)
            layer = layer.below
        return found[::-1]

    def _shared(self, id: str) -> CallSite | None:
        """The oldest open call with this id in the shared layers."""
        sites: list[CallSite] = []
        answered = self._answered.get(id, 0)
        for layer in self._layers():
            sites += layer.calls.get(id, ())
            answered += layer.answered.get(id, 0)
        return sites[answered] if answered < len(sites) else None


def _merged(layer: CallLayer) -> CallLayer | None:
    """Merge a layer with those below that are no larger, so that there are few. None if nothing is left."""
    while layer.below is not None and layer.below.size <= layer.size:
        layer = _merged_pair(layer.below, layer)
    if layer.below is None:
        layer = _without_answered(layer)
    return layer if layer.size else None


def _merged_pair(lower: CallLayer, upper: CallLayer) -> CallLayer:
    calls, answered = dict(lower.calls), dict(lower.answered)
    for id, sites in upper.calls.items():
        calls[id] = calls.get(id, ()) + sites
    for id, count in upper.answered.items():
        answered[id] = answered.get(id, 0) + count
    return CallLayer(lower.below, calls, answered, lower.size + upper.size)


def _without_answered(lowest: CallLayer) -> CallLayer:
    """Drop the calls that were answered."""
    calls = {id: sites[lowest.answered.get(id, 0) :] for id, sites in lowest.calls.items()}
    calls = {id: sites for id, sites in calls.items() if sites}
    return CallLayer(None, calls, {}, sum(map(len, calls.values())))
