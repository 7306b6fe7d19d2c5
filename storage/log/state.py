"""The state of a log at a head: its totals, open turns and open steps. A pure fold over events."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from storage.events import Event, Instant, Model, StepEnd, StepStart, TurnEnd, TurnStart

LARGEST_FLOAT = 1.7976931348623157e308
_TURNS_AND_STEPS = frozenset({"turn/start", "turn/end", "step/start", "step/end"})
"""Types of the events that open or close a turn or a step; most events do not."""


class Totals(Model):
    """Counts by wire type, the sum of step tokens, and the timestamps (ms) of the first and last event."""

    types: dict[str, int] = Field(default_factory=dict)
    tokens: float = 0.0
    first_at: Instant | None = None
    last_at: Instant | None = None


class OpenTurn(Model):
    """A turn that has not ended, with its open steps. The turn "" holds steps started outside any turn."""

    turn: str
    steps: tuple[str, ...] = ()


class LogState(Model):
    """The state of a log after its first `head` events."""

    head: int = 0
    open: tuple[OpenTurn, ...] = ()
    totals: Totals = Totals()


class Fold:
    """Folds events onto a state, in seq order.

    Events must have their turn and step filled in, as stored ones do.
    """

    def __init__(self, state: LogState) -> None:
        self.head = state.head
        self.open: dict[str, list[str]] = {turn.turn: list(turn.steps) for turn in state.open}
        self.types = dict(state.totals.types)
        self.tokens = state.totals.tokens
        self.first_at = state.totals.first_at
        self.last_at = state.totals.last_at

    def add(self, event: Event, at: Instant | None = None) -> Self:
        """Folds one event. `at` is its time if it has no timestamp."""
        self.head += 1
        self.types[event.type] = self.types.get(event.type, 0) + 1
        self.last_at = at if event.timestamp is None else event.timestamp
        self.first_at = self.last_at if self.first_at is None else self.first_at
        if event.type not in _TURNS_AND_STEPS:
            return self
        match event:
            case TurnStart(turn_id=str(turn)):
                self.open[turn] = []
            case TurnEnd(turn_id=str(turn)):
                self.open.pop(turn, None)
            case StepStart(step_id=str(step)):
                self.open.setdefault(event.turn_id or "", []).append(step)
            case StepEnd(step_id=str(step)):
                self._end_step(event.turn_id or "", step)
                self.tokens = min(self.tokens + (event.token_count or 0.0), LARGEST_FLOAT)
        return self

    def _end_step(self, turn: str, step: str) -> None:
        steps = self.open.get(turn, [])
        if step in steps:
            steps.remove(step)
        if turn == "" and not steps:
            self.open.pop("", None)

    def add_all(self, events: Iterable[Event]) -> Self:
        """Folds events in order."""
        for event in events:
            self.add(event)
        return self

    def done(self) -> LogState:
        """The state after the events folded so far."""
        return LogState(
            head=self.head,
            open=tuple(OpenTurn(turn=turn, steps=tuple(steps)) for turn, steps in self.open.items()),
            totals=Totals(types=self.types, tokens=self.tokens, first_at=self.first_at, last_at=self.last_at),
        )
