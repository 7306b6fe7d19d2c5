"""Admission: which events a log accepts at its head, and the turn and step that each belongs to."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from storage import errors
from storage.database import MarkKind, MarkSpan, Queries
from storage.events import (
    Event,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOpKind,
    Surfacing,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.log.marks import step_mark, turn_mark
from storage.log.state import Fold, LogState
from storage.session import Segment, SessionMeta

T = TypeVar("T")

MAX_OPEN = 1_000
"""Open turns and open steps of a log together."""
_OPENING = (TurnStart, StepStart)
"""Events that open a turn or a step."""
_UNENDED = (RunStatus.PENDING, RunStatus.RUNNING)
"""Statuses of a turn that has not ended."""
_LATE = (ToolResult, RunFeedback)
"""Events that are accepted after their turn has ended."""


def path_of(event: Event, path: str) -> str:
    """Path of an event's own input field, e.g. `events[3].toolCall`."""
    kind, _, noun = event.type.partition("/")
    return f"{path}.{kind}{noun.capitalize()}"


async def visible_turns(queries: Queries, meta: SessionMeta, drafts: Sequence[Event]) -> set[str]:
    """The turns named by the drafts that were started in the visible log and are no longer open."""
    is_open = {turn.turn for turn in meta.open}
    named = {draft.turn_id for draft in drafts if draft.turn_id is not None and draft.turn_id not in is_open}
    return set(await turn_starts(queries, meta, named)) if named else set()


async def turn_starts(queries: Queries, meta: SessionMeta, turns: Collection[str]) -> dict[str, int]:
    """seq of the start of each of these turns, by turn; turns never started in the visible log are left out."""
    marks = {turn_mark(segment.log, turn): (segment, turn) for segment in meta.segments for turn in turns}
    return dict(_visible(marks, await queries.mark_seqs(MarkKind.TURN, list(map(MarkSpan, marks)))))


async def check_steps(queries: Queries, meta: SessionMeta, admission: "Admission") -> None:
    """Raises BadInput if the drafts start a step that was started before in the same turn."""
    if not admission.started_steps:
        return
    marks = {
        step_mark(segment.log, turn, step): (segment, (turn, step))
        for segment in meta.segments
        for turn, step in admission.started_steps
    }
    for (turn, step), _ in _visible(marks, await queries.mark_seqs(MarkKind.STEP, list(map(MarkSpan, marks)))):
        path = admission.started_steps[turn, step]
        raise errors.BadInput(f"{path}.stepId: {step!r} was used before in {_turn_name(turn)}")


def _visible(marks: Mapping[str, tuple[Segment, T]], starts: Sequence[tuple[str, int]]) -> Iterator[tuple[T, int]]:
    """The ids whose start lies below the cut of their segment, each with the seq of its start."""
    for mark, seq in starts:
        segment, id = marks[mark]
        if segment.to is None or seq < segment.to:
            yield id, seq


def _turn_name(turn: str) -> str:
    return f"turn {turn!r}" if turn else "this session, outside any turn"


class Admission:
    """Checks drafts, one after the other, against the log up to the head that they claim.

    `at` (ms) is the time of events without a timestamp; it is not written into them. `started` are the turns named by
    the drafts that have ended.
    """

    def __init__(self, state: LogState, started: Collection[str], at: int) -> None:
        self.at = at
        self.started_turns: dict[str, int] = {}
        self.started_steps: dict[tuple[str, str], str] = {}
        self.step_seqs: list[int] = []
        self._fold = Fold(state)
        self._ended = set(started)

    def state(self) -> LogState:
        """The state after the drafts admitted so far."""
        return self._fold.done()

    def admit(self, draft: Event, path: str) -> Event:
        """The event with its turn and step filled in. Raises BadInput or TurnEnded, naming the field under `path`."""
        # The full path is built only for refusals: it would take a tenth of the time here.
        match draft:
            case TurnStart():
                event = self._turn_start(draft, path)
            case TurnEnd():
                event = self._turn_end(draft, path)
            case StepStart():
                event = self._step_start(draft, path)
            case StepEnd():
                event = self._step_end(draft, path)
            case _:
                event = self._other(draft, path)
        self._fold.add(event, self.at)
        if isinstance(event, _OPENING):
            self._check_open(draft, path)
        return event

    def _turn_start(self, draft: TurnStart, path: str) -> Event:
        turn = _required(draft, draft.turn_id, "turnId", path)
        if turn in self._fold.open or turn in self._ended:
            raise errors.BadInput(f"{path_of(draft, path)}.turnId: turn {turn!r} was started before")
        self.started_turns[turn] = self._fold.head
        return draft if draft.step_id is None else draft.model_copy(update={"step_id": None})

    def _turn_end(self, draft: TurnEnd, path: str) -> Event:
        turn = _required(draft, draft.turn_id, "turnId", path)
        self._check_turn(draft, turn, path)
        if draft.status in _UNENDED:
            raise errors.BadInput(f"{path_of(draft, path)}.status: a turn can't end as {draft.status.value}")
        self._ended.add(turn)
        return draft if draft.step_id is None else draft.model_copy(update={"step_id": None})

    def _step_start(self, draft: StepStart, path: str) -> Event:
        step = _required(draft, draft.step_id, "stepId", path)
        turn = self._turn(draft, path)
        name = path_of(draft, path)
        if (turn or "", step) in self.started_steps or step in self._fold.open.get(turn or "", ()):
            raise errors.BadInput(f"{name}.stepId: {step!r} was used before in {_turn_name(turn or '')}")
        self.started_steps[turn or "", step] = name
        self.step_seqs.append(self._fold.head)
        return _with_owner(draft, turn, step)

    def _step_end(self, draft: StepEnd, path: str) -> Event:
        step = _required(draft, draft.step_id, "stepId", path)
        turn = self._turn_of(draft, step, path)
        if step not in self._fold.open.get(turn or "", ()):
            name = path_of(draft, path)
            raise errors.BadInput(f"{name}.stepId: step {step!r} is not open in {_turn_name(turn or '')}")
        return _with_owner(draft, turn, step)

    def _other(self, draft: Event, path: str) -> Event:
        step = draft.step_id
        turn = self._turn_of(draft, step, path, late=isinstance(draft, _LATE))
        if step is None:
            open_steps = self._fold.open.get(turn or "", ())
            step = open_steps[0] if len(open_steps) == 1 else None
        if isinstance(draft, SurfaceHide):
            self._check_hide(draft, path)
        if isinstance(draft, Surfacing):
            _check_surface_op(draft, path)
        return _with_owner(draft, turn, step)

    def _turn(self, draft: Event, path: str, late: bool = False) -> str | None:
        """The named turn, checked; without a name the open turn, if exactly one is open."""
        if draft.turn_id is not None:
            self._check_turn(draft, draft.turn_id, path, late)
            return draft.turn_id
        turns = [turn for turn in self._fold.open if turn]
        return turns[0] if len(turns) == 1 else None

    def _check_turn(self, draft: Event, turn: str, path: str, late: bool = False) -> None:
        if turn in self._fold.open and turn:
            return
        if turn not in self._ended:
            name = path_of(draft, path)
            raise errors.BadInput(f"{name}.turnId: turn {turn!r} was never started in this session")
        if not late:
            raise errors.TurnEnded(f"{path_of(draft, path)}.turnId: turn {turn!r} has ended")

    def _turn_of(self, draft: Event, step: str | None, path: str, late: bool = False) -> str | None:
        """The turn of an event. One that names a step but no turn belongs to the turn in which the step is open."""
        turn = self._turn(draft, path, late)
        if draft.turn_id is not None or step is None or step in self._fold.open.get(turn or "", ()):
            return turn
        holders = [holder for holder, steps in self._fold.open.items() if step in steps]
        return (holders[0] or None) if len(holders) == 1 else turn

    def _check_hide(self, draft: SurfaceHide, path: str) -> None:
        name = path_of(draft, path)
        if draft.from_seq > draft.to_seq:
            raise errors.BadInput(f"{name}: fromSeq {draft.from_seq} is beyond toSeq {draft.to_seq}")
        if draft.to_seq > self._fold.head:
            raise errors.BadInput(f"{name}.toSeq: {draft.to_seq} is beyond the event's own seq {self._fold.head}")

    def _check_open(self, draft: Event, path: str) -> None:
        turns = len(self._fold.open) - ("" in self._fold.open)
        if turns + sum(map(len, self._fold.open.values())) > MAX_OPEN:
            name = path_of(draft, path)
            raise errors.BadInput(f"{name}: more than {MAX_OPEN} turns and steps would be open at once; end some")


def _required(draft: Event, value: str | None, argument: str, path: str) -> str:
    if value is None:
        raise errors.BadInput(f"{path_of(draft, path)}.{argument}: is required")
    return value


def _with_owner(draft: Event, turn: str | None, step: str | None) -> Event:
    if draft.turn_id == turn and draft.step_id == step:
        return draft
    return draft.model_copy(update={"turn_id": turn, "step_id": step})


def _check_surface_op(draft: Surfacing, path: str) -> None:
    op = draft.surface_op
    bounds = (op.start is not None) + (op.end is not None)
    if op.op is SurfaceOpKind.REPLACE and bounds < 2:
        raise errors.BadInput(f"{path_of(draft, path)}.surfaceOp: REPLACE needs start and end")
    if op.op is SurfaceOpKind.APPEND and bounds:
        raise errors.BadInput(f"{path_of(draft, path)}.surfaceOp: start and end go with REPLACE")
