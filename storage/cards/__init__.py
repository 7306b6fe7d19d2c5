"""Cards: what a frontend shows beside texts. In the log a payload is text; here it is read, described and written."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from pydantic import ValidationError

from storage import errors, text
from storage.cards import payload as notation
from storage.cards.definition import FormDefinition
from storage.cards.models import TYPES, Card, Form
from storage.events import JsonText

__all__ = [
    "TYPES",
    "Card",
    "CardKey",
    "Form",
    "FormDefinition",
    "Unreadable",
    "card_id",
    "degraded",
    "describe",
    "form_id",
    "key",
    "may_have_key",
    "read_card",
    "title",
    "to_json",
    "to_yaml",
    "write_card",
]

MAX_NAME = 60
MAX_TITLE = 200
# A field's name stands in a payload as it is, or with escapes.
_ID_OR_ESCAPE = re.compile(r"\bid\b|\\")

CardKey = tuple[str, str]
"""Type and payload id of a card."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A card that can't be shown, and why. `id` and `title` are there where the payload is at least a mapping."""

    type: str
    reason: str
    id: str | None = None
    title: str | None = None


def read_card(card_type: str, payload: str) -> Card | Unreadable:
    """The card of a payload, YAML or JSON. A payload without `type` is of the type that its event names."""
    try:
        value = notation.load(payload)
    except errors.BadInput as error:
        return Unreadable(card_type, f"the payload can't be read: {error.message}")
    if not isinstance(value, dict):
        return Unreadable(card_type, "the payload is not a mapping of fields")
    known = {"id": _as_text(value.get("id")), "title": _as_text(value.get("title"))}
    kind = TYPES.get(card_type)
    if kind is None:
        return Unreadable(card_type, f"cards of type {card_type[:MAX_NAME]!r} are unknown here", **known)
    named = value.get("type")
    if named is not None and named != card_type:
        return Unreadable(card_type, f"type: the payload is a {str(named)[:MAX_NAME]!r}, not a {card_type}", **known)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return Unreadable(card_type, f"{_place(first['loc'])}: {first['msg']}", **known)


def write_card(card: Card) -> str:
    """The card's payload as YAML: reading it gives the same card."""
    return notation.dump(card.payload())


def to_yaml(card: JsonText) -> str:
    """The payload, YAML, of a card given as JSON text. Raises BadInput."""
    return notation.dump(text.from_json(card))


def to_json(payload: str) -> JsonText:
    """A payload, YAML or JSON, as JSON text. Raises BadInput, with line and column, for what can't be read."""
    return text.to_json(notation.load(payload), "payload")


def card_id(card: Card | Unreadable) -> str | None:
    """The payload's own id as text; an empty one is none."""
    return _as_text(card.id)


def key(card_type: str, card: Card | Unreadable) -> CardKey | None:
    """What versions of one card have in common; None for a card without an id."""
    id = card_id(card)
    return None if id is None else (card_type, id)


def may_have_key(payload: str) -> bool:
    """Whether the payload may be of a card with an id: a quick look that never denies one that has it."""
    return _ID_OR_ESCAPE.search(payload) is not None


def title(card: Card | Unreadable) -> str | None:
    """The card's title as text; an empty one is none."""
    return _as_text(card.title)


def describe(card: Card | Unreadable) -> str:
    """One short line for a model that takes no cards, e.g. `[Form shown: Well parameters]`."""
    kind = card.type if isinstance(card, Unreadable) else card.name
    about = _line(title(card) or card_id(card) or "", MAX_TITLE)
    return f"[{_line(kind, MAX_NAME) or 'Card'} shown{about and ': '}{about}]"


def form_id(card: Card | Unreadable) -> str | None:
    """Which form definition a card needs."""
    return _as_text(card.form_id) if isinstance(card, Form) else None


def degraded(card: Card | Unreadable, defined: Collection[str]) -> str | None:
    """Why a card is shown read-only, given the ids of the form definitions that are there; None if it is not."""
    if not isinstance(card, Form):
        return None
    wanted = form_id(card)
    if wanted is None:
        return "The form is read-only: it names no formId."
    return None if wanted in defined else f"The form is read-only: there is no form definition {wanted[:MAX_NAME]!r}."


def _as_text(value: object) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    return (value if isinstance(value, str) else text.to_json(value, "id")) or None


def _line(value: str, longest: int) -> str:
    joined = " ".join(value.split())
    return joined if len(joined) <= longest else joined[: longest - 1] + "…"


def _place(parts: tuple[int | str, ...]) -> str:
    """Where in a payload, e.g. `items[2].name`."""
    place = ""
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place or "payload"
