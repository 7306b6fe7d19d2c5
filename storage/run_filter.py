"""Which rows of runs a query asks for."""

from dataclasses import dataclass, replace

from storage import text
from storage.events import Instant, RunStatus
from storage.views.run_rows import shortened


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which rows of a space: all conditions hold together.

    `agent_name` and `tool_name` are among the names of the session's own events. Times in ms since 1970: started at
    `started_after` or later, and before `started_before`. A run without a duration is shorter than any.
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

    def as_kept(self) -> "RunFilter":
        """The same with texts as rows keep them."""
        return replace(
            self,
            agent_flow=_kept(self.agent_flow),
            agent_name=_kept(self.agent_name),
            tool_name=_kept(self.tool_name),
            feedback=_kept(self.feedback),
        )


def _kept(value: str | None) -> str | None:
    return None if value is None else shortened(text.clean(value))
