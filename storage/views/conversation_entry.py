"""The entries of a conversation, and the items that events build them from."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from storage import cards, text
from storage.cards import Card, Unreadable
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    Event,
    Instant,
    JsonText,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from storage.views.message import Role
from storage.views.run_tools import ToolInvocation, answered, called
from storage.views.run_values import time_of

TextEvent = UserMessage | AssistantMessage | SystemMessage
_ROLES: dict[type[Event], Role] = {
    UserMessage: Role.USER,
    AssistantMessage: Role.ASSISTANT,
    SystemMessage: Role.SYSTEM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing shown, at the position `seq`. Hiding all of `source_event_seqs` removes it."""

    seq: int
    timestamp: Instant
    turn_id: str | None
    step_id: str | None
    source_event_seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntry(Entry):
    """A message. `partial` marks an answer that is still streaming, or was cut off."""

    role: Role
    content: str
    blocks: JsonText | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CardEntry(Entry):
    """A card in its newest version. `line` represents it in a prompt; `degraded` says why it is read-only.

    A form is degraded until `with_forms` finds that its definition, `form_id`, exists.
    """

    card_type: str
    card_id: str | None
    title: str | None
    card: JsonText
    payload: str
    line: str
    form_id: str | None = None
    degraded: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry(Entry):
    """A tool call, and its result once there is one."""

    invocation: ToolInvocation


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderEntry(Entry):
    """A placeholder for a card that can't be shown. `text` is one short line, `reason` says why."""

    text: str
    reason: str
    card_type: str
    card_id: str | None
    payload: str


class Item:
    """The state of one entry. `position` orders it among the others."""

    __slots__ = ("event", "position", "removed")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.position = event.seq
        self.removed = False

    def hide(self, seq: int) -> bool:
        """Removes the part that the event at `seq` made; returns whether the whole item is removed."""
        raise NotImplementedError

    def entry(self) -> Entry | None:
        """The entry, or None if there is nothing to show."""
        raise NotImplementedError


class MessageItem(Item):
    """A message, appended or in place of others."""

    __slots__ = ()
    event: TextEvent

    @override
    def hide(self, seq: int) -> bool:
        return True

    @override
    def entry(self) -> Entry | None:
        event = self.event
        blocks = None if isinstance(event, SystemMessage) else event.blocks
        partial = False
        if isinstance(event, AssistantMessage):
            if not event.content and blocks is None:
                return None
            partial = event.interrupted
        common = _common(event, (event.seq,))
        return TextEntry(**common, role=_ROLES[type(event)], content=event.content, blocks=blocks, partial=partial)


class AnswerItem(Item):
    """The chunks of a text that no message holds whole."""

    __slots__ = ("pieces",)

    def __init__(self, event: AssistantChunk) -> None:
        super().__init__(event)
        self.pieces = {event.seq: event}

    @override
    def hide(self, seq: int) -> bool:
        self.pieces.pop(seq, None)
        return False

    @override
    def entry(self) -> Entry | None:
        pieces = [piece for piece in self.pieces.values() if piece.delta]
        if not pieces:
            return None
        common = _common(pieces[0], tuple(piece.seq for piece in pieces))
        content = "".join(piece.delta for piece in pieces)
        return TextEntry(**common, role=Role.ASSISTANT, content=content, partial=True)


class CallItem(Item):
    """A tool call and its result."""

    __slots__ = ("result",)
    event: ToolCall

    def __init__(self, event: ToolCall) -> None:
        super().__init__(event)
        self.result: ToolResult | None = None

    @override
    def hide(self, seq: int) -> bool:
        return seq == self.event.seq

    @override
    def entry(self) -> Entry | None:
        invocation = called(self.event, self.event.step_id)
        if self.result is not None:
            invocation = answered(invocation, self.result)
        return ToolEntry(**_common(self.event, (self.event.seq,)), invocation=invocation)


class CardItem(Item):
    """A card in its newest version; `event` is the first."""

    __slots__ = ("content", "version")

    def __init__(self, event: CardEvent, content: Card | Unreadable) -> None:
        super().__init__(event)
        self.version = event
        self.content = content

    @override
    def hide(self, seq: int) -> bool:
        return seq in (self.event.seq, self.version.seq)

    @override
    def entry(self) -> Entry | None:
        version, content = self.version, self.content
        common = _common(self.event, tuple(dict.fromkeys((self.event.seq, version.seq))))
        shown: dict[str, Any] = {
            "card_type": version.card_type,
            "card_id": cards.card_id(content),
            "payload": version.payload,
        }
        line = cards.describe(content)
        if isinstance(content, Unreadable):
            return PlaceholderEntry(**common, **shown, text=line, reason=content.reason)
        return CardEntry(
            **common,
            **shown,
            title=cards.title(content),
            card=text.to_json(content.payload(), "card"),
            line=line,
            form_id=cards.form_id(content),
            degraded=cards.degraded(content, ()),
        )


def _common(event: Event, seqs: tuple[int, ...]) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "timestamp": time_of(event),
        "turn_id": event.turn_id,
        "step_id": event.step_id,
        "source_event_seqs": seqs,
    }
