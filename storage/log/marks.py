"""Marks under which a log's cards are found by their type and payload id."""

import hashlib
from collections.abc import Sequence

from storage import cards
from storage.cards import CardKey
from storage.events import CardEvent, Event


def card_mark(log: str, key: CardKey) -> str:
    """Under what the cards of one type and id are found in a log. The length keeps any two keys apart."""
    kind, id = key
    content = f"{len(kind)}/{kind}/{id}".encode(errors="surrogatepass")
    return f"{log}/{hashlib.sha256(content).hexdigest()[:32]}"


def marked_cards(log: str, first: int, events: Sequence[Event]) -> list[tuple[str, int]]:
    """Mark and seq of each card with an id among events, the first of which is at seq `first` of the log.

    A payload that can't be read has no id.
    """
    return [
        (card_mark(log, key), first + place)
        for place, event in enumerate(events)
        if isinstance(event, CardEvent) and (key := _key(event)) is not None
    ]


def _key(event: CardEvent) -> CardKey | None:
    if not cards.may_have_key(event.payload):
        return None
    return cards.key(event.card_type, cards.read_card(event.card_type, event.payload))
