"""Gives events without a time that of a neighbor, so that the time of the import does not mix into a timed log."""

from collections.abc import Sequence
from dataclasses import replace

from storage import events
from storage.events import Event, Instant
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, Step

WAITING_WEIGHT = 1024 * 1024
"""How many characters of events may wait for a time, over all logs. If there are more, they go on without one."""


class Timeline:
    """Passes on steps; the events that a session begins with follow it as steps of their own.

    An event without a time gets that of the nearest earlier event of its log, else of the nearest later one. Events
    before the first time wait for it; `settle` passes on those that are waiting without a time.
    """

    def __init__(self) -> None:
        self._last: dict[str, Instant] = {}
        self._waiting: dict[str, list[ForeignEvent]] = {}
        self._weight = 0

    def add(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps that can be passed on."""
        passed: list[Step] = []
        for step in steps:
            match step:
                case ForeignEvent():
                    self._add_event(step, passed)
                case ForeignSession():
                    self._add_session(step, passed)
                case _:
                    passed.append(step)
        return passed

    def settle(self) -> list[Step]:
        """Return the events that are waiting, as they are."""
        waiting: list[Step] = [event for events_of_log in self._waiting.values() for event in events_of_log]
        self._waiting.clear()
        self._weight = 0
        return waiting

    def _add_event(self, step: ForeignEvent, passed: list[Step]) -> None:
        time = step.event.timestamp
        if time is not None:
            if self._waiting:
                self._pass_on(step.key, time, passed)
            self._last[step.key] = time
            passed.append(step)
        elif (last := self._last.get(step.key)) is not None:
            passed.append(step.at(last))
        else:
            self._waiting.setdefault(step.key, []).append(step)
            self._weight += events.weight(step.event)
            if self._weight > WAITING_WEIGHT:
                passed += self.settle()

    def _add_session(self, session: ForeignSession, passed: list[Step]) -> None:
        """Passes on a session and its first events. They don't wait, as a session without an id needs them at once."""
        last = _first_time(session.events)
        if session.source is not None:
            # A fork shares events of its source, which have to come before it.
            self._pass_on(session.source, last, passed)
            last = self._last.get(session.source) if last is None else last
        passed.append(replace(session, events=()))
        for event in session.events:
            step = ForeignEvent(session.key, event)
            passed.append(step if event.timestamp is not None or last is None else step.at(last))
            last = last if event.timestamp is None else event.timestamp
        if last is not None:
            self._last[session.key] = last

    def _pass_on(self, key: str, time: Instant | None, passed: list[Step]) -> None:
        """Passes on the events of a log that are waiting, with this time if there is one."""
        for waiting in self._waiting.pop(key, ()):
            self._weight -= events.weight(waiting.event)
            passed.append(waiting if time is None else waiting.at(time))


def _first_time(given: Sequence[Event]) -> Instant | None:
    return next((event.timestamp for event in given if event.timestamp is not None), None)
