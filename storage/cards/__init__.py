"""Cards: what a frontend shows besides texts. A payload is text in the log; this reads, describes and writes it."""

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
# A payload spells a field's name as it is, or with escapes.
_ID_OR_ESCAPE = re.compile(r"\bid\b|\\")

CardKey = tuple[str, str]
"""Type and payload id of a card."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A card that can't be shown, and why. `id` and `title` are known where the payload is at least a mapping."""

    type: str
    reason: str
    id: str | None = None
    title: str | None = None


def read_card(card_type: str, payload: str) -> Card | Unreadable:
    """Reads a payload, YAML or JSON. One without `type` has the type that its event names."""
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
        return Unreadable(card_type, f"{_path(first['loc'])}: {first['msg']}", **known)


def write_card(card: Card) -> str:
    """The card's payload as YAML. Reading it gives the same card."""
    return notation.dump(card.payload())


def to_yaml(card: JsonText, card_type: str) -> str:
    """The payload, YAML, of a card given as JSON text; its `type` is filled in if it has none. Raises BadInput."""
    value = text.from_json(card)
    if isinstance(value, dict) and "type" not in value:
        value = {"type": card_type, **value}
    return notation.dump(value)


def to_json(payload: str) -> JsonText:
    """A payload, YAML or JSON, as JSON text. Raises BadInput, with line and column, for what can't be read."""
    return text.to_json(notation.load(payload), "payload")


def card_id(card: Card | Unreadable) -> str | None:
    """The payload's own id as text; None if it is empty."""
    return _as_text(card.id)


def key(card_type: str, card: Card | Unreadable) -> CardKey | None:
    """The key that all versions of a card share; None for a card without an id."""
    id = card_id(card)
    return None if id is None else (card_type, id)


def may_have_key(payload: str) -> bool:
    """Whether the card may have an id: a quick check without false negatives."""
    return _ID_OR_ESCAPE.search(payload) is not None


def title(card: Card | Unreadable) -> str | None:
    """The card's title as text; None if it is empty."""
    return _as_text(card.title)


def describe(card: Card | Unreadable) -> str:
    """One short line for a model that takes no cards, such as `[Form shown: Well parameters]`."""
    kind = card.type if isinstance(card, Unreadable) else card.name
    about = _line(title(card) or card_id(card) or "", MAX_TITLE)
    return f"[{_line(kind, MAX_NAME) or 'Card'} shown{about and ': '}{about}]"


def form_id(card: Card | Unreadable) -> str | None:
    """The id of the form definition that a card needs; None if it needs none."""
    return _as_text(card.form_id) if isinstance(card, Form) else None


def degraded(card: Card | Unreadable, defined: Collection[str]) -> str | None:
    """Why a card is read-only, given the ids of the existing form definitions; None if it is not."""
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


def _line(value: str, max_length: int) -> str:
    joined = " ".join(value.split())
    return joined if len(joined) <= max_length else joined[: max_length - 1] + "…"


def _path(parts: tuple[int | str, ...]) -> str:
    """A path in a payload, such as `items[2].name`."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path or "payload"
