"""Events that the server writes on request: hides, repairs after a crash, feedback."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from storage import errors, text
from storage.database import Queries, Transaction
from storage.events import (
    Event,
    JsonText,
    RunFeedback,
    RunStatus,
    StepEnd,
    SurfaceHide,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.log import append, reading
from storage.log.admission import turn_starts
from storage.log.append import Appended
from storage.log.commit import MAX_EVENTS
from storage.readers import conversation
from storage.readers.runs import one_run
from storage.readers.surfaces import Surfaces
from storage.scope import Scope, session_queue
from storage.session import SessionMeta
from storage.views.run_tools import Unanswered
from storage.views.runs import Run
from storage.views.trim import hides_for_trim

INTERRUPTED = "Interrupted: no result was recorded before the session was repaired."
_CALLS = frozenset({"turn/start", "tool/call", "tool/result"})

Drafts = Callable[[Transaction, SessionMeta], Awaitable[Sequence[Event]]]


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The session after an operation and its append; None if there was nothing to write."""

    session: SessionMeta
    appended: Appended | None = None


@dataclass(frozen=True, slots=True)
class Feedback(MaintenanceResult):
    """The result of giving feedback, with the turn's whole run after it."""

    run: Run = field(kw_only=True)


class Maintenance:
    """Each operation appends at most one commit. All raise NotFound, Archived, or Conflict for another head."""

    def __init__(self, scope: Scope, surfaces: Surfaces) -> None:
        self._scope = scope
        self._surfaces = surfaces

    async def trim(self, space: str, id: str, keep_recent: int, expected_head: int | None = None) -> MaintenanceResult:
        """Hides all but the newest `keep_recent` records, keeping tool groups whole. Raises BadInput if negative."""

        async def drafts(tx: Transaction, meta: SessionMeta) -> Sequence[Event]:
            return hides_for_trim(await self._surfaces.within(tx, meta), keep_recent)

        if keep_recent < 0:
            raise errors.BadInput(f"keepRecent: must not be negative, is {keep_recent}")
        await self._surfaces.prepare(self._scope, space, id)
        return await self._append(space, id, expected_head, drafts)

    async def remove_last(self, space: str, id: str, expected_head: int | None = None) -> MaintenanceResult:
        """Hides the last text or card of the conversation, if there is one."""

        async def drafts(tx: Transaction, meta: SessionMeta) -> Sequence[Event]:
            last = await conversation.last_shown(tx, meta)
            return [] if last is None else _hides(last.source_event_seqs, "removeLastEntry")

        return await self._append(space, id, expected_head, drafts)

    async def clear(self, space: str, id: str, expected_head: int | None = None) -> MaintenanceResult:
        """Hides everything appended so far, unless the last event already did."""

        async def drafts(tx: Transaction, meta: SessionMeta) -> Sequence[Event]:
            newest = await reading.read(tx, meta.segments, max(meta.head - 1, 0), meta.head, 1)
            if not newest.events or any(_hides_all(event) for event in newest.events):
                return []
            return [SurfaceHide(from_seq=0, to_seq=meta.head, reason="clearConversation")]

        return await self._append(space, id, expected_head, drafts)

    async def repair(self, space: str, id: str, expected_head: int | None = None) -> MaintenanceResult:
        """Closes what a crash left open: an error result for each unanswered call, step/end, turn/end FAILED.

        One commit takes 1,000 events; if more are needed, the next call writes the rest.
        """

        async def drafts(tx: Transaction, meta: SessionMeta) -> Sequence[Event]:
            return (await _endings(tx, meta))[:MAX_EVENTS]

        return await self._append(space, id, expected_head, drafts)

    async def give_feedback(
        self, space: str, id: str, turn_id: str, feedback: str | None, self_evaluation: JsonText | None
    ) -> Feedback:
        """Records feedback on a turn, even after its end and in an archived session.

        `CLEARED_FEEDBACK` and `CLEARED_EVALUATION` clear what was given before; None leaves it. Raises BadInput for a
        turn that was never started.

        The run is read afterwards, not within the transaction. Raises NotFound if the session is deleted in between.
        """
        turn = text.identifier(turn_id, "turnId")

        async def drafts(tx: Transaction, meta: SessionMeta) -> Sequence[Event]:
            if not await turn_starts(tx, meta, [turn]):
                raise errors.BadInput(f"turnId: turn {turn!r} was never started in this session")
            return [RunFeedback(turn_id=turn, feedback=feedback, self_evaluation=self_evaluation)]

        if feedback is None and self_evaluation is None:
            raise errors.BadInput("setRunFeedback: give feedback or selfEvaluation")
        result = await self._append(space, id, None, drafts, archived_too=True)
        run = await self._scope.read(lambda queries: one_run(queries, result.session, turn))
        if run is None:
            raise errors.just_deleted(id)
        return Feedback(result.session, result.appended, run=run)

    async def _append(
        self, space: str, id: str, expected_head: int | None, drafts: Drafts, *, archived_too: bool = False
    ) -> MaintenanceResult:
        async def work(tx: Transaction) -> MaintenanceResult:
            meta = await tx.session(space, id)
            if meta is None:
                raise errors.no_session("sessionId", id)
            if not archived_too:
                append.check_writable(meta)
            append.check_head(meta, expected_head)
            made = await drafts(tx, meta)
            if not made:
                return MaintenanceResult(meta)
            appended = await append.append(tx, space, id, made, surfaces=self._surfaces, archived_too=archived_too)
            return MaintenanceResult(appended.session, appended)

        return await self._scope.transact(work, queue=[session_queue(space, id)])


def _hides_all(event: Event) -> bool:
    return isinstance(event, SurfaceHide) and event.from_seq == 0 and event.to_seq == event.seq


def _hides(seqs: Iterable[int], reason: str) -> list[SurfaceHide]:
    """The fewest hides that cover these events and no others."""
    ranges: list[tuple[int, int]] = []
    for seq in sorted(seqs):
        if ranges and ranges[-1][1] == seq:
            ranges[-1] = (ranges[-1][0], seq + 1)
        else:
            ranges.append((seq, seq + 1))
    return [SurfaceHide(from_seq=first, to_seq=stop, reason=reason) for first, stop in ranges]


async def _endings(queries: Queries, meta: SessionMeta) -> list[Event]:
    results = [
        ToolResult(call_id=call.call_id, error=INTERRUPTED, turn_id=call.turn_id, step_id=call.step_id)
        for call in await _unanswered(queries, meta)
    ]
    # Steps outside any turn go last: a step with the same id in the open turn would be ended instead.
    ordered = sorted(meta.open, key=lambda turn: turn.turn == "")
    steps = [StepEnd(step_id=step, turn_id=turn.turn or None) for turn in ordered for step in turn.steps]
    turns = [
        TurnEnd(turn_id=turn.turn, status=RunStatus.FAILED, error="Interrupted: ended when the session was repaired.")
        for turn in meta.open
        if turn.turn
    ]
    return [*results, *steps, *turns]


async def _unanswered(queries: Queries, meta: SessionMeta) -> list[ToolCall]:
    """The calls of the whole visible log without a result, in log order."""
    if not meta.totals.types.get("tool/call"):
        return []
    unanswered: Unanswered[ToolCall] = Unanswered()
    at = 0
    while at < meta.head:
        found = await reading.read(queries, meta.segments, at, meta.head, MAX_EVENTS, types=_CALLS)
        for event in found.events:
            match event:
                case TurnStart():
                    unanswered.turn_started()
                case ToolCall():
                    unanswered.add(event.call_id, event)
                case ToolResult() if not event.replaces:
                    unanswered.answer(event.call_id)
        at = found.reached
    return sorted(unanswered.waiting(), key=lambda call: call.seq)
