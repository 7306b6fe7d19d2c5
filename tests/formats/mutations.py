"""Records with something wrong in them, for readers that must refuse them or read on."""

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from storage import errors
from storage.events import ADAPTER, dump
from storage.formats import feed
from storage.formats.foreign import ForeignSession, Logged, Step
from storage.formats.records import Record


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(600):
        value = [value]
    return value


ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    2**70,
    "",
    "x",
    "\ud800\x00",
    "9" * 300,
    [],
    [None],
    ["x"],
    {},
    {"type": "text"},
    _deep(),
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, item in items for found in ((*path, name), *_paths(item, (*path, name)))]


@st.composite
def mutated(draw: st.DrawFn, values: Sequence[Any]) -> tuple[list[Any], int]:
    """Some records in a row, one of them with a field deleted or of another type, and which one it is."""
    start = draw(st.integers(0, max(0, len(values) - 5)))
    chosen = [values[0], *values[max(1, start) : start + draw(st.integers(2, 12))]]
    index = draw(st.integers(0, len(chosen) - 1))
    changed = copy.deepcopy(chosen[index])
    paths = _paths(changed)
    *path, name = draw(st.sampled_from(paths))
    inner = changed
    for each in path:
        inner = inner[each]
    if draw(st.booleans()):
        del inner[name]
    else:
        inner[name] = draw(st.sampled_from(ODD))
    return [*chosen[:index], changed, *chosen[index + 1 :]], index


def read_leniently(format: str, values: Sequence[Any]) -> tuple[list[Step], set[int]]:
    """The steps of records, and which of them were refused. What else is raised goes on."""
    records = [Record(f"log line {index + 1}", value) for index, value in enumerate(values)]
    source = feed("log", records, format)
    steps: list[Step] = []
    refused = set()
    for index, record in enumerate(records):
        try:
            steps += source.add(record)
        except errors.BadInput as error:
            assert record.place in error.message
            refused.add(index)
    return [*steps, *source.end()], refused


def check(steps: Sequence[Step]) -> None:
    """Fails unless sessions come before their events and each event is one that a log takes."""
    known = set()
    for step in steps:
        if isinstance(step, ForeignSession):
            assert step.source is None or step.source in known
            known.add(step.key)
        else:
            assert step.key in known
        if isinstance(step, Logged):
            assert ADAPTER.validate_python(dump(step.event)) == step.event
