"""The list of a surface's nodes: their order, which calls wait for a result, and what replacing and hiding do.

Labels order the nodes: they ascend in list order and never change. Appended nodes are `_STRIDE` apart; a replacement
takes the label of the first node that it replaces, or one between a group and the next node.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import NamedTuple

from storage.events import AssistantChunk, Event, ToolCall, ToolResult
from storage.views.surface_node import Node, TextMessage

_STRIDE = 2**32


class Spot(NamedTuple):
    """A position in list order. Rank 0 is a message, 1 its first result."""

    label: int
    rank: int


class Nodes:
    """The nodes in list order. `open` is the label of the open group."""

    def __init__(self) -> None:
        self.open: int | None = None
        self._owner = object()
        self._order: list[int] = []
        self._nodes: dict[int, Node] = {}
        self._made: dict[int, tuple[int, Event]] = {}
        self._unanswered: dict[str, list[int]] = {}
        self._last = 0
        self._inserted = 0

    def copy(self) -> "Nodes":
        """An independent copy; the two share each node until one changes it."""
        copy = Nodes()
        copy.open = self.open
        copy._order = self._order.copy()
        copy._nodes = self._nodes.copy()
        copy._made = self._made.copy()
        copy._unanswered = {id: seqs.copy() for id, seqs in self._unanswered.items()}
        copy._last = self._last
        copy._inserted = self._inserted
        self._owner = object()
        return copy

    def __iter__(self) -> Iterator[Node]:
        return map(self._nodes.__getitem__, self._order)

    def spot(self, seq: int) -> Spot | None:
        """The position of the node with the id `seq`; None if there is none."""
        label, event = self._made.get(seq, (0, None))
        if event is None:
            return None
        node = self._nodes[label]
        if isinstance(event, ToolResult):
            return Spot(label, 1 + list(node.results).index(event.call_id))
        return Spot(label, 0) if node.seq == seq else None

    def end(self) -> Spot:
        """The position of the next appended node."""
        return Spot(self._last + _STRIDE, 0)

    def event(self, seq: int) -> Event | None:
        """The event at that seq, if it is part of a node."""
        return self._made.get(seq, (0, None))[1]

    def append(self, event: TextMessage | None = None, chunks: tuple[AssistantChunk, ...] = ()) -> int:
        """Appends a message of an event, of chunks, or of calls to be added next. Returns its label."""
        self._last += _STRIDE
        self._order.append(self._last)
        self._put(self._last, Node(self._owner, event, chunks))
        return self._last

    def call(self, event: ToolCall) -> None:
        """Adds a call to the open group, or to a new one if there is none or it has the id already."""
        if self.open is None or event.call_id in self._nodes[self.open].calls:
            self.open = self.append()
        self._own(self.open).calls[event.call_id] = event
        self._made[event.seq] = (self.open, event)
        self._unanswered.setdefault(event.call_id, []).append(event.seq)

    def answer(self, event: ToolResult, turn_start: int) -> None:
        """Adds a result to the earliest unanswered call since `turn_start`, else to the newest before, if any."""
        waiting = self._unanswered.get(event.call_id)
        if waiting is None:
            return
        index = bisect_left(waiting, turn_start)
        label, _ = self._made[waiting.pop(index if index < len(waiting) else -1)]
        if not waiting:
            del self._unanswered[event.call_id]
        self._own(label).results[event.call_id] = event
        self._made[event.seq] = (label, event)

    def replace(self, start: Spot, end: Spot, event: TextMessage) -> None:
        """Replaces the nodes from `start` to `end` by a message."""
        label = start.label
        first, stop = bisect_left(self._order, start.label), bisect_right(self._order, end.label)
        if start.rank:
            self._remove_results(start, end)
            first += 1
            self._inserted += 1
            label += _STRIDE - self._inserted
        for replaced in self._order[first:stop]:
            self._drop(replaced)
        self._order[first:stop] = [label]
        self._put(label, Node(self._owner, event))

    def replace_result(self, spot: Spot, event: ToolResult) -> None:
        """Replaces the result with the same call id."""
        node = self._own(spot.label)
        del self._made[node.results[event.call_id].seq]
        node.results[event.call_id] = event
        self._made[event.seq] = (spot.label, event)

    def hide(self, start: int, stop: int) -> None:
        """Removes the parts that the events with start <= seq < stop made."""
        touched: dict[int, list[Event]] = {}
        for seq in self._between(start, stop):
            label, event = self._made[seq]
            touched.setdefault(label, []).append(event)
        for label, events in sorted(touched.items(), reverse=True):
            node = self._own(label)
            for event in events:
                self._remove(node, event)
            node.chunks = tuple(chunk for chunk in node.chunks if chunk.seq in self._made)
            if node.is_empty():
                self._drop(label)
                del self._order[bisect_left(self._order, label)]

    def _between(self, start: int, stop: int) -> list[int]:
        if stop - start < len(self._made):
            return [seq for seq in range(start, stop) if seq in self._made]
        return sorted(seq for seq in self._made if start <= seq < stop)

    def _own(self, label: int) -> Node:
        node = self._nodes[label] = self._nodes[label].changeable(self._owner)
        return node

    def _put(self, label: int, node: Node) -> None:
        self._nodes[label] = node
        if node.event is not None:
            self._made[node.event.seq] = (label, node.event)
        for chunk in node.chunks:
            self._made[chunk.seq] = (label, chunk)

    def _drop(self, label: int) -> None:
        """Deletes a node, except from the order, which is up to the caller."""
        if self.open == label:
            self.open = None
        node = self._nodes.pop(label)
        for seq in node.seqs():
            del self._made[seq]
        for id, call in node.calls.items():
            if id not in node.results:
                self._stop_waiting(call)

    def _remove(self, node: Node, event: Event) -> None:
        """Removes one event's part from a node; a call with its result."""
        if self._made.pop(event.seq, None) is None:
            return
        match event:
            case ToolCall(call_id=id):
                del node.calls[id]
                if (result := node.results.pop(id, None)) is not None:
                    del self._made[result.seq]
                else:
                    self._stop_waiting(event)
            case ToolResult(call_id=id):
                del node.results[id]
                insort(self._unanswered.setdefault(id, []), node.calls[id].seq)
            case AssistantChunk():
                pass
            case _:
                node.event = None

    def _remove_results(self, start: Spot, end: Spot) -> None:
        node = self._own(start.label)
        results = list(node.results.values())
        for result in results[start.rank - 1 : end.rank if end.label == start.label else None]:
            self._remove(node, result)

    def _stop_waiting(self, call: ToolCall) -> None:
        waiting = self._unanswered[call.call_id]
        waiting.remove(call.seq)
        if not waiting:
            del self._unanswered[call.call_id]
