"""Event streams of OpenHands: actions and observations, in the `history` of a run's record or as records themselves.

A run `{instance_id, history, metrics, error, ...}` is one session, and so is a document whose records are events.
Actions that one model response asked for are one step; an observation names its action as `cause`. Times have no zone
and are taken as UTC. https://github.com/All-Hands-AI/OpenHands
"""

from collections.abc import Sequence
from typing import Any

from storage.events import RunStatus
from storage.transfer.formats.openhands.events import EventStream
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.foreign import (
    ForeignLabel,
    ForeignSession,
    ImportWarnings,
    Reader,
    Step,
    derived_id,
)
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.unreadable import keep_unreadable
from storage.transfer.formats.shared.values import as_list, as_object, most

FORMAT = "openhands"


def fits(values: Sequence[object]) -> bool:
    """Whether the first records are runs, or events."""
    return most(values, _is_run) or most(values, _is_event)


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return OpenHandsReader(warnings)


class OpenHandsReader(Reader):
    """Yields a session for each run, and one for all records that are events."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._runs = 0
        self._builder: LogBuilder | None = None
        self._stream: EventStream | None = None

    def add(self, record: Record) -> Sequence[Step]:
        """Return the session of a run, or the steps of an event. Raises BadInput for a record that is neither."""
        fields = as_object(record.value, record.location)
        if "history" in fields:
            return [self._run(fields, record.location)]
        return self._event(fields, record.location)

    def end(self) -> Sequence[Step]:
        """Return nothing: no record waits for another."""
        return ()

    def _run(self, run: dict[str, Any], location: str) -> ForeignSession:
        history = as_list(run.get("history"), f"{location} history")
        key = f"run-{self._runs}"
        builder = LogBuilder(key, self._warnings)
        stream = EventStream(builder, self._warnings, run.get("metrics"))
        for index, event in enumerate(history):
            where = f"{location} history[{index}]"
            with keep_unreadable(event, builder, self._warnings, "event"):
                stream.add(as_object(event, where), where)
        self._runs += 1
        if isinstance(failure := run.get("error"), str) and failure:
            stream.end_turn(status=RunStatus.FAILED, error=failure)
        label = run.get("instance_id")
        return ForeignSession(
            key=key,
            label=label_of(label) if isinstance(label, str) else stream.label,
            events=builder.take_events(),
            metadata=facts.metadata(_facts(run), location, self._warnings),
        )

    def _event(self, event: dict[str, Any], location: str) -> list[Step]:
        if self._builder is None or self._stream is None:
            id = derived_id(FORMAT, location, event)
            builder = LogBuilder("stream", self._warnings)
            stream = EventStream(builder, self._warnings)
            stream.add(event, location)
            self._builder, self._stream = builder, stream
            return [ForeignSession(key="stream", label=stream.label, id=id), *builder.take_steps()]
        had_label = self._stream.label is not None
        self._stream.add(event, location)
        named: list[Step] = []
        if self._stream.label is not None and not had_label:
            named = [ForeignLabel("stream", self._stream.label)]
        return [*named, *self._builder.take_steps()]


def _is_run(value: object) -> bool:
    match value:
        case {"history": [*events]}:
            return most(events[:20], _is_event)
    return False


def _is_event(value: object) -> bool:
    match value:
        case {"id": int(), "source": str(), "timestamp": str(), "action": str()}:
            return True
        case {"id": int(), "source": str(), "timestamp": str(), "observation": str()}:
            return True
    return False


def _facts(run: dict[str, Any]) -> dict[str, object]:
    """The fields of a run other than its events, without the measures of single calls, which their steps have."""
    rest = {name: value for name, value in run.items() if name != "history"}
    if isinstance(metrics := run.get("metrics"), dict):
        rest["metrics"] = {name: value for name, value in metrics.items() if not isinstance(value, list)}
    return rest
