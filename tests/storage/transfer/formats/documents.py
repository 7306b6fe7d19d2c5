"""Documents made for a test, read record by record, and what must hold of any."""

import io
import json
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from storage import errors, events
from storage.events import Event
from storage.transfer.formats.registry import ForeignSession
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignLabel, ImportWarnings, Step
from storage.transfer.formats.shared.records import Record, read_records
from storage.views.surface import Surface
from tests.storage.views.validity import check


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def lines(*values: object) -> bytes:
    return b"\n".join(encoded(value) for value in values)


def read_steps(module: ModuleType, content: bytes) -> tuple[list[Step], ImportWarnings]:
    """All steps, and what was lost; a broken record is counted, as an import does."""
    warnings = ImportWarnings(lenient=True)
    reader = module.reader("log", warnings)
    steps: list[Step] = []
    for record in read_records("log", io.BytesIO(content)):
        assert isinstance(record, Record)
        try:
            steps += reader.add(record)
        except errors.BadInput as error:
            warnings.leave_out(error)
    return [*steps, *reader.end()], warnings


def logs(steps: Sequence[Step]) -> dict[str, list[Event]]:
    """The events of each session, with their seqs."""
    found: dict[str, list[Event]] = {}
    for step in steps:
        match step:
            case ForeignSession():
                assert step.key not in found
                found[step.key] = list(step.events)
            case ForeignEvent():
                found[step.key].append(step.event)
            case ForeignLabel():
                assert step.key in found
    return {key: numbered(log) for key, log in found.items()}


def numbered(log: Sequence[Event]) -> list[Event]:
    return [event.model_copy(update={"seq": seq}) for seq, event in enumerate(log)]


def surface(log: Sequence[Event]) -> list[Any]:
    return [json.loads(message) for message in Surface().add_all(log).openai()]


def check_log(log: Sequence[Event]) -> None:
    """Fails unless each event can be stored and the surface is valid at every cut."""
    folded = Surface()
    for event in log:
        stored = events.dump(event)
        json.dumps(stored, ensure_ascii=False).encode()
        assert events.load(stored, "log", "session", event.seq).type == event.type
        for name in type(event).json_fields:
            if stored.get(name) is not None:
                json.loads(stored[name])
        check(folded.add(event))


def check_prefixes(module: ModuleType, cut: Callable[[int], bytes], sizes: Sequence[int]) -> None:
    """Fails unless every shorter document gives a beginning of the events that the whole one gives."""
    whole = logs(read_steps(module, cut(sizes[-1]))[0])
    for size in sizes:
        for key, log in logs(read_steps(module, cut(size))[0]).items():
            assert log == whole[key][: len(log)], (size, key)
