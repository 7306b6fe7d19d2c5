"""Broken records, which readers must either refuse or survive."""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from storage import errors
from storage.events import ADAPTER, dump
from storage.log.admission import Admission
from storage.log.state import LogState
from storage.transfer.formats.registry import reader_for
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, Step
from storage.transfer.formats.shared.record import Record
from storage.views.surface import Surface
from tests.storage.transfer.formats.logs import visible_logs
from tests.storage.views import validity

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e300,
    1e308,
    2**70,
    10**30,
    "",
    "x",
    "x" * 300,
    "9" * 300,
    "x\0\ud800",
    [],
    [None],
    ["x"],
    [[]],
    [[{}]],
    {},
    {"": {}},
    {"a": {"b": []}},
    {"type": "text"},
    [{"type": "text", "text": 1}],
)
"""Values that hardly any field accepts."""
SEEDS = st.integers(0, 2**32)


def odd(value: Any, seed: int) -> Any:
    """A copy of a JSON value with up to three of its parts, at any depth, deleted, duplicated or replaced by `ODD`."""
    chance = random.Random(seed)
    changed = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 3)):
        paths = _paths(changed)
        if not paths:
            break
        # Draw the depth first, so that the few outer fields are hit as often as the many inner ones.
        depth = chance.choice(sorted({len(path) for path in paths}))
        holder, name = _at(changed, chance.choice([path for path in paths if len(path) == depth]))
        match chance.randrange(6):
            case 0:
                del holder[name]
            case 1 if isinstance(holder, list):
                holder.insert(name, copy.deepcopy(holder[name]))
            case _:
                holder[name] = copy.deepcopy(chance.choice(ODD))
    return changed


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, item in items for found in ((*path, name), *_paths(item, (*path, name)))]


def _at(value: Any, path: tuple[Any, ...]) -> tuple[Any, Any]:
    for name in path[:-1]:
        value = value[name]
    return value, path[-1]


def with_nesting(values: Sequence[Any]) -> Iterator[tuple[list[Any], int]]:
    """For each field of each record: the records with that field nested too deep, and the index of its record."""
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]
    for index, value in enumerate(values):
        for path in _paths(value):
            changed = copy.deepcopy(value)
            inner, name = _at(changed, path)
            inner[name] = deep
            yield [*values[:index], changed, *values[index + 1 :]], index


@st.composite
def mutated(draw: st.DrawFn, values: Sequence[Any]) -> tuple[list[Any], int]:
    """Some consecutive records, one of them with a field deleted or of another type, and the index of that one."""
    start = draw(st.integers(0, max(0, len(values) - 5)))
    chosen = [values[0], *values[max(1, start) : start + draw(st.integers(2, 12))]]
    index = draw(st.integers(0, len(chosen) - 1))
    changed = copy.deepcopy(chosen[index])
    paths = _paths(changed)
    inner, name = _at(changed, draw(st.sampled_from(paths)))
    if draw(st.booleans()):
        del inner[name]
    else:
        inner[name] = draw(st.sampled_from(ODD))
    return [*chosen[:index], changed, *chosen[index + 1 :]], index


def read_leniently(format: str, values: Sequence[Any]) -> tuple[list[Step], set[int]]:
    """The steps of records, and the indices of those that were refused. Other exceptions propagate."""
    records = [Record(f"log line {index + 1}", value) for index, value in enumerate(values)]
    source = reader_for("log", records, format)
    steps: list[Step] = []
    refused = set()
    for index, record in enumerate(records):
        try:
            steps += source.add(record)
        except errors.BadInput as error:
            assert record.location in error.message
            refused.add(index)
    return [*steps, *source.end()], refused


def check(steps: Sequence[Step]) -> None:
    """Fail unless sessions precede their events, a log admits each event, and the surfaces are valid."""
    check_steps(steps)
    for log in visible_logs(steps).values():
        admission, surface = Admission(LogState(), (), 0), Surface()
        for event in log:
            admission.admit(event, f"event {event.seq}")
            surface.check_replace(event)
            surface.add(event)
        validity.check(surface)


def check_steps(steps: Sequence[Step]) -> None:
    """Fail unless sessions precede their events, and each event is valid."""
    known = set()
    for step in steps:
        if isinstance(step, ForeignSession):
            assert step.source is None or step.source in known
            known.add(step.key)
        else:
            assert step.key in known
        if isinstance(step, ForeignEvent):
            assert ADAPTER.validate_python(dump(step.event)) == step.event
