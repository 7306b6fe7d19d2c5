"""The audit view: each turn of a log as a run, with its status, totals, steps and tool invocations.

A pure fold over the events of a visible log, in seq order. Events outside any turn belong to no run. Replacements and
hides change nothing, as they concern only the surface.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from storage.events import (
    AssistantChunk,
    Event,
    Instant,
    JsonText,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
    SurfaceOpKind,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.log.state import LARGEST_FLOAT
from storage.views.run_tools import ToolInvocation, Unanswered, answered, called
from storage.views.run_values import CLEARED_FEEDBACK, duration, given, model_input, time_of


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run. `index` counts from 0 per agent name. A step still open when its turn ends, ends with it.

    `seq` is that of its step/start.
    """

    step_id: str
    seq: int
    index: int
    agent_name: str | None
    model_input: JsonText | None
    started_at: Instant
    model_output: JsonText | None = None
    thought: str | None = None
    error: str | None = None
    duration_ms: float | None = None
    token_count: float | None = None
    ended_at: Instant | None = None
    tool_invocations: tuple[ToolInvocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One turn as seen from one session: the whole of it, inherited events included. Times in ms since 1970.

    `updated_at` is the time of its newest event. Chunks of streamed answers do not count, unless one is its first event
    that is the session's own. `inherited`: none of its events is the session's own. `tool_invocations` are in call
    order, those outside any step included.
    """

    session_id: str
    origin_session_id: str
    turn_id: str
    start_seq: int
    query: str | None
    status: RunStatus
    agent_flow: str | None
    started_at: Instant
    ended_at: Instant | None
    updated_at: Instant
    duration_ms: float | None
    token_count: float
    step_count: int
    tool_call_count: int
    self_evaluation: JsonText | None
    feedback: str | None
    error: str | None
    inherited: bool
    steps: tuple[Step, ...]
    tool_invocations: tuple[ToolInvocation, ...]

    @property
    def id(self) -> str:
        """`<session>/<origin session>/<turn>`."""
        return f"{self.session_id}/{self.origin_session_id}/{self.turn_id}"


def makes_running(event: Event) -> bool:
    """Whether an event of a turn that is pending makes it a running one: any but chunks and feedback."""
    return not isinstance(event, TurnStart | AssistantChunk | RunFeedback)


def first_text(event: Event) -> str | None:
    """The text of a user's message, which may serve as the query of its turn; None if it replaces others."""
    if isinstance(event, UserMessage) and event.surface_op.op is SurfaceOpKind.APPEND:
        return event.content or None
    return None


class Runs:
    """Folds events, in seq order, into the runs of a session whose own events start at seq `own_start`.

    A fold that starts at a turn/start in the middle of a log leaves out older turns, and finds the same runs of the
    others. Turns that start at seq `stop` or later are left out too.
    """

    def __init__(self, session_id: str, own_start: int = 0, stop: int | None = None) -> None:
        self._session_id = session_id
        self._own_start = own_start
        self._stop = stop
        self._turns: dict[str, _Turn] = {}
        self._unanswered: Unanswered[tuple[_Turn, int] | None] = Unanswered()

    def add(self, event: Event) -> Self:
        """Folds one more event."""
        if isinstance(event, TurnStart):
            self._unanswered.turn_started()
            if self._stop is None or event.seq < self._stop:
                self._turns.setdefault(event.turn_id or "", _Turn(event))
        turn = self._turns.get(event.turn_id or "")
        if turn is not None:
            turn.add(event, own_start=self._own_start)
        match event:
            case ToolCall():
                self._unanswered.add(event.call_id, None if turn is None else turn.call(event))
            case ToolResult() if event.surface_op.op is SurfaceOpKind.APPEND:
                call = self._unanswered.answer(event.call_id)
                if call is not None:
                    holder, index = call
                    holder.invocations[index] = answered(holder.invocations[index], event)
        return self

    def add_all(self, events: Iterable[Event]) -> Self:
        """Folds events in order."""
        for event in events:
            self.add(event)
        return self

    @property
    def open(self) -> bool:
        """Whether any of the turns has not ended."""
        return any(turn.end is None for turn in self._turns.values())

    @property
    def waiting(self) -> bool:
        """Whether any of their tool invocations has no result."""
        return any(each.success is None for turn in self._turns.values() for each in turn.invocations)

    def done(self) -> list[Run]:
        """The runs after the events folded so far, in the order of their turn starts."""
        return [turn.run(self._session_id, self._own_start) for turn in self._turns.values()]


def runs(events: Iterable[Event], session_id: str, own_start: int = 0) -> list[Run]:
    """The runs of a log, in the order of their turn starts."""
    return Runs(session_id, own_start).add_all(events).done()


@dataclass(slots=True)
class _Turn:
    start: TurnStart
    status: RunStatus = RunStatus.PENDING
    first_text: str | None = None
    updated_at: Instant = 0
    last_seq: int = -1
    end: TurnEnd | None = None
    self_evaluation: JsonText | None = None
    feedback: str | None = None
    tokens: float = 0.0
    steps: dict[str, Step] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    per_agent: Counter[str | None] = field(default_factory=Counter)
    invocations: list[ToolInvocation] = field(default_factory=list)

    def add(self, event: Event, own_start: int) -> None:
        if not isinstance(event, AssistantChunk) or self.last_seq < own_start <= event.seq:
            self.updated_at = time_of(event)
        self.last_seq = event.seq
        if self.status is RunStatus.PENDING and makes_running(event):
            self.status = RunStatus.RUNNING
        match event:
            case TurnEnd() if self.end is None:
                self.end, self.status = event, event.status
                self.self_evaluation = given(event.self_evaluation) or self.self_evaluation
                for step in list(self.open):
                    self._end_step(step, time_of(event), {})
            case StepStart(step_id=str(step)) if step not in self.steps:
                self._start_step(step, event)
            case StepEnd(step_id=str(step)) if step in self.open:
                self.tokens = min(self.tokens + (event.token_count or 0.0), LARGEST_FLOAT)
                self._end_step(step, time_of(event), _measures(event))
            case RunFeedback():
                if event.feedback is not None:
                    self.feedback = None if event.feedback == CLEARED_FEEDBACK else event.feedback
                if event.self_evaluation is not None:
                    self.self_evaluation = given(event.self_evaluation)
            case UserMessage() if self.first_text is None:
                self.first_text = first_text(event)

    def _start_step(self, step: str, event: StepStart) -> None:
        index = self.per_agent[event.agent_name]
        self.per_agent[event.agent_name] += 1
        self.open.append(step)
        self.steps[step] = Step(
            step, event.seq, index, event.agent_name, model_input(event.model_input), time_of(event)
        )

    def _end_step(self, step: str, at: Instant, measures: dict[str, object]) -> None:
        self.open.remove(step)
        changes = {"ended_at": at, "duration_ms": duration(self.steps[step].started_at, at)} | measures
        self.steps[step] = replace(self.steps[step], **changes)  # type: ignore[arg-type]  # names and types of Step's

    def call(self, event: ToolCall) -> tuple["_Turn", int]:
        """Adds the invocation of a call, in the step that it names, else in the only open one. Returns where it is."""
        step = event.step_id or (self.open[0] if len(self.open) == 1 else None)
        self.invocations.append(called(event, step))
        return self, len(self.invocations) - 1

    def run(self, session_id: str, own_start: int) -> Run:
        """The turn as a run, as seen from that session."""
        start, end = self.start, self.end
        in_step: dict[str | None, list[ToolInvocation]] = {}
        for invocation in self.invocations:
            in_step.setdefault(invocation.step_id, []).append(invocation)
        return Run(
            session_id=session_id,
            origin_session_id=start.session_id,
            turn_id=start.turn_id or "",
            start_seq=start.seq,
            query=self.first_text if start.query is None else start.query,
            status=self.status,
            agent_flow=start.agent_flow,
            started_at=time_of(start),
            ended_at=None if end is None else time_of(end),
            updated_at=self.updated_at,
            duration_ms=None if end is None else duration(time_of(start), time_of(end)),
            token_count=self.tokens,
            step_count=len(self.steps),
            tool_call_count=len(self.invocations),
            self_evaluation=self.self_evaluation,
            feedback=self.feedback,
            error=None if end is None else end.error,
            inherited=self.last_seq < own_start,
            steps=tuple(
                replace(step, tool_invocations=tuple(in_step.get(step.step_id, ()))) for step in self.steps.values()
            ),
            tool_invocations=tuple(self.invocations),
        )


def _measures(event: StepEnd) -> dict[str, object]:
    """The fields of its step that a step/end sets; the duration only if it has one."""
    measures: dict[str, object] = {
        "model_output": given(event.model_output),
        "thought": event.thought,
        "error": event.error,
        "token_count": event.token_count,
    }
    return measures if event.duration_ms is None else measures | {"duration_ms": event.duration_ms}
