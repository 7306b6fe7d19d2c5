"""What every reader promises, for tests: logs as their sessions show them, records that are broken, logs that grow."""

from collections.abc import Iterable, Sequence

from storage import errors, events
from storage.events import Event
from storage.transfer.formats.registry import _BY_NAME, ForeignDocument, ForeignSession
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignLabel, ImportWarnings, Step
from storage.transfer.formats.shared.records import Record
from tests.storage.views.surface_logs import numbered


def visible(sessions: Iterable[ForeignSession]) -> dict[str, list[Event]]:
    """Each session's log with what it inherits, with seqs."""
    logs: dict[str, list[Event]] = {}
    for session in sessions:
        inherited = logs[session.source][: session.at_seq] if session.source and session.at_seq is not None else []
        assert session.at_seq is None or len(inherited) == session.at_seq
        logs[session.key] = numbered([*inherited, *session.events])
    return logs


def visible_by_id(reading: ForeignDocument) -> dict[str | None, list[Event]]:
    logs = visible(reading.sessions)
    return {session.id: logs[session.key] for session in reading.sessions}


def steps_of(format: str, values: Sequence[object]) -> list[Step]:
    """What a reader hands over of records with these values."""
    reader = _BY_NAME[format].reader("x", ImportWarnings())
    steps: list[Step] = []
    for index, value in enumerate(values):
        steps += reader.add(Record(f"x [{index}]", value))
    return [*steps, *reader.end()]


def check_broken(format: str, good: object, broken: object) -> None:
    """Fails unless a broken record is read, or refused as if it had never been there."""
    reader = _BY_NAME[format].reader("x", ImportWarnings())
    try:
        steps = reader.add(Record("x [0]", broken))
    except errors.BadInput as error:
        assert error.message.startswith("x [0]")
        steps = ()
        after = [*reader.add(Record("x [0]", good)), *reader.end()]
        assert after == steps_of(format, [good])
    for step in [*steps, *reader.end()]:
        check_step(step)


def check_step(step: Step) -> None:
    """Fails unless the events of a step are valid as they are stored."""
    match step:
        case ForeignSession():
            drafts = list(step.events)
        case ForeignEvent():
            drafts = [step.event]
        case ForeignLabel():
            drafts = []
    for draft in drafts:
        stored = events.dump(draft)
        assert events.dump(events.ADAPTER.validate_python(stored)) == stored
