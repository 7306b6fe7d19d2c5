"""Documents made for a test, and checks of what every reader promises."""

import json
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from storage import errors, events
from storage.events import Event
from storage.transfer.formats.registry import MODULES, ForeignSession
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignLabel, ImportWarnings, Step
from storage.transfer.formats.shared.record import Record
from storage.views.surface import Surface
from tests.storage.transfer.formats.logs import records_of, steps_of, steps_of_values, visible_logs
from tests.storage.views.validity import check


def encoded(value: object) -> bytes:
    """A document that is one JSON value."""
    return json.dumps(value).encode()


def lines(*values: object) -> bytes:
    """A document of JSON lines."""
    return b"\n".join(encoded(value) for value in values)


def read_steps(module: ModuleType, content: bytes) -> tuple[list[Step], ImportWarnings]:
    """All steps of a document, and the warnings; broken records are left out, as an import does."""
    return steps_of(records_of("log", content), module.FORMAT, lenient=True)


def surface(log: Sequence[Event]) -> list[Any]:
    """The messages on the surface of a log."""
    return [json.loads(message) for message in Surface().add_all(log).openai()]


def check_log(log: Sequence[Event]) -> None:
    """Fail unless each event can be stored and the surface is valid at every cut."""
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
    """Fail unless each shorter document gives a prefix of the events of the whole one."""
    whole = visible_logs(read_steps(module, cut(sizes[-1]))[0])
    for size in sizes:
        for key, log in visible_logs(read_steps(module, cut(size))[0]).items():
            assert log == whole[key][: len(log)], (size, key)


def check_broken(format: str, good: object, broken: object) -> None:
    """Fail unless a broken record is either read, or refused without a trace."""
    reader = MODULES[format].reader("x", ImportWarnings())
    try:
        steps = reader.add(Record("x [0]", broken))
    except errors.BadInput as error:
        assert error.message.startswith("x [0]")
        steps = ()
        after = [*reader.add(Record("x [0]", good)), *reader.end()]
        assert after == steps_of_values(format, [good])
    for step in [*steps, *reader.end()]:
        check_step(step)


def check_step(step: Step) -> None:
    """Fail unless the events of a step are valid in their stored form."""
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


def nested(depth: int) -> Any:
    """A list nested this deep; no event can store more than 500 levels."""
    deep: Any = "x"
    for _ in range(depth):
        deep = [deep]
    return deep
