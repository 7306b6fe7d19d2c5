"""Gives events without a time that of a neighbor, so that the time of the import does not mix into a timed log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from storage.events import Event, Instant
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, Step

MAX_WAITING = 1_000
"""Events at the start of a log that wait for a time. A log in which more of them have none counts as one without."""


class Timeline:
    """Passes on steps; the events that a session begins with follow it as steps of their own.

    An event without a time gets that of the nearest earlier event of its log, else of the nearest later one. Events
    before the first time wait for it; `settle` passes on those that are waiting without a time.
    """

    def __init__(self) -> None:
        self._last: dict[str, Instant] = {}
        self._waiting: dict[str, list[ForeignEvent]] = {}

    def add(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps that can be passed on."""
        return [passed for step in steps for passed in self._add(step)]

    def settle(self) -> list[Step]:
        """Return the events that are waiting, as they are."""
        waiting = [event for events in self._waiting.values() for event in events]
        self._waiting.clear()
        return list(waiting)

    def _add(self, step: Step) -> Iterator[Step]:
        match step:
            case ForeignSession():
                time = _first_time(step.events)
                if step.source is not None:
                    # A fork shares events of its source, which have to come before it.
                    yield from self._pass_on(step.source, time)
                    self._copy_last(step.source, step.key)
                yield replace(step, events=())
                yield from self._events_of(step, time)
            case ForeignEvent():
                yield from self._add_event(step)
            case _:
                yield step

    def _add_event(self, step: ForeignEvent) -> Iterator[Step]:
        time = step.event.timestamp
        if time is not None:
            yield from self._pass_on(step.key, time)
            self._last[step.key] = time
            yield step
        elif (last := self._last.get(step.key)) is not None:
            yield step.at(last)
        else:
            waiting = self._waiting.setdefault(step.key, [])
            waiting.append(step)
            if len(waiting) > MAX_WAITING:
                yield from self._pass_on(step.key, None)

    def _pass_on(self, key: str, time: Instant | None) -> Iterator[Step]:
        for event in self._waiting.pop(key, ()):
            yield event if time is None else event.at(time)

    def _copy_last(self, source: str, key: str) -> None:
        last = self._last.get(source)
        if last is not None:
            self._last[key] = last

    def _events_of(self, session: ForeignSession, first_time: Instant | None) -> Iterator[Step]:
        """The events that a session begins with. They don't wait, as those without an id have to come with it."""
        last = first_time if first_time is not None else self._last.get(session.key)
        for event in session.events:
            step = ForeignEvent(session.key, event)
            yield step if event.timestamp is not None or last is None else step.at(last)
            last = event.timestamp if event.timestamp is not None else last
        if last is not None:
            self._last[session.key] = last


def _first_time(events: Sequence[Event]) -> Instant | None:
    return next((event.timestamp for event in events if event.timestamp is not None), None)
