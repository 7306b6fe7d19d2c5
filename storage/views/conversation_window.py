"""The part of a log that decides a part of its conversation: texts and tool calls; cards are read separately.

An answer or a call depends on the events around it, up to the next bound. A hide acts on what is before it, so hides
after the window count, and those before it do not.
"""

from collections.abc import Iterable
from operator import attrgetter

from storage.events import AssistantChunk, CardEvent, Event, SurfaceHide
from storage.views.conversation import Conversation, is_bound
from storage.views.conversation_entry import Entry, ToolEntry

HIDES = frozenset({"surface/hide"})
TOOLS = frozenset(
    {
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "user/message",
        "assistant/message",
        "tool/call",
        "tool/result",
    }
)
"""Types of the events that decide which call a result answers."""


class Window:
    """All events with low <= seq < high, all later hides, and all events of `TOOLS` up to `tools_to`.

    It is empty at first, at the seq `at`, and grows at both ends.
    """

    def __init__(self, at: int) -> None:
        self.low = self.high = self.tools_to = at
        self._known: dict[int, Event] = {}
        self._first_bound: int | None = None
        self._last_bound = -1

    def grow(self, events: Iterable[Event], *, low: int | None = None, high: int | None = None) -> None:
        """Adds the events between an end of the window and the new end, `low` or `high`."""
        self.low = self.low if low is None else low
        self.high = self.high if high is None else high
        self.tools_to = max(self.tools_to, self.high)
        for event in events:
            self._known[event.seq] = event
            if is_bound(event):
                self._first_bound = event.seq if self._first_bound is None else min(self._first_bound, event.seq)
                self._last_bound = max(self._last_bound, event.seq)

    def learn(self, events: Iterable[Event], *, tools_to: int | None = None) -> None:
        """Adds hides after the window, or the events of `TOOLS` after it up to `tools_to`."""
        self._known.update((event.seq, event) for event in events)
        self.tools_to = self.tools_to if tools_to is None else tools_to

    def entries(self, *, include_system: bool) -> list[Entry]:
        """The texts and tool calls in the window, as far as they are known, in seq order."""
        events = sorted(self._known.values(), key=attrgetter("seq"))
        folded = Conversation().add_all(event for event in events if not isinstance(event, CardEvent))
        return [entry for entry in folded.entries(include_system=include_system) if entry.seq < self.high]

    def cards(self) -> list[CardEvent]:
        """The card events in the window, hidden or not, in seq order."""
        found = [event for event in self._known.values() if isinstance(event, CardEvent)]
        return sorted(found, key=attrgetter("seq"))

    def hides(self) -> list[SurfaceHide]:
        """The hides in the window and after it, in seq order."""
        found = [event for event in self._known.values() if isinstance(event, SurfaceHide)]
        return sorted(found, key=attrgetter("seq"))

    def begins_too_late(self, entry: Entry) -> bool:
        """Whether this entry may depend on events before the window."""
        if self.low == 0 or (self._first_bound is not None and self._first_bound < entry.seq):
            return False
        return isinstance(entry, ToolEntry) or self._is_streamed(entry)

    def ends_too_early(self, entry: Entry) -> bool:
        """Whether more chunks of this entry, or the message that holds them whole, may be after the window."""
        return self._last_bound < entry.seq and self._is_streamed(entry)

    def _is_streamed(self, entry: Entry) -> bool:
        return isinstance(self._known[entry.seq], AssistantChunk)


def is_unanswered(entry: Entry) -> bool:
    """Whether the entry is a tool call without a result."""
    return isinstance(entry, ToolEntry) and entry.invocation.success is None
