"""Which events a log admits at its head, and the turn and step that each belongs to."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from storage import errors
from storage.database import MarkKind, MarkSpan, Queries
from storage.events import (
    Event,
    RunFeedback,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOpKind,
    Surfacing,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.log.state import Fold, LogState
from storage.session import Segment, SessionMeta

T = TypeVar("T")

MAX_OPEN = 1_000
"""Open turns and open steps of a log together."""
_OPENING = (TurnStart, StepStart)
"""What adds to those."""
_LATE = (ToolResult, RunFeedback)
"""What may still come when its turn has ended."""


def turn_mark(log: str, turn: str) -> str:
    """Under what a commit is found by a turn that it starts."""
    return f"{log}/{turn}"


def step_mark(log: str, turn: str, step: str) -> str:
    """Under what a commit is found by a step that it starts. The length keeps any two pairs of ids apart."""
    return f"{log}/{len(turn)}/{turn}/{step}"


def place_of(event: Event, place: str) -> str:
    """How an event's input field is called, e.g. `events[3].toolCall`."""
    kind, _, noun = event.type.partition("/")
    return f"{place}.{kind}{noun.capitalize()}"


async def visible_turns(queries: Queries, meta: SessionMeta, drafts: Sequence[Event]) -> set[str]:
    """Those turns that the drafts name, are not open, and were started in the visible log."""
    is_open = {turn.turn for turn in meta.open}
    named = {draft.turn_id for draft in drafts if draft.turn_id is not None and draft.turn_id not in is_open}
    return set(await turn_starts(queries, meta, named)) if named else set()


async def turn_starts(queries: Queries, meta: SessionMeta, turns: Collection[str]) -> dict[str, int]:
    """Where those of these turns were started, by turn, that the visible log has started."""
    marks = {turn_mark(segment.log, turn): (segment, turn) for segment in meta.segments for turn in turns}
    return dict(_visible(marks, await queries.mark_seqs(MarkKind.TURN, list(map(MarkSpan, marks)))))


async def check_steps(queries: Queries, meta: SessionMeta, admission: "Admission") -> None:
    """Raises BadInput if a step that the drafts start was started before in the same turn."""
    if not admission.started_steps:
        return
    marks = {
        step_mark(segment.log, turn, step): (segment, (turn, step))
        for segment in meta.segments
        for turn, step in admission.started_steps
    }
    for (turn, step), _ in _visible(marks, await queries.mark_seqs(MarkKind.STEP, list(map(MarkSpan, marks)))):
        place = admission.started_steps[turn, step]
        raise errors.BadInput(f"{place}.stepId: {step!r} was used before in {_turn_name(turn)}")


def _visible(marks: Mapping[str, tuple[Segment, T]], starts: Sequence[tuple[str, int]]) -> Iterator[tuple[T, int]]:
    """What was started below the cut of the segment that it was found in, and where."""
    for mark, seq in starts:
        segment, named = marks[mark]
        if segment.to is None or seq < segment.to:
            yield named, seq


def _turn_name(turn: str) -> str:
    return f"turn {turn!r}" if turn else "this session, outside any turn"


class Admission:
    """Holds drafts, one after the other, against the log up to the head that they claim.

    `at` (ms) is the time of an event whose writer gave none; it is not written into the event.
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

    def admit(self, draft: Event, place: str) -> Event:
        """The event with its turn and step filled in. Raises BadInput or TurnEnded, naming place and argument."""
        # How its field is called takes a tenth of all this, and is needed for refusals alone.
        match draft:
            case TurnStart():
                event = self._turn_start(draft, place)
            case TurnEnd():
                event = self._turn_end(draft, place)
            case StepStart():
                event = self._step_start(draft, place)
            case StepEnd():
                event = self._step_end(draft, place)
            case _:
                event = self._other(draft, place)
        self._fold.add(event, self.at)
        if isinstance(event, _OPENING):
            self._check_open(draft, place)
        return event

    def _turn_start(self, draft: TurnStart, place: str) -> Event:
        turn = _required(draft, draft.turn_id, "turnId", place)
        if turn in self._fold.open or turn in self._ended:
            raise errors.BadInput(f"{place_of(draft, place)}.turnId: turn {turn!r} was started before")
        self.started_turns[turn] = self._fold.head
        return draft if draft.step_id is None else draft.model_copy(update={"step_id": None})

    def _turn_end(self, draft: TurnEnd, place: str) -> Event:
        turn = _required(draft, draft.turn_id, "turnId", place)
        self._check_turn(draft, turn, place)
        self._ended.add(turn)
        return draft if draft.step_id is None else draft.model_copy(update={"step_id": None})

    def _step_start(self, draft: StepStart, place: str) -> Event:
        step = _required(draft, draft.step_id, "stepId", place)
        turn = self._turn(draft, place)
        name = place_of(draft, place)
        if (turn or "", step) in self.started_steps or step in self._fold.open.get(turn or "", ()):
            raise errors.BadInput(f"{name}.stepId: {step!r} was used before in {_turn_name(turn or '')}")
        self.started_steps[turn or "", step] = name
        self.step_seqs.append(self._fold.head)
        return _placed(draft, turn, step)

    def _step_end(self, draft: StepEnd, place: str) -> Event:
        step = _required(draft, draft.step_id, "stepId", place)
        turn = self._turn_of(draft, step, place)
        if step not in self._fold.open.get(turn or "", ()):
            name = place_of(draft, place)
            raise errors.BadInput(f"{name}.stepId: step {step!r} is not open in {_turn_name(turn or '')}")
        return _placed(draft, turn, step)

    def _other(self, draft: Event, place: str) -> Event:
        step = draft.step_id
        turn = self._turn_of(draft, step, place, late=isinstance(draft, _LATE))
        if step is None:
            open_steps = self._fold.open.get(turn or "", ())
            step = open_steps[0] if len(open_steps) == 1 else None
        if isinstance(draft, SurfaceHide):
            self._check_hide(draft, place)
        if isinstance(draft, Surfacing):
            _check_surface_op(draft, place)
        return _placed(draft, turn, step)

    def _turn(self, draft: Event, place: str, late: bool = False) -> str | None:
        """The turn named, checked; else the one that is open, if exactly one is."""
        if draft.turn_id is not None:
            self._check_turn(draft, draft.turn_id, place, late)
            return draft.turn_id
        turns = [turn for turn in self._fold.open if turn]
        return turns[0] if len(turns) == 1 else None

    def _check_turn(self, draft: Event, turn: str, place: str, late: bool = False) -> None:
        if turn in self._fold.open and turn:
            return
        if turn not in self._ended:
            name = place_of(draft, place)
            raise errors.BadInput(f"{name}.turnId: turn {turn!r} was never started in this session")
        if not late:
            raise errors.TurnEnded(f"{place_of(draft, place)}.turnId: turn {turn!r} has ended")

    def _turn_of(self, draft: Event, step: str | None, place: str, late: bool = False) -> str | None:
        """The turn of an event that names a step: where it names no turn, the one in which that step is open."""
        turn = self._turn(draft, place, late)
        if draft.turn_id is not None or step is None or step in self._fold.open.get(turn or "", ()):
            return turn
        holders = [holder for holder, steps in self._fold.open.items() if step in steps]
        return (holders[0] or None) if len(holders) == 1 else turn

    def _check_hide(self, draft: SurfaceHide, place: str) -> None:
        name = place_of(draft, place)
        if draft.from_seq > draft.to_seq:
            raise errors.BadInput(f"{name}: fromSeq {draft.from_seq} is beyond toSeq {draft.to_seq}")
        if draft.to_seq > self._fold.head:
            raise errors.BadInput(f"{name}.toSeq: {draft.to_seq} is beyond the event's own seq {self._fold.head}")

    def _check_open(self, draft: Event, place: str) -> None:
        turns = len(self._fold.open) - ("" in self._fold.open)
        if turns + sum(map(len, self._fold.open.values())) > MAX_OPEN:
            name = place_of(draft, place)
            raise errors.BadInput(f"{name}: more than {MAX_OPEN} turns and steps would be open at once; end some")


def _required(draft: Event, value: str | None, argument: str, place: str) -> str:
    if value is None:
        raise errors.BadInput(f"{place_of(draft, place)}.{argument}: is required")
    return value


def _placed(draft: Event, turn: str | None, step: str | None) -> Event:
    if draft.turn_id == turn and draft.step_id == step:
        return draft
    return draft.model_copy(update={"turn_id": turn, "step_id": step})


def _check_surface_op(draft: Surfacing, place: str) -> None:
    op = draft.surface_op
    bounds = (op.start is not None) + (op.end is not None)
    if op.op is SurfaceOpKind.REPLACE and bounds < 2:
        raise errors.BadInput(f"{place_of(draft, place)}.surfaceOp: REPLACE needs start and end")
    if op.op is SurfaceOpKind.APPEND and bounds:
        raise errors.BadInput(f"{place_of(draft, place)}.surfaceOp: start and end go with REPLACE")
