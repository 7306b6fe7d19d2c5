"""The filter of a query for runs."""

from dataclasses import dataclass, replace

from storage import text
from storage.events import Instant, RunStatus
from storage.views.run_rows import shortened


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects rows of a space that meet all conditions.

    `agent_name` and `tool_name` match names in the session's own events. Times in ms since 1970: started at
    `started_after` or later, and before `started_before`. A run without a duration counts as shorter than any.
    """

    session_id: str | None = None
    status: RunStatus | None = None
    agent_flow: str | None = None
    agent_name: str | None = None
    tool_name: str | None = None
    feedback: str | None = None
    min_duration_ms: float | None = None
    started_after: Instant | None = None
    started_before: Instant | None = None

    def as_stored(self) -> "RunFilter":
        """The same filter with texts shortened as rows store them."""
        return replace(
            self,
            agent_flow=_stored(self.agent_flow),
            agent_name=_stored(self.agent_name),
            tool_name=_stored(self.tool_name),
            feedback=_stored(self.feedback),
        )


def _stored(value: str | None) -> str | None:
    return None if value is None else shortened(text.clean(value))
