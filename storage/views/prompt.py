"""The text history of a log, for a model that takes no cards and no tool calls.

Texts are those of the conversation, unfinished answers included, in the same order; a card is one short line. Unlike
in the conversation, a message with REPLACE takes the place of everything from the node made by `start` to the one made
by `end`, cards between them included.
"""

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter, itemgetter

from storage.events import Event
from storage.views.conversation import Conversation
from storage.views.conversation_entry import (
    AnswerItem,
    CardEntry,
    Item,
    MessageItem,
    PlaceholderEntry,
    TextEntry,
    TextEvent,
)
from storage.views.message import Message, Role


def prompt(events: Iterable[Event], guide_prompt: str | None = None) -> list[Message]:
    """The texts of a log. With `guide_prompt`, the list starts with it and system messages are left out."""
    return Prompt().add_all(events).messages(guide_prompt)


class Prompt(Conversation):
    """Folds events one by one, in seq order."""

    def messages(self, guide_prompt: str | None = None) -> list[Message]:
        """The messages after the events folded so far, without those that have no text."""
        guide = [] if guide_prompt is None else [Message(Role.SYSTEM, guide_prompt)]
        ordered = sorted(self._items.values(), key=attrgetter("position"))
        texts = [message for item in ordered if (message := _message(item)) is not None and message.content]
        return guide + [text for text in texts if guide_prompt is None or text.role is not Role.SYSTEM]

    def _replace(self, event: TextEvent) -> None:
        op = event.surface_op
        bounds = [self._position_of(seq) for seq in (op.start, op.end) if seq is not None] or [event.seq]
        first, last = min(bounds), max(bounds)
        # An answer still streaming is the last node of the surface, wherever it began: only `end` replaces it.
        if self._answer is not None and bounds[-1] == self._answer.position:
            self._answer = None
        for position in [position for position in self._items if first <= position <= last]:
            if (item := self._items[position]) is not self._answer:
                self._remove(item)
        message = MessageItem(event)
        message.position = event.seq if first in self._items else first
        self._put(message)

    def _position_of(self, seq: int) -> int:
        """The current position of the item that the event at `seq` is part of; `seq` if there is none."""
        index = bisect_left(self._made, seq, key=itemgetter(0))
        if index < len(self._made):
            made_at, item = self._made[index]
            if made_at == seq and not item.removed:
                return item.position
        return seq


def _message(item: Item) -> Message | None:
    match entry := item.entry():
        case TextEntry():
            role, content = entry.role, entry.content
        case CardEntry():
            role, content = Role.ASSISTANT, entry.line
        case PlaceholderEntry():
            role, content = Role.ASSISTANT, entry.text
        case _:
            return None
    return Message(
        role,
        content,
        source_event_seqs=entry.source_event_seqs,
        repaired=isinstance(item, AnswerItem),
        timestamp=entry.timestamp,
    )
