"""Builds the log of a session, for formats that record messages and calls but not our turns and steps.

A turn runs from the message that starts it to its answer. A step is one model call with the tools that it asked for.
Both end at the record that proves the end: the answer, the last result, or whatever comes next.
"""

import hashlib
from typing import Any, NamedTuple

from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    JsonText,
    RunStatus,
    StepEnd,
    StepStart,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.transfer.formats.shared.foreign import ForeignEvent, ImportWarnings, Step
from storage.transfer.formats.shared.open_calls import CallLayer, OpenCalls

MAX_IDENTIFIER = 256
LABEL_LENGTH = 80
"""Maximum length in characters of a label made from a text."""


class LogState(NamedTuple):
    """What a log has open at one point, small enough to be kept for each record."""

    head: int
    turn: str | None
    step: str | None
    counts: tuple[int, int, int, int]
    calls: CallLayer
    step_end: dict[str, Any]


class LogBuilder:
    """Builds the events of the session `key`; the next one gets the seq `head`. Tracks the open turn and step.

    Events wait until `take_steps` or `take_events`. Times are in ms since 1970; JSON is passed as text. Methods that
    log one event return its seq.
    """

    __slots__ = (
        "_calls",
        "_made_ids",
        "_step_end",
        "_steps",
        "_turns",
        "_unanswered",
        "_waiting",
        "_warnings",
        "head",
        "key",
        "step",
        "turn",
    )

    def __init__(self, key: str, warnings: ImportWarnings) -> None:
        self.key = key
        self.head = 0
        self.turn: str | None = None
        self.step: str | None = None
        self._warnings = warnings
        self._turns = 0
        self._steps = 0
        self._made_ids = 0
        self._waiting: list[ForeignEvent] = []
        self._calls = OpenCalls()
        self._unanswered = 0
        self._step_end: dict[str, Any] = {}

    def state(self) -> LogState:
        """Return the current state, from which another session can continue."""
        counts = (self._turns, self._steps, self._made_ids, self._unanswered)
        return LogState(self.head, self.turn, self.step, counts, self._calls.snapshot(), dict(self._step_end))

    def resume(self, key: str, state: LogState) -> "LogBuilder":
        """Return a builder for another session that continues from an earlier state of this one."""
        other = LogBuilder(key, self._warnings)
        other.head, other.turn, other.step = state.head, state.turn, state.step
        other._turns, other._steps, other._made_ids, other._unanswered = state.counts
        other._calls = OpenCalls(state.calls)
        other._step_end = dict(state.step_end)
        return other

    def fork(self, key: str) -> "LogBuilder":
        """Return a builder for another session that continues from here."""
        return self.resume(key, self.state())

    @property
    def awaits(self) -> bool:
        """Whether the open step has calls without a result."""
        return self._unanswered > 0

    def take_steps(self) -> list[Step]:
        """Return the new events, as steps, since the last call."""
        taken: list[Step] = list(self._waiting)
        self._waiting.clear()
        return taken

    def take_events(self) -> list[Event]:
        """Return the new events since the last call."""
        taken = [logged.event for logged in self._waiting]
        self._waiting.clear()
        return taken

    def add(self, event: Event, replaces: tuple[int, int] | None = None) -> int:
        """Log an event, in the open turn and step unless it names its own; `replaces` is as in `ForeignEvent`."""
        if event.turn_id is None and event.step_id is None and self.turn is not None:
            event = event.model_copy(update={"turn_id": self.turn, "step_id": self.step})
        self._waiting.append(ForeignEvent(self.key, event, replaces))
        self.head += 1
        return self.head - 1

    def start_turn(
        self, query: str | None = None, *, flow: str | None = None, id: str | None = None, time: int | None = None
    ) -> int:
        """Start a turn, named `turn-N` unless an `id` is given. An open turn ends first."""
        self.end_turn()
        self._turns += 1
        self.turn = id or f"turn-{self._turns}"
        self._steps = 0
        self._waiting.append(
            ForeignEvent(self.key, TurnStart(turn_id=self.turn, query=query, agent_flow=flow, timestamp=time))
        )
        self.head += 1
        return self.head - 1

    def end_turn(
        self,
        *,
        status: RunStatus = RunStatus.SUCCESS,
        error: str | None = None,
        evaluation: JsonText | None = None,
        time: int | None = None,
    ) -> None:
        """End the open turn and its step, if there is one."""
        if self.turn is None:
            return
        self.end_step()
        self.add(TurnEnd(turn_id=self.turn, status=status, error=error, self_evaluation=evaluation, timestamp=time))
        self.turn = None

    def start_step(
        self, *, agent: str | None = None, model_input: JsonText | None = None, time: int | None = None
    ) -> int:
        """Start a model call. An open step ends first, and a turn starts if none is open."""
        self.end_step()
        if self.turn is None:
            self.start_turn(time=time)
        self._steps += 1
        self.step = f"step-{self._steps}"
        return self.add(
            StepStart(turn_id=self.turn, step_id=self.step, agent_name=agent, model_input=model_input, timestamp=time)
        )

    def record_step(self, **fields: Any) -> None:
        """Set fields of the StepEnd (`token_count`, `duration_ms`, `thought`, ...) of the open step."""
        self._step_end.update(fields)

    def end_step(self, *, time: int | None = None, error: str | None = None) -> None:
        """End the open step, if there is one, with the fields from `record_step`."""
        if self.step is not None:
            fields = self._step_end if error is None else self._step_end | {"error": error}
            self.add(StepEnd(turn_id=self.turn, step_id=self.step, timestamp=time, **fields))
            self.step = None
        self._step_end = {}
        self._unanswered = 0

    def system(self, content: str, *, time: int | None = None) -> int:
        """Log a system message."""
        return self.add(SystemMessage(content=content, timestamp=time, **self._scope()))

    def user(self, content: str, *, blocks: JsonText | None = None, time: int | None = None) -> int:
        """Log a user message. It does not start a turn."""
        return self.add(UserMessage(content=content, blocks=blocks, timestamp=time, **self._scope()))

    def assistant(
        self,
        content: str,
        *,
        reasoning: str | None = None,
        blocks: JsonText | None = None,
        interrupted: bool = False,
        time: int | None = None,
    ) -> int:
        """Log an assistant message. It does not start a step."""
        return self.add(
            AssistantMessage(
                content=content,
                reasoning=reasoning,
                blocks=blocks,
                interrupted=interrupted,
                timestamp=time,
                **self._scope(),
            )
        )

    def call(self, call_id: object, name: str, args: JsonText, *, time: int | None = None) -> int:
        """Log a tool call. A missing id is made up; null arguments become an empty string."""
        id = self._call_id(call_id)
        self._calls.add(id, (self.turn, self.step))
        self._unanswered += self.step is not None
        args = '""' if args == "null" else args
        return self.add(ToolCall(call_id=id, name=name, args=args, timestamp=time, **self._scope()))

    def result(
        self,
        call_id: object,
        result: JsonText | None = None,
        *,
        error: str | None = None,
        blocks: JsonText | None = None,
        duration_ms: float | None = None,
        time: int | None = None,
        ends_step: bool = True,
        **more: Any,
    ) -> int:
        """Log a tool result in the turn and step of its call. The last result that the open step waits for ends it.

        A result without a call id answers the oldest call that has none. `more` are further fields of the event.
        """
        id = self._answered_id(call_id)
        made = self._calls.answer(id)
        turn, step = made or (self.turn, self.step)
        event = ToolResult(
            call_id=id,
            result=result,
            error=error,
            blocks=blocks,
            duration_ms=duration_ms,
            timestamp=time,
            turn_id=turn,
            step_id=step,
            **more,
        )
        seq = self.add(event)
        if made is not None and step is not None and (turn, step) == (self.turn, self.step):
            self._unanswered -= 1
            if self._unanswered == 0 and ends_step:
                self.end_step(time=time)
        return seq

    def custom(self, name: str, data: JsonText, *, time: int | None = None) -> int:
        """Log something that has no event type, under its own name; null data becomes an empty object."""
        data = "{}" if data == "null" else data
        return self.add(CustomEvent(name=name, data=data, timestamp=time, **self._scope()))

    def _scope(self) -> dict[str, str | None]:
        """The open turn and step, as fields: `add` would have to copy the event to set them."""
        return {"turn_id": self.turn, "step_id": self.step}

    def _call_id(self, given: object) -> str:
        if isinstance(given, int) and not isinstance(given, bool):
            given = str(given)
        if not isinstance(given, str) or not given:
            self._made_ids += 1
            self._warnings.add("tool call", "without an id got one")
            return f"call-{self._made_ids}"
        return self._fitted(given)

    def _answered_id(self, given: object) -> str:
        if isinstance(given, int) and not isinstance(given, bool):
            given = str(given)
        if isinstance(given, str) and given:
            return self._fitted(given)
        self._warnings.add("tool result", "without a call id got that of the oldest call without a result")
        oldest = self._calls.oldest()
        return oldest if oldest is not None else self._call_id(None)

    def _fitted(self, given: str) -> str:
        """Shorten an id that is too long to its beginning and a digest, the same at each mention."""
        if len(given) <= MAX_IDENTIFIER:
            return given
        self._warnings.add("long call id", f"over {MAX_IDENTIFIER} characters shortened")
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"{given[: MAX_IDENTIFIER - 17]}-{digest}"


def label_of(content: str) -> str | None:
    """Make a label from the first words of a text."""
    words = content.split(maxsplit=LABEL_LENGTH)[:LABEL_LENGTH]  # there may be millions
    return " ".join(words)[:LABEL_LENGTH].rstrip() or None
