"""Labels for sessions whose source gives none."""

from collections.abc import Iterable

from storage.events import AssistantMessage, Event, UserMessage
from storage.formats.dialogue import label_of


def label_of_events(events: Iterable[Event]) -> str | None:
    """A label from the first text that a user or an assistant said."""
    said = (event.content for event in events if isinstance(event, UserMessage | AssistantMessage))
    return next((label for content in said if (label := label_of(content))), None)
