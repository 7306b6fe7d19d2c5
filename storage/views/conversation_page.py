"""A page of a conversation, from as little of the log as decides what is on it.

What stands in a page depends on events outside it: hides after it, results of its calls, chunks that run across its
ends, the bound before its first calls, and cards with the type and id of one of its own. `page` finds out which, and
asks for them.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from storage import cards, errors
from storage.cards import Card, Unreadable
from storage.events import AssistantChunk, CardEvent, Event
from storage.views.conversation import CardKey, Conversation, card_key, is_bound
from storage.views.conversation_entry import CardEntry, Entry, PlaceholderEntry, TextEntry, ToolEntry

MAX_ENTRIES = 1_000
MAX_BYTES = 4 * 1024 * 1024
DEFAULT = 200

_HIDES = frozenset({"surface/hide"})
_CARDS = frozenset({"card"})
_BOUNDS = frozenset({"turn/start", "turn/end", "step/start", "step/end", "user/message", "assistant/message"})
_TOOLS = _BOUNDS | {"tool/call", "tool/result"}
_SMALLEST_STEP = 64
_LARGEST_STEP = 8_000


@dataclass(frozen=True, slots=True)
class Need:
    """A question: the events with start <= seq < stop, of these types or of all, from the newest or oldest on.

    With `keys` only cards of these types and ids matter among the cards; others may be left out.
    """

    start: int
    stop: int
    newest_first: bool = False
    types: frozenset[str] | None = None
    keys: frozenset[CardKey] | None = None


class Found(Protocol):
    """An answer: events in seq order, and how far they reach (reading forward: the next seq, else the lowest)."""

    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def reached(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Entries in seq order. `next_seq` is where to read on, `prev_seq` where to read back (None: nothing before)."""

    entries: list[Entry]
    next_seq: int
    prev_seq: int | None
    head: int


def page(
    head: int,
    counts: Mapping[str, int],
    *,
    start: int = 0,
    stop: int | None = None,
    count: int = DEFAULT,
    newest_first: bool = False,
    include_system: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Generator[Need, Found, ConversationPage]:
    """The first, or the newest, `count` entries with start <= seq < stop, as the log up to `head` shows them.

    Ends before `max_bytes` but holds at least one entry. `counts` are the log's events by wire type, as its totals
    have them. The caller drives it: `needs = page(...)`, `need = next(needs)`, then `need = needs.send(answer)` until
    StopIteration, whose value is the page. An answer may stop short of what was asked, if it makes some progress.

    The entries are those of the whole log's conversation. Read are the events of the page and a few around it; hides
    after it; where it has cards with an id, other cards of their types and ids, and hides since the first of those;
    where it has calls without a result, calls, results and bounds after it until there is one. A store that finds
    cards by `keys` answers from an index; one that does not looks through the log's cards.
    """
    stop = head if stop is None else min(stop, head)
    start = min(start, head)
    if count == 0 or start >= stop:
        at = stop if newest_first else start
        return ConversationPage([], at, at or None, head)
    window = _Window(head, counts, start, stop, newest_first, include_system)
    yield from window.read_hides()
    yield from window.grow(count)
    while True:
        shown = window.shown()
        chosen = _cut(shown[::-1] if newest_first else shown, count, max_bytes)
        if len(chosen) == len(shown) < count and not window.exhausted:
            yield from window.grow(count)
        elif not (yield from window.settle(chosen)):
            break
    exhausted = len(chosen) == len(shown) and window.exhausted
    if newest_first:
        reached = start if exhausted else chosen[-1].seq
        return ConversationPage(chosen[::-1], stop, reached or None, head)
    return ConversationPage(chosen, stop if exhausted else chosen[-1].seq + 1, start or None, head)


def _cut(entries: Sequence[Entry], count: int, max_bytes: int) -> list[Entry]:
    chosen: list[Entry] = []
    for entry in islice(entries, count):
        max_bytes -= _size(entry)
        if max_bytes < 0 and chosen:
            break
        chosen.append(entry)
    return chosen


def _size(entry: Entry) -> int:
    match entry:
        case TextEntry():
            texts = [entry.content, entry.blocks]
        case CardEntry():
            texts = [entry.card, entry.payload]
        case PlaceholderEntry():
            texts = [entry.payload]
        case ToolEntry(invocation=call):
            texts = [call.input_params, call.output_preview, call.error, call.retrieval_details]
    return sum(len(text.encode()) for text in texts if text)


class _Window:
    """The events known so far: all of [low, high), and single ones outside."""

    def __init__(
        self,
        head: int,
        counts: Mapping[str, int],
        start: int,
        stop: int,
        newest_first: bool,
        include_system: bool,
    ) -> None:
        self._head = head
        self._counts = counts
        self._start = start
        self._stop = stop
        self._newest_first = newest_first
        self._include_system = include_system
        self._low = self._high = stop if newest_first else start
        self._around = _SMALLEST_STEP
        self._tools_to = 0
        self._bounds = (head, -1)
        self._known: dict[int, Event] = {}
        self._read: dict[tuple[str, str], Card | Unreadable] = {}
        self._keys: set[CardKey] = set()

    @property
    def exhausted(self) -> bool:
        """Whether all of the page's range is known."""
        return self._low <= self._start and self._high >= self._stop

    def read_hides(self) -> Generator[Need, Found]:
        """Learns the hides that the window will not come to."""
        if self._counts.get("surface/hide", 0) > 0:
            yield from self._learn(self._stop if self._newest_first else self._start, self._head, _HIDES)

    def grow(self, count: int) -> Generator[Need, Found]:
        """Reads on in the page's direction, each time as much again, so that folding anew costs little."""
        yield from self._extend(max(2 * count, self._high - self._low), back=self._newest_first)

    def shown(self) -> list[Entry]:
        """The entries in the window, as far as is known."""
        folded = Conversation(self._read_card).add_all(self._known[seq] for seq in sorted(self._known))
        low, high = max(self._low, self._start), min(self._high, self._stop)
        return [entry for entry in folded.entries(include_system=self._include_system) if low <= entry.seq < high]

    def settle(self, chosen: Sequence[Entry]) -> Generator[Need, Found, bool]:
        """Learns more of what decides these entries; whether there was more to learn."""
        uncertain = any(self._uncertain(entry) for entry in chosen)
        if uncertain or (self._high < self._head and any(self._runs_on(entry) for entry in chosen)):
            yield from self._extend(self._around, back=uncertain)
            self._around *= 2
            return True
        if (yield from self._learn_cards(chosen)):
            return True
        waiting = any(isinstance(entry, ToolEntry) and entry.invocation.success is None for entry in chosen)
        known_to = max(self._tools_to, self._high)
        if waiting and known_to < self._head:
            self._tools_to = min(known_to + _step(known_to - self._low), self._head)
            yield from self._learn(known_to, self._tools_to, _TOOLS)
            return True
        return False

    def _is_chunks(self, entry: Entry) -> bool:
        return isinstance(self._known[entry.seq], AssistantChunk)

    def _uncertain(self, entry: Entry) -> bool:
        """Whether events before the window may decide the entry: no bound sets it apart from them."""
        first_bound, _ = self._bounds
        if self._low == 0 or first_bound < entry.seq:
            return False
        return isinstance(entry, ToolEntry) or self._is_chunks(entry)

    def _runs_on(self, entry: Entry) -> bool:
        """Whether the entry is of chunks, and more of them may come behind the window."""
        _, last_bound = self._bounds
        return last_bound < entry.seq and self._is_chunks(entry)

    def _extend(self, step: int, *, back: bool) -> Generator[Need, Found]:
        """Moves an end of the window: to that of the page at most, or beyond it if it is there."""
        if back:
            floor = self._start if self._low > self._start else 0
            found = yield Need(max(floor, self._low - _step(step)), self._low, newest_first=True)
            _check_progress(found.reached < self._low, self._low)
            self._low = found.reached
        else:
            ceiling = self._stop if self._high < self._stop else self._head
            found = yield Need(self._high, min(ceiling, self._high + _step(step)))
            _check_progress(found.reached > self._high, self._high)
            self._high = found.reached
        for event in found.events:
            self._known[event.seq] = event
            first, last = self._bounds
            if is_bound(event):
                self._bounds = (min(first, event.seq), max(last, event.seq))

    def _learn(
        self, start: int, stop: int, types: frozenset[str], keys: frozenset[CardKey] | None = None
    ) -> Generator[Need, Found, int]:
        """Learns single events; the seq of the first that was there, or `stop`."""
        first = stop
        while start < stop:
            found = yield Need(start, stop, types=types, keys=keys)
            _check_progress(found.reached > start, start)
            start = found.reached
            for event in found.events:
                if keys is None or not isinstance(event, CardEvent) or _may_be_one_of(event, keys):
                    self._known[event.seq] = event
                    first = min(first, event.seq)
        return first

    def _learn_cards(self, chosen: Sequence[Entry]) -> Generator[Need, Found, bool]:
        """Learns the other versions of the window's cards, and what hides them, if a chosen card may have some."""
        if not any(isinstance(entry, CardEntry | PlaceholderEntry) and entry.card_id for entry in chosen):
            return False
        inside = [event for event in self._inside() if isinstance(event, CardEvent)]
        keys = frozenset(filter(None, (self._key(event) for event in inside))) - self._keys
        if not keys or len(inside) == self._counts.get("card", 0):
            return False
        self._keys |= keys
        first = yield from self._learn(0, self._low, _CARDS, keys)
        if self._counts.get("surface/hide", 0) > 0:
            yield from self._learn(first, self._low, _HIDES)
        yield from self._learn(self._high, self._head, _CARDS, keys)
        return True

    def _inside(self) -> list[Event]:
        return [self._known[seq] for seq in range(self._low, self._high) if seq in self._known]

    def _key(self, event: CardEvent) -> CardKey | None:
        return card_key(event.card_type, self._read_card(event.card_type, event.payload))

    def _read_card(self, card_type: str, payload: str) -> Card | Unreadable:
        card = self._read.get((card_type, payload))
        if card is None:
            card = self._read[card_type, payload] = cards.read_card(card_type, payload)
        return card


def _step(wanted: int) -> int:
    return min(max(wanted, _SMALLEST_STEP), _LARGEST_STEP)


def _check_progress(progress: bool, at: int) -> None:
    if not progress:
        raise errors.SapwoodError(f"an answer about the log makes no progress at {at}")


def _may_be_one_of(event: CardEvent, keys: frozenset[CardKey]) -> bool:
    return any(kind == event.card_type and cards.may_have_id(event.payload, id) for kind, id in keys)
