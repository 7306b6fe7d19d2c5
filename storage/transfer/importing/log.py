"""One log of an import: passing over what of it is there already, and appending the rest."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from storage import errors, events, text
from storage.database import MAX_COMMIT_BYTES, MAX_EVENTS
from storage.events import APPEND, CustomEvent, Event, InsightDelivered, RunFeedback, SurfaceHide, Surfacing
from storage.session import SessionMeta
from storage.transfer.formats.shared.foreign import ForeignEvent, ImportWarnings
from storage.transfer.importing import fitting
from storage.transfer.importing.target import Target

COMMIT_WEIGHT = 1024 * 1024
"""About how many characters of events a commit takes."""
MAX_EVENT_BYTES = MAX_COMMIT_BYTES - 4096
"""What an event may take, so that a commit of it alone has room for its own fields."""
_REFUSED = CustomEvent(name="event/refused", data="{}")
"""Stands where a log took an event in no form.

Not `PLACEHOLDER`: a record left out there may be whole by the next import.
"""
_MADE_HERE = (SurfaceHide, RunFeedback, InsightDelivered)
"""What people and servers add to a log here, and no source knows of."""


class Shift(NamedTuple):
    """From this seq of the source on, events stand `by` seqs later here."""

    seq: int
    by: int


class ImportedLog:
    """The log `id` as its source tells it: what waits of it, and the source's seq of what comes next.

    `lenient`: what a log does not take is cut or kept in another form, and counted; else it is refused.
    """

    def __init__(self, target: Target, losses: ImportWarnings, *, start: int, lenient: bool) -> None:
        self.id = ""
        self.position = start
        self.shifts: tuple[Shift, ...] = ()
        self.waiting: list[ForeignEvent] = []
        self._weights: list[int] = []
        self.weight = 0
        self.written = 0
        self._target = target
        self._losses = losses
        self._lenient = lenient

    def add(self, logged: ForeignEvent) -> bool:
        """Takes the next event; whether enough for a commit waits."""
        weight = events.weight(logged.event)
        if self._lenient and weight > fitting.SUSPICIOUS_CHARACTERS:
            cut = fitting.fitted(logged.event, MAX_EVENT_BYTES)
            if cut is not logged.event:
                self._losses.add("event", f"over {MAX_EVENT_BYTES} bytes cut to fit")
                logged, weight = logged._replace(event=cut), events.weight(cut)
        self.waiting.append(logged)
        self._weights.append(weight)
        self.weight += weight
        return len(self.waiting) >= MAX_EVENTS or self.weight > COMMIT_WEIGHT

    @property
    def here(self) -> int:
        """The seq here of what comes next."""
        return self.seq_here(self.position)

    def seq_here(self, seq: int) -> int:
        """Where an event of the source, or a cut before it, stands here."""
        place = bisect_right(self.shifts, seq, key=lambda shift: shift.seq)
        return seq + self.shifts[place - 1].by if place else seq

    def shift(self, by: int) -> None:
        """From here on, events stand so many seqs later than until now."""
        kept = tuple(shift for shift in self.shifts if shift.seq < self.position)
        self.shifts = (*kept, Shift(self.position, self.here - self.position + by))

    async def agrees(self, there: SessionMeta, count: int) -> bool:
        """Whether up to `count` of the events that wait, as far as the log there goes, are the same as there."""
        count = min(count, len(self.waiting), there.head - self.here)
        if count <= 0:
            return not self.waiting
        found = await self._target.events(there, self.here, count)
        return all(self._is_same(logged, event) for logged, event in zip(self.waiting, found, strict=False))

    async def pass_over(self, there: SessionMeta, limit: int, *, own: bool) -> bool:
        """Drops what waits as far as a log has the same below `limit`; False where that goes on otherwise.

        In its `own` log, events that were added here are stepped over.
        """
        while self.waiting and self.here < limit:
            found = await self._target.events(there, self.here, min(limit - self.here, len(self.waiting), MAX_EVENTS))
            same = 0
            for event in found:
                if same == len(self.waiting) or not self._is_same(self.waiting[same], event):
                    break
                same += 1
            self._drop(same)
            if same < len(found) and self.waiting:
                if not (own and isinstance(found[same], _MADE_HERE)):
                    return False
                self.shift(1)
        return True

    async def write(self) -> None:
        """Appends what waits. Raises Conflict where another one has appended; what waits then is not written yet."""
        while self.waiting:
            count = self._fitting_together()
            drafts = [logged.event for logged in self.waiting[:count]]
            if self.waiting[0].replaces is not None:
                drafts[0] = await self._replacing(drafts[0], self.waiting[0].replaces)
            if self.shifts:
                drafts = [self._moved(draft) for draft in drafts]
            before = self.position
            try:
                await self._append(drafts)
            finally:
                self._forget(self.position - before)

    def _drop(self, count: int) -> None:
        self._forget(count)
        self.position += count

    def _forget(self, count: int) -> None:
        self.weight -= sum(self._weights[:count])
        del self.waiting[:count], self._weights[:count]

    def _fitting_together(self) -> int:
        """How many of the events that wait go into one commit; a replacement is the first of its."""
        weight = 0
        for count, logged in enumerate(self.waiting):
            weight += self._weights[count]
            if count and (count == MAX_EVENTS or weight > COMMIT_WEIGHT or logged.replaces is not None):
                return count
        return len(self.waiting)

    async def _replacing(self, event: Event, seqs: tuple[int, int]) -> Event:
        op = await self._target.replacement(self.id, *map(self.seq_here, seqs))
        if op is APPEND:
            self._losses.add("replacement", "found nothing to replace, and is a message like others")
        return event.model_copy(update={"surface_op": op})

    async def _append(self, drafts: Sequence[Event]) -> None:
        try:
            await self._target.append(self.id, drafts, self.here)
        except (errors.BadInput, errors.TurnEnded, errors.PayloadTooLarge):
            if not self._lenient:
                raise
            await self._append_what_is_taken(drafts)
            return
        self.position += len(drafts)
        self.written += len(drafts)

    async def _append_what_is_taken(self, drafts: Sequence[Event]) -> None:
        """Finds what the log refuses, by halves, and keeps that in a form that it takes."""
        if len(drafts) > 1:
            half = len(drafts) // 2
            await self._append(drafts[:half])
            await self._append(drafts[half:])
            return
        if drafts[0] is _REFUSED:
            raise errors.BadInput("the log takes no event")
        tame = _tamed(drafts[0])
        what = "taken by the log in no form left out" if tame is _REFUSED else "refused by the log kept in another form"
        self._losses.add(f"{drafts[0].type} event", what)
        await self._append([tame])

    def _moved(self, event: Event) -> Event:
        """The event with the seqs that it names as they stand here."""
        if isinstance(event, SurfaceHide):
            seqs = {"from_seq": self.seq_here(event.from_seq), "to_seq": self.seq_here(event.to_seq)}
            return event.model_copy(update=seqs)
        if not isinstance(event, Surfacing):
            return event
        changed: dict[str, Any] = {}
        op = event.surface_op
        if op.start is not None and op.end is not None:
            bounds = {"start": self.seq_here(op.start), "end": self.seq_here(op.end)}
            changed["surface_op"] = op.model_copy(update=bounds)
        if event.source_event_seqs:
            changed["source_event_seqs"] = [self.seq_here(seq) for seq in event.source_event_seqs]
        return event.model_copy(update=changed) if changed else event

    def _is_same(self, logged: ForeignEvent, there: Event) -> bool:
        """Whether an event there is this one, as it came or in the form in which it was taken."""
        stored = events.dump(there)
        draft = self._moved(logged.event) if self.shifts else logged.event
        if _matches(draft, stored, resolved=logged.replaces is not None):
            return True
        return self._lenient and any(_matches(form, stored, resolved=False) for form in _other_forms(draft))


def _matches(draft: Event, stored: dict[str, Any], *, resolved: bool) -> bool:
    """Turn, step and time, which a log fills in, need to be the same only where the draft names them."""
    given = events.dump(draft)
    there = dict(stored)
    if resolved:
        given.pop("surfaceOp", None)
        there.pop("surfaceOp", None)
    for name in ("turnId", "stepId", "timestamp"):
        if name not in given:
            there.pop(name, None)
    return given == there


def _other_forms(event: Event) -> Iterator[Event]:
    """What a log may have taken in place of an event, each where it refused the one before."""
    while event is not _REFUSED:
        event = _tamed(event)
        yield event


def _tamed(event: Event) -> Event:
    """An event that a log takes in place of one that it refused: a message like others, else one of no known type."""
    if isinstance(event, Surfacing) and event.replaces:
        return event.model_copy(update={"surface_op": APPEND})
    if isinstance(event, CustomEvent):
        if event.turn_id is None and event.step_id is None:
            return _REFUSED
        return event.model_copy(update={"turn_id": None, "step_id": None})
    data = text.to_json(events.dump(event), event.type)
    return CustomEvent(name=event.type, data=data, timestamp=event.timestamp)
