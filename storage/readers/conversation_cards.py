"""The cards of a page: their positions, and their newest versions, which may be anywhere in the log."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from storage import cards
from storage.cards import Card, CardKey, Unreadable
from storage.database import MarkKind, MarkSpan, Queries
from storage.events import CardEvent, SurfaceHide
from storage.log import reading
from storage.log.marks import card_mark
from storage.session import SessionMeta
from storage.views.conversation_entry import CardItem, Entry
from storage.views.conversation_window import HIDES, Window
from storage.views.live_card import LiveCard, live_card, unhidden


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card that is shown: its first version, at its position, and the seq of its newest."""

    event: CardEvent
    version: int

    @property
    def seq(self) -> int:
        """Its position."""
        return self.event.seq


class CardReading:
    """Reads the versions of cards outside a window."""

    def __init__(self, queries: Queries, meta: SessionMeta) -> None:
        self._queries = queries
        self._meta = meta
        self._contents: dict[int, Card | Unreadable] = {}
        self._events: dict[int, CardEvent] = {}
        self._seqs: dict[CardKey, set[int]] = {}
        self._hides: dict[int, SurfaceHide] = {}
        self._hides_from = meta.head

    async def shown(self, window: Window) -> list[ShownCard]:
        """The cards whose position is in the window, in seq order."""
        events = window.cards()
        keyed: dict[CardKey, list[int]] = defaultdict(list)
        alone: list[int] = []
        for event in events:
            self._events[event.seq] = event
            key = cards.key(event.card_type, self._content(event))
            (alone if key is None else keyed[key]).append(event.seq)
        new = {key: seqs for key, seqs in keyed.items() if key not in self._seqs}
        self._seqs |= {key: set(seqs) for key, seqs in new.items()}
        await self._find({key: [0, self._meta.head] for key in new})
        firsts = {key: min(self._seqs[key]) for key in keyed}
        hides = await self._hides_since(window, min(firsts.values(), default=window.low))
        await self._find({key: _sections(self._seqs[key], hides, self._meta.head) for key in new})
        live = [live_card(sorted(self._seqs[key]), hides) for key in keyed]
        live += [LiveCard(seq, seq) for seq in unhidden(alone, hides)]
        inside = {event.seq for event in events}
        found = [card for card in live if card is not None and card.position in inside]
        return [
            ShownCard(self._events[card.position], card.version) for card in sorted(found, key=attrgetter("position"))
        ]

    async def entry(self, card: ShownCard) -> Entry | None:
        """The card's entry; None if the session was deleted meanwhile, and its newest version with it."""
        version = self._events.get(card.version)
        if version is None:
            seq = card.version
            found = await reading.read(self._queries, self._meta.segments, seq, seq + 1, 1)
            if not found.events or not isinstance(found.events[0], CardEvent):
                return None
            version = self._events[seq] = found.events[0]
        item = CardItem(card.event, self._content(version))
        item.version = version
        return item.entry()

    def _content(self, event: CardEvent) -> Card | Unreadable:
        if event.seq not in self._contents:
            self._contents[event.seq] = cards.read_card(event.card_type, event.payload)
        return self._contents[event.seq]

    async def _find(self, sections: Mapping[CardKey, Sequence[int]]) -> None:
        """Finds the first and the last version of each card between any two neighbors among its seqs."""
        starts = [segment.start for segment in self._meta.segments]
        keys: dict[str, CardKey] = {}
        spans: list[MarkSpan] = []
        for key, ends in sections.items():
            marks = [card_mark(segment.log, key) for segment in self._meta.segments]
            keys |= dict.fromkeys(marks, key)
            inner = [seq for seq in starts if ends and ends[0] < seq < ends[-1]]
            for start, stop in pairwise(sorted({*ends, *inner})):
                spans.append(MarkSpan(marks[bisect_right(starts, start) - 1], start, stop))
        for mark, seq in await self._queries.mark_seqs(MarkKind.CARD, spans) if spans else []:
            self._seqs[keys[mark]].add(seq)

    async def _hides_since(self, window: Window, seq: int) -> Sequence[SurfaceHide]:
        """All hides from `seq` on, or from the start of the window if that is earlier, in order."""
        self._hides |= {hide.seq: hide for hide in window.hides()}
        self._hides_from = min(self._hides_from, window.low)
        if seq < self._hides_from:
            earlier = await read_hides(self._queries, self._meta, seq, self._hides_from)
            self._hides |= {hide.seq: hide for hide in earlier}
            self._hides_from = seq
        return [self._hides[seq] for seq in sorted(self._hides)]


def _sections(seqs: Collection[int], hides: Sequence[SurfaceHide], head: int) -> list[int]:
    """The seqs at which hides separate the versions of a card; empty if none does.

    `seqs` holds at least the first and the last version. Hides that end before the first, or follow the last, separate
    nothing.
    """
    first, last = min(seqs), max(seqs)
    inner = [hide.seq for hide in hides if first < hide.seq < last and hide.to_seq > first]
    return [first, *inner, head] if inner else []


async def read_hides(queries: Queries, meta: SessionMeta, start: int, stop: int) -> list[SurfaceHide]:
    """The hides with start <= seq < stop. Does not read a log without hides."""
    found: list[SurfaceHide] = []
    while meta.totals.types.get("surface/hide") and start < stop:
        part = await reading.read(queries, meta.segments, start, stop, reading.MAX_PAGE_EVENTS, types=HIDES)
        found += [event for event in part.events if isinstance(event, SurfaceHide)]
        start = part.reached
    return found
