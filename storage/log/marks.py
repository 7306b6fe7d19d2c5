"""Index keys under which commits are found by the turns, steps and cards that they hold."""

import hashlib
from collections.abc import Sequence

from storage import cards
from storage.cards import CardKey
from storage.events import CardEvent, Event


def turn_mark(log: str, turn: str) -> str:
    """Index key of a turn start."""
    return f"{log}/{turn}"


def step_mark(log: str, turn: str, step: str) -> str:
    """Index key of a step start. The length keeps any two pairs of ids distinct."""
    return f"{log}/{len(turn)}/{turn}/{step}"


def card_mark(log: str, key: CardKey) -> str:
    """Index key of the cards of one type and payload id. The length keeps any two keys distinct."""
    kind, id = key
    content = f"{len(kind)}/{kind}/{id}".encode(errors="surrogatepass")
    return f"{log}/{hashlib.sha256(content).hexdigest()[:32]}"


def marked_cards(log: str, first: int, events: Sequence[Event]) -> list[tuple[str, int]]:
    """Mark and seq of each card with an id among events that start at seq `first` of the log.

    A payload that can't be read has no id.
    """
    return [
        (card_mark(log, key), seq)
        for seq, event in enumerate(events, first)
        if isinstance(event, CardEvent) and (key := _key(event)) is not None
    ]


def _key(event: CardEvent) -> CardKey | None:
    if not cards.may_have_key(event.payload):
        return None
    return cards.key(event.card_type, cards.read_card(event.card_type, event.payload))
