"""Slots: the documents of a session that are written over, and the definitions of forms."""

from collections.abc import Collection
from typing import Any, Protocol

from storage.cards.definition import FormDefinition
from storage.session import SessionMeta, Slots


class SlotQueries(Protocol):
    """Reading slots and form definitions. Sessions that are unknown, or have no slots document, are left out."""

    async def slots(self, space: str, ids: Collection[str], max_bytes: int | None = None) -> dict[str, Slots]:
        """Slots by session id.

        With `max_bytes`, those of the first ids, in the order given, whose contents fit; at least one if any is found.
        A store may count the documents' bytes as well.
        """
        ...

    async def slots_between(self, space: str, first: SessionMeta, last: SessionMeta, max_bytes: int) -> list[Slots]:
        """Slots of the sessions from `first` to `last`, by (createdAt, id), until the next would pass `max_bytes`.

        At least one if any is found.
        """
        ...

    async def slot_marks(self, space: str, id: str | None) -> list[Slots]:
        """The slots of one session, or of all in the space, without their contents; in no order."""
        ...

    async def forms(self, space: str, ids: Collection[str] | None) -> list[FormDefinition]:
        """The form definitions with these ids, or all of the space, by id. Unknown ids are left out."""
        ...


class SlotWrites(Protocol):
    """Writing slots and form definitions."""

    async def insert_slots(self, slots: Slots) -> None:
        """Writes the slots of a new session. Notification: `slots`."""
        ...

    async def change_slots(self, slots: Slots, changes: dict[str, Any]) -> Slots:
        """Sets slots, by attribute name, and updatedAt of each one set. Returns the new document.

        `slots` are the slots as this transaction has read them. Notification: `slots`.
        """
        ...

    async def put_form(self, form: FormDefinition) -> FormDefinition:
        """Writes a form definition, over the one of its id if there is one. Returns it with its updatedAt."""
        ...
