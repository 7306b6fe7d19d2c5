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
    session_yaml,
    swe_agent,
    tau_bench,
)
from storage.transfer.formats.shared import records
from storage.transfer.formats.shared.foreign import (
    ForeignDocument,
    ForeignEvent,
    ForeignLabel,
    ForeignSession,
    ImportWarnings,
    Reader,
    Step,
    parents_first,
)
from storage.transfer.formats.shared.records import BrokenRecord, Record, UnparsedText
from storage.transfer.formats.shared.values import shape

__all__ = [
    "FORMATS",
    "DocumentReader",
    "ForeignDocument",
    "ForeignSession",
    "peek_records",
    "read_document",
    "reader_for",
]

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


class DocumentReader:
    """The steps of one document, record by record, and what was lost; `accepted` counts the records that fit.

    A record that breaks the format is left out and counted where the losses are lenient, else it raises BadInput with
    its place.
    """

    def __init__(self, format: str, reader: Reader, warnings: ImportWarnings) -> None:
        self.format = format
        self.warnings = warnings
        self.accepted = 0
        self._reader = reader

    def add(self, record: Record | BrokenRecord) -> Sequence[Step]:
        """The steps of the next record."""
        try:
            if isinstance(record, BrokenRecord):
                raise record.error()
            if record.bad_number:
                self._take_unreal(record)
            if record.repaired:
                self.warnings.add("record", "held bytes that are not UTF-8, now U+FFFD")
            try:
                steps = self._reader.add(record)
            except RecursionError as error:
                raise errors.BadInput(f"{record.location}: nested deeper than {text.MAX_NESTING} levels") from error
        except errors.BadInput as error:
            self.warnings.leave_out(error)
            return ()
        self.accepted += 1
        return steps

    def _take_unreal(self, record: Record) -> None:
        reason = f"{record.location}: {record.bad_number}"
        if not self.warnings.lenient:
            raise errors.BadInput(reason)
        self.warnings.add("record", "held numbers that are none, now texts", reason=reason)

    def end(self) -> Sequence[Step]:
        """What is left to tell after the last record."""
        return self._reader.end()


def peek_records(
    found: Iterator[Record | BrokenRecord],
) -> tuple[list[Record | BrokenRecord], Iterator[Record | BrokenRecord]]:
    """The first records of a document, and all of them."""
    head: list[Record | BrokenRecord] = []
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
            case str(content) | UnparsedText(content=content):
                length += len(content)
            case list() as items:
                length += len(items)
                waiting += items
            case dict() as fields:
                length += len(fields)
                waiting += fields.values()
    return length


def reader_for(
    name: str, head: Sequence[Record | BrokenRecord], format: str | None = None, *, lenient: bool = False
) -> DocumentReader:
    """A feed for the document that begins with these records; its format is told by them unless it is given.

    `lenient`: of a record that breaks the format only what breaks it is lost, and counted.

    Raises BadInput, naming the known formats and the first thing that fits none.
    """
    warnings = ImportWarnings(lenient=lenient)
    module = _module(format) if format is not None else _recognised(name, head)
    return DocumentReader(module.FORMAT, module.reader(name, warnings), warnings)


def _module(format: str) -> ModuleType:
    if format not in FORMATS:
        raise errors.BadInput(f"format: {format!r} is none of {', '.join(FORMATS)}")
    return _BY_NAME[format]


def _recognised(name: str, head: Sequence[Record | BrokenRecord]) -> ModuleType:
    values = [record.value for record in head if isinstance(record, Record)]
    if values:
        for module in _BY_NAME.values():
            if module.fits(values):
                return module
    known = ", ".join(FORMATS)
    if not head:
        raise errors.BadInput(f"{name}: the document is an empty list (known formats: {known})")
    first = head[0]
    if isinstance(first, BrokenRecord):
        raise errors.BadInput(f"{first.location}: {first.reason} (known formats: {known})")
    if isinstance(first.value, UnparsedText):
        raise errors.BadInput(f"{first.location}: {first.value.reason} (known formats: {known})")
    raise errors.BadInput(f"{name}: not in a known format ({known}): {first.location} holds {shape(first.value)}")


def _steps(source: DocumentReader, found: Iterator[Record | BrokenRecord]) -> Iterator[Step]:
    for record in found:
        yield from source.add(record)
    yield from source.end()


def read_document(name: str, content: str, format: str | None = None) -> ForeignDocument:
    """All that a document says, at once. Raises BadInput, naming the place, for what is unknown or broken.

    Ignores `Logged.replaces`, which needs a surface: `storage.transfer.importing` handles formats that replace.
    """
    stream = io.BytesIO(content.encode("utf-8", "surrogatepass"))
    head, found = peek_records(records.read_records(name, stream))
    source = reader_for(name, head, format)
    sessions: dict[str, ForeignSession] = {}
    logs: dict[str, list[Event]] = {}
    for step in _steps(source, found):
        match step:
            case ForeignSession():
                sessions[step.key] = step
                logs[step.key] = list(step.events)
            case ForeignEvent():
                logs[step.key].append(step.event)
            case ForeignLabel():
                sessions[step.key] = replace(sessions[step.key], label=step.label)
    complete = parents_first(replace(session, events=logs[key]) for key, session in sessions.items())
    return ForeignDocument(source.format, complete, source.warnings.messages())
