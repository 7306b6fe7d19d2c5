"""Logs in: records of known formats become events and topology. Pure functions; nothing here opens a file.

A format is a module with its name `FORMAT`, `fits`, which tells it by the values of a document's first records, and
`reader`, which makes a `Reader` for one document. `FORMATS` lists them in the order in which they are tried.
"""

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType

from storage import errors, text
from storage.events import Event
from storage.transfer.formats import (
    chatgpt,
    claude_code,
    codex,
    deepseek_harness,
    inspect_ai,
    jsonl,
    librechat,
    open_assistant,
    openai,
    openhands,
    pi,
    records,
    session_yaml,
    swe_agent,
    tau_bench,
)
from storage.transfer.formats.foreign import (
    ForeignSession,
    ImportWarnings,
    Logged,
    Reader,
    Reading,
    Renamed,
    Step,
    ordered,
)
from storage.transfer.formats.records import Broken, Record, Unparsed
from storage.transfer.formats.values import shape

__all__ = ["FORMATS", "Feed", "ForeignSession", "Reading", "feed", "head_of", "read"]

_BY_NAME: Mapping[str, ModuleType] = {
    module.FORMAT: module
    for module in (
        jsonl,
        deepseek_harness,
        claude_code,
        codex,
        pi,
        openhands,
        swe_agent,
        inspect_ai,
        tau_bench,
        open_assistant,
        chatgpt,
        librechat,
        openai,
        session_yaml,
    )
}
FORMATS = tuple(_BY_NAME)
"""The names of the formats that can be read."""
HEAD = 20
"""Records at a document's start by which its format is told, or fewer that are long."""
HEAD_CHARACTERS = 4 * 1024 * 1024


class Feed:
    """The steps of one document, record by record, and what was lost; `accepted` counts the records that fit.

    A record that breaks the format is left out and counted where the losses are lenient, else it raises BadInput with
    its place.
    """

    def __init__(self, format: str, reader: Reader, losses: ImportWarnings) -> None:
        self.format = format
        self.losses = losses
        self.accepted = 0
        self._reader = reader

    def add(self, record: Record | Broken) -> Sequence[Step]:
        """The steps of the next record."""
        try:
            if isinstance(record, Broken):
                raise record.error()
            if record.unreal:
                self._take_unreal(record)
            if record.repaired:
                self.losses.add("record", "held bytes that are not UTF-8, now U+FFFD")
            try:
                steps = self._reader.add(record)
            except RecursionError as error:
                raise errors.BadInput(f"{record.place}: nested deeper than {text.MAX_NESTING} levels") from error
        except errors.BadInput as error:
            self.losses.leave_out(error)
            return ()
        self.accepted += 1
        return steps

    def _take_unreal(self, record: Record) -> None:
        why = f"{record.place}: {record.unreal}"
        if not self.losses.lenient:
            raise errors.BadInput(why)
        self.losses.add("record", "held numbers that are none, now texts", why=why)

    def end(self) -> Sequence[Step]:
        """What is left to tell after the last record."""
        return self._reader.end()


def head_of(found: Iterator[Record | Broken]) -> tuple[list[Record | Broken], Iterator[Record | Broken]]:
    """The first records of a document, and all of them."""
    head: list[Record | Broken] = []
    size = 0
    for record in itertools.islice(found, HEAD):
        head.append(record)
        size += _length(record.value, HEAD_CHARACTERS) if isinstance(record, Record) else 0
        if size > HEAD_CHARACTERS:
            break
    return head, itertools.chain(head, found)


def _length(value: object, enough: int) -> int:
    """The characters of a value's texts, and one for each item; more than `enough` are not counted."""
    length = 0
    waiting = [value]
    while waiting and length <= enough:
        match waiting.pop():
            case str(content) | Unparsed(content=content):
                length += len(content)
            case list() as items:
                length += len(items)
                waiting += items
            case dict() as fields:
                length += len(fields)
                waiting += fields.values()
    return length


def feed(name: str, head: Sequence[Record | Broken], format: str | None = None, *, lenient: bool = False) -> Feed:
    """A feed for the document that begins with these records; its format is told by them unless it is given.

    `lenient`: of a record that breaks the format only what breaks it is lost, and counted.

    Raises BadInput, naming the known formats and the first thing that fits none.
    """
    losses = ImportWarnings(lenient=lenient)
    module = _module(format) if format is not None else _recognised(name, head)
    return Feed(module.FORMAT, module.reader(name, losses), losses)


def _module(format: str) -> ModuleType:
    if format not in FORMATS:
        raise errors.BadInput(f"format: {format!r} is none of {', '.join(FORMATS)}")
    return _BY_NAME[format]


def _recognised(name: str, head: Sequence[Record | Broken]) -> ModuleType:
    values = [record.value for record in head if isinstance(record, Record)]
    if values:
        for module in _BY_NAME.values():
            if module.fits(values):
                return module
    known = ", ".join(FORMATS)
    if not head:
        raise errors.BadInput(f"{name}: the document is an empty list (known formats: {known})")
    first = head[0]
    if isinstance(first, Broken):
        raise errors.BadInput(f"{first.place}: {first.why} (known formats: {known})")
    if isinstance(first.value, Unparsed):
        raise errors.BadInput(f"{first.place}: {first.value.why} (known formats: {known})")
    raise errors.BadInput(f"{name}: not in a known format ({known}): {first.place} holds {shape(first.value)}")


def _steps(source: Feed, found: Iterator[Record | Broken]) -> Iterator[Step]:
    for record in found:
        yield from source.add(record)
    yield from source.end()


def read(name: str, content: str, format: str | None = None) -> Reading:
    """All that a document says, at once. Raises BadInput, naming the place, for what is unknown or broken.

    Ignores `Logged.replaces`, which needs a surface: `storage.transfer.importing` handles formats that replace.
    """
    stream = io.BytesIO(content.encode("utf-8", "surrogatepass"))
    head, found = head_of(records.records(name, stream))
    source = feed(name, head, format)
    sessions: dict[str, ForeignSession] = {}
    logs: dict[str, list[Event]] = {}
    for step in _steps(source, found):
        match step:
            case ForeignSession():
                sessions[step.key] = step
                logs[step.key] = list(step.events)
            case Logged():
                logs[step.key].append(step.event)
            case Renamed():
                sessions[step.key] = replace(sessions[step.key], label=step.label)
    complete = ordered(replace(session, events=logs[key]) for key, session in sessions.items())
    return Reading(source.format, complete, source.losses.warnings())
