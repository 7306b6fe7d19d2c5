"""One log of an import: skipping the events that are already stored, and appending the rest."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from storage import errors, events, text
from storage.events import APPEND, CustomEvent, Event, InsightDelivered, Instant, RunFeedback, SurfaceHide, Surfacing
from storage.log.commit import MAX_COMMIT_BYTES, MAX_EVENTS
from storage.session import SessionMeta
from storage.transfer.formats.shared.foreign import ForeignEvent, ImportWarnings
from storage.transfer.importing import fitting
from storage.transfer.importing.target import Target

COMMIT_WEIGHT = 1024 * 1024
"""About how many characters of events go into one commit."""
MAX_EVENT_BYTES = MAX_COMMIT_BYTES - 4096
"""The size limit of an event, which leaves room for the fields of its commit."""
_REFUSED = CustomEvent(name="event/refused", data="{}")
"""Replaces an event that the log took in no form. Not `HOLE`: a record left out there may be whole next time."""
_ADDED_HERE = (SurfaceHide, RunFeedback, InsightDelivered)
"""Events that users and servers add to a stored log, and that its source doesn't have."""


class Shift(NamedTuple):
    """From `seq` of the source on, events are stored `by` seqs later."""

    seq: int
    by: int


class ImportedLog:
    """A log of the source and the stored log `id` that it goes to.

    `position` is the source's seq of the next event, `pending` the events read but not yet compared or written.
    `lenient`: an event that the store refuses is cut or stored in another form, with a warning; otherwise the refusal
    is raised. `recorded_at` gives the time of events that have none.
    """

    def __init__(
        self,
        target: Target,
        warnings: ImportWarnings,
        *,
        start: int,
        lenient: bool,
        recorded_at: Callable[[], Instant],
    ) -> None:
        self.id = ""
        self.position = start
        self.shifts: tuple[Shift, ...] = ()
        self.pending: list[ForeignEvent] = []
        self._weights: list[int] = []
        self.weight = 0
        self.written = 0
        self._target = target
        self._warnings = warnings
        self._lenient = lenient
        self._recorded_at = recorded_at

    def add(self, logged: ForeignEvent) -> bool:
        """Adds the next event. Returns whether enough are pending for a commit."""
        weight = events.weight(logged.event)
        if self._lenient and weight > fitting.SUSPICIOUS_CHARACTERS:
            cut = fitting.fit_event(logged.event, MAX_EVENT_BYTES)
            if cut is not logged.event:
                self._warnings.add("event", f"over {MAX_EVENT_BYTES} bytes cut to fit")
                logged, weight = logged._replace(event=cut), events.weight(cut)
        self.pending.append(logged)
        self._weights.append(weight)
        self.weight += weight
        return len(self.pending) >= MAX_EVENTS or self.weight > COMMIT_WEIGHT

    @property
    def next_seq(self) -> int:
        """The seq that the next event has in the stored log."""
        return self.stored_seq(self.position)

    def stored_seq(self, seq: int) -> int:
        """Translates a seq of the source, or a cut before it, into one of the stored log."""
        index = bisect_right(self.shifts, seq, key=lambda shift: shift.seq)
        return seq + self.shifts[index - 1].by if index else seq

    def shift(self, by: int) -> None:
        """Stores events from the next one on `by` seqs later than until now."""
        earlier = tuple(shift for shift in self.shifts if shift.seq < self.position)
        self.shifts = (*earlier, Shift(self.position, self.next_seq - self.position + by))

    async def agrees_with(self, stored: SessionMeta, count: int) -> bool:
        """Whether the first `count` pending events equal those of a stored log, as far as both go."""
        count = min(count, len(self.pending), stored.head - self.next_seq)
        if count <= 0:
            return not self.pending
        found = await self._target.events(stored, self.next_seq, count)
        return all(self._is_same(logged, event) for logged, event in zip(self.pending, found, strict=False))

    async def skip_stored(self, stored: SessionMeta, limit: int, *, own: bool) -> bool:
        """Skips pending events that a stored log has below `limit`. Returns False where that log differs.

        If the stored log is this log's `own`, ignores events that were added to it here.
        """
        while self.pending and self.next_seq < limit:
            found = await self._target.events(
                stored, self.next_seq, min(limit - self.next_seq, len(self.pending), MAX_EVENTS)
            )
            same = 0
            for event in found:
                if same == len(self.pending) or not self._is_same(self.pending[same], event):
                    break
                same += 1
            self._skip(same)
            if same < len(found) and self.pending:
                if not (own and isinstance(found[same], _ADDED_HERE)):
                    return False
                self.shift(1)
        return True

    async def write(self) -> None:
        """Appends the pending events. Raises Conflict if another writer has appended; the events then stay pending."""
        while self.pending:
            count = self._commit_size()
            at = self._recorded_at()
            drafts = [
                logged.event if logged.event.timestamp is not None else logged.at(at).event
                for logged in self.pending[:count]
            ]
            if self.pending[0].replaces is not None:
                drafts[0] = await self._resolve_replacement(drafts[0], self.pending[0].replaces)
            if self.shifts:
                drafts = [self._shift_seqs(draft) for draft in drafts]
            before = self.position
            try:
                await self._append(drafts)
            finally:
                self._forget(self.position - before)

    def _skip(self, count: int) -> None:
        self._forget(count)
        self.position += count

    def _forget(self, count: int) -> None:
        self.weight -= sum(self._weights[:count])
        del self.pending[:count], self._weights[:count]

    def _commit_size(self) -> int:
        """How many pending events go into the next commit. A replacement always starts one."""
        weight = 0
        for count, logged in enumerate(self.pending):
            weight += self._weights[count]
            if count and (count == MAX_EVENTS or weight > COMMIT_WEIGHT or logged.replaces is not None):
                return count
        return len(self.pending)

    async def _resolve_replacement(self, event: Event, seqs: tuple[int, int]) -> Event:
        op = await self._target.replacement(self.id, *map(self.stored_seq, seqs))
        if op is APPEND:
            self._warnings.add("replacement", "found nothing to replace and was added as an ordinary message")
        return event.model_copy(update={"surface_op": op})

    async def _append(self, drafts: Sequence[Event]) -> None:
        try:
            await self._target.append(self.id, drafts, self.next_seq)
        except (errors.BadInput, errors.TurnEnded, errors.PayloadTooLarge):
            if not self._lenient:
                raise
            await self._append_accepted(drafts)
            return
        self.position += len(drafts)
        self.written += len(drafts)

    async def _append_accepted(self, drafts: Sequence[Event]) -> None:
        """Bisects the drafts for those that the log refuses, and appends those in a form that it accepts."""
        if len(drafts) > 1:
            half = len(drafts) // 2
            await self._append(drafts[:half])
            await self._append(drafts[half:])
            return
        if drafts[0] is _REFUSED:
            raise errors.BadInput("the log refuses every event")
        fallback = _fallback(drafts[0])
        outcome = "left out" if fallback is _REFUSED else "stored in another form"
        self._warnings.add(f"{drafts[0].type} event", f"refused by the log and {outcome}")
        await self._append([fallback])

    def _shift_seqs(self, event: Event) -> Event:
        """The event with the seqs that it names translated into those of the stored log."""
        if isinstance(event, SurfaceHide):
            seqs = {"from_seq": self.stored_seq(event.from_seq), "to_seq": self.stored_seq(event.to_seq)}
            return event.model_copy(update=seqs)
        if not isinstance(event, Surfacing):
            return event
        changed: dict[str, Any] = {}
        op = event.surface_op
        if op.start is not None and op.end is not None:
            bounds = {"start": self.stored_seq(op.start), "end": self.stored_seq(op.end)}
            changed["surface_op"] = op.model_copy(update=bounds)
        if event.source_event_seqs:
            changed["source_event_seqs"] = [self.stored_seq(seq) for seq in event.source_event_seqs]
        return event.model_copy(update=changed) if changed else event

    def _is_same(self, logged: ForeignEvent, stored_event: Event) -> bool:
        """Whether a stored event is this one, as it was read or in a fallback form."""
        stored = events.dump(stored_event)
        draft = self._shift_seqs(logged.event) if self.shifts else logged.event
        if _matches(draft, stored, resolved=logged.replaces is not None):
            return True
        return self._lenient and any(_matches(form, stored, resolved=False) for form in _fallbacks(draft))


def _matches(draft: Event, stored: dict[str, Any], *, resolved: bool) -> bool:
    """Whether the two are equal. Turn and step, which a log fills in, count only where the draft names them.

    Times don't count: a log that is copied, or read again when more of its times are known, may have others.
    """
    expected = events.dump(draft)
    actual = dict(stored)
    expected.pop("timestamp", None)
    actual.pop("timestamp", None)
    if resolved:
        expected.pop("surfaceOp", None)
        actual.pop("surfaceOp", None)
    for name in ("turnId", "stepId"):
        if name not in expected:
            actual.pop(name, None)
    return expected == actual


def _fallbacks(event: Event) -> Iterator[Event]:
    """The forms that a log may have stored in place of an event, each if it refused the one before."""
    while event is not _REFUSED:
        event = _fallback(event)
        yield event


def _fallback(event: Event) -> Event:
    """The next form to try for a refused event: an ordinary message, then a custom event, then `_REFUSED`."""
    if isinstance(event, Surfacing) and event.replaces:
        return event.model_copy(update={"surface_op": APPEND})
    if isinstance(event, CustomEvent):
        if event.turn_id is None and event.step_id is None:
            return _REFUSED
        return event.model_copy(update={"turn_id": None, "step_id": None})
    fields = {name: value for name, value in events.dump(event).items() if name != "timestamp"}
    data = text.to_json(fields, event.type)
    return CustomEvent(name=event.type, data=data, timestamp=event.timestamp)
