"""Labels for sessions whose source gives none, and ids that only one of them can have."""

from collections.abc import Iterable

from storage.events import AssistantMessage, Event, UserMessage
from storage.transfer.formats.dialogue import label_of
from storage.transfer.formats.foreign import ImportWarnings, legal_id, made_id


def label_of_events(events: Iterable[Event]) -> str | None:
    """A label from the first text that a user or an assistant said."""
    said = (event.content for event in events if isinstance(event, UserMessage | AssistantMessage))
    return next((label for content in said if (label := label_of(content))), None)


def id_by_first(format: str, place: str, first: object, losses: ImportWarnings) -> str:
    """An id made of a session's first record, as it has none that is legal here; counted. Raises BadInput."""
    id = made_id(format, place, first)
    losses.add("session", "got an id made of its first record, as it has none that is legal here")
    return id


class OwnIds:
    """Ids of the sessions of a document, each given out once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, value: object, losses: ImportWarnings) -> str | None:
        """The id where a session can have it, and none before had it; else None."""
        id = legal_id(value)
        if id is None:
            return None
        if id in self._taken:
            losses.add("session", "lost its id, as an earlier one has the same")
            return None
        self._taken.add(id)
        return id
