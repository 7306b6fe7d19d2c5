"""Labels for sessions whose source gives none, and ids that only one of them can have."""

from collections.abc import Iterable

from storage.events import AssistantMessage, Event, UserMessage
from storage.transfer.formats.shared.foreign import ImportWarnings, derived_id, valid_id
from storage.transfer.formats.shared.log_builder import label_of


def label_of_events(events: Iterable[Event]) -> str | None:
    """A label from the first text that a user or an assistant said."""
    said = (event.content for event in events if isinstance(event, UserMessage | AssistantMessage))
    return next((label for content in said if (label := label_of(content))), None)


def id_from_first_record(format: str, location: str, first: object, warnings: ImportWarnings) -> str:
    """An id made of a session's first record, as it has none that is legal here; counted. Raises BadInput."""
    id = derived_id(format, location, first)
    warnings.add("session", "got an id made of its first record, as it has none that is legal here")
    return id


class SessionIds:
    """Ids of the sessions of a document, each given out once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def claim(self, value: object, warnings: ImportWarnings) -> str | None:
        """The id where a session can have it, and none before had it; else None."""
        id = valid_id(value)
        if id is None:
            return None
        if id in self._taken:
            warnings.add("session", "lost its id, as an earlier one has the same")
            return None
        self._taken.add(id)
        return id
