"""Labels and ids for sessions."""

from collections.abc import Iterable

from storage.events import AssistantMessage, Event, UserMessage
from storage.transfer.formats.shared.foreign import ImportWarnings, derived_id, valid_id
from storage.transfer.formats.shared.log_builder import label_of


def label_of_events(events: Iterable[Event]) -> str | None:
    """Make a label from the first user or assistant message that has text."""
    contents = (event.content for event in events if isinstance(event, UserMessage | AssistantMessage))
    return next((label for content in contents if (label := label_of(content))), None)


def id_from_first_record(format: str, location: str, first: object, warnings: ImportWarnings) -> str:
    """Derive an id from the first record of a session that has no valid one, and count that. Raises BadInput."""
    id = derived_id(format, location, first)
    warnings.add("session", "got an id made from its first record, as it has no valid one")
    return id


class SessionIds:
    """The ids of the sessions of a document, each used once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def claim(self, value: object, warnings: ImportWarnings) -> str | None:
        """Return the id if it is valid and no earlier session has it, else None."""
        id = valid_id(value)
        if id is None:
            return None
        if id in self._taken:
            warnings.add("session", "lost its id, as an earlier one has the same")
            return None
        self._taken.add(id)
        return id
