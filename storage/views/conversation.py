"""What people see of a log: texts, cards and tool calls in order. A fold over events in seq order.

- A text is a message that was appended. A message with REPLACE is left out, and what it replaces stays. An assistant
  message without content, which only carries calls, is left out too.
- A bound is a turn or step start or end, or an appended user or assistant message.
- Text chunks up to the next bound are a partial answer, at the position of the first, unless that bound is the
  assistant/message, which holds the whole text.
- A tool/result answers the earliest unanswered call with its id since the last bound, else the newest one before.
  Distant events never decide, so that a page depends only on events near it.
- A card takes the position, and the seq, of an earlier one of the same type and payload id.
- surface/hide acts where it is in the log: it removes texts, calls, results and chunks in its range, and cards whose
  position or current version is in its range. A call whose result is removed is unanswered again.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Self

from storage import cards
from storage.cards import CardKey
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    ChunkKind,
    Event,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOpKind,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.views.conversation_entry import (
    AnswerItem,
    CallItem,
    CardEntry,
    CardItem,
    Entry,
    Item,
    MessageItem,
    TextEntry,
    TextEvent,
)
from storage.views.message import Role


def conversation(events: Iterable[Event], *, include_system: bool = False) -> list[Entry]:
    """The entries of a log, in the order of their seqs."""
    return Conversation().add_all(events).entries(include_system=include_system)


def form_ids(entries: Iterable[Entry]) -> set[str]:
    """The ids of the form definitions that entries need."""
    return {entry.form_id for entry in entries if isinstance(entry, CardEntry) and entry.form_id is not None}


def with_forms(entries: Iterable[Entry], defined: Collection[str]) -> list[Entry]:
    """The entries, with forms degraded only where their definition is not among those `defined`."""
    return [
        replace(entry, degraded=None)
        if isinstance(entry, CardEntry) and entry.form_id is not None and entry.form_id in defined
        else entry
        for entry in entries
    ]


def is_bound(event: Event) -> bool:
    """Whether the event ends the chunks and the tool calls before it."""
    match event:
        case TurnStart() | TurnEnd() | StepStart() | StepEnd():
            return True
        case UserMessage() | AssistantMessage():
            return event.surface_op.op is SurfaceOpKind.APPEND
    return False


class Conversation:
    """Folds events one by one, in seq order. Events that do not affect the entries of interest may be left out."""

    def __init__(self) -> None:
        self._items: dict[int, Item] = {}
        self._made: list[tuple[int, Item]] = []
        self._answer: AnswerItem | None = None
        self._bound = 0
        self._waiting: dict[str, list[CallItem]] = {}
        self._cards: dict[CardKey, CardItem] = {}

    def add_all(self, events: Iterable[Event]) -> Self:
        """Folds events in order."""
        for event in events:
            self.add(event)
        return self

    def add(self, event: Event) -> Self:
        """Folds one more event."""
        match event:
            case AssistantChunk(kind=ChunkKind.TEXT):
                self._chunk(event)
            case AssistantChunk():
                pass
            case UserMessage() | AssistantMessage() | SystemMessage():
                self._message(event)
            case ToolCall():
                call = CallItem(event)
                self._put(call)
                self._waiting.setdefault(event.call_id, []).append(call)
            case ToolResult():
                self._result(event)
            case CardEvent():
                self._card(event)
            case TurnStart() | TurnEnd() | StepStart() | StepEnd():
                self._pass_bound(event)
            case SurfaceHide():
                self._hide(event.from_seq, event.to_seq)
        return self

    def entries(self, *, include_system: bool = False) -> list[Entry]:
        """The entries after the events folded so far, in the order of their seqs."""
        found = [entry for item in self._items.values() if (entry := item.entry()) is not None]
        if not include_system:
            found = [entry for entry in found if not (isinstance(entry, TextEntry) and entry.role is Role.SYSTEM)]
        return sorted(found, key=attrgetter("seq"))

    def _pass_bound(self, bound: Event) -> None:
        self._answer = None
        self._bound = bound.seq

    def _put(self, item: Item) -> None:
        self._items[item.position] = item
        self._made.append((item.event.seq, item))

    def _chunk(self, event: AssistantChunk) -> None:
        if self._answer is None:
            self._answer = AnswerItem(event)
            self._put(self._answer)
        else:
            self._answer.pieces[event.seq] = event
            self._made.append((event.seq, self._answer))

    def _message(self, event: TextEvent) -> None:
        if event.surface_op.op is SurfaceOpKind.REPLACE:
            self._replace(event)
            return
        if isinstance(event, AssistantMessage) and self._answer is not None:
            self._remove(self._answer)
        if not isinstance(event, SystemMessage):
            self._pass_bound(event)
        self._put(MessageItem(event))

    def _replace(self, event: TextEvent) -> None:
        """Folds a message that replaces others: no change here."""

    def _result(self, event: ToolResult) -> None:
        waiting = self._waiting.get(event.call_id)
        if not waiting or event.surface_op.op is SurfaceOpKind.REPLACE:
            return
        first = bisect_left(waiting, self._bound, key=attrgetter("event.seq"))
        call = waiting.pop(first if first < len(waiting) else -1)
        call.result = event
        self._made.append((event.seq, call))

    def _card(self, event: CardEvent) -> None:
        content = cards.read_card(event.card_type, event.payload)
        key = cards.key(event.card_type, content)
        earlier = None if key is None else self._cards.get(key)
        if earlier is not None:
            earlier.version, earlier.content = event, content
            self._made.append((event.seq, earlier))
            return
        item = CardItem(event, content)
        self._put(item)
        if key is not None:
            self._cards[key] = item

    def _hide(self, start: int, stop: int) -> None:
        low = bisect_left(self._made, start, key=itemgetter(0))
        high = bisect_left(self._made, stop, key=itemgetter(0))
        hidden = self._made[low:high]
        del self._made[low:high]
        for seq, item in hidden:
            if item.removed:
                continue
            if item.hide(seq):
                self._remove(item)
            elif isinstance(item, CallItem) and item.result is not None and item.result.seq == seq:
                item.result = None
                insort(self._waiting[item.event.call_id], item, key=attrgetter("event.seq"))

    def _remove(self, item: Item) -> None:
        item.removed = True
        del self._items[item.position]
        match item:
            case CallItem(result=None):
                self._waiting[item.event.call_id].remove(item)
            case CardItem():
                key = cards.key(item.version.card_type, item.content)
                if key is not None and self._cards.get(key) is item:
                    del self._cards[key]
