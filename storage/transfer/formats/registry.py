"""The list of log formats, how the format of a document is recognized, and how a document is read.

Nothing here opens a file: records come in, sessions and events go out.

To add a format:

1. Add a module here, or a folder if it needs more than one module; in a folder, `format.py` holds what follows and
   `__init__.py` exports it. `openai.py` is the shortest example of a module, `pi/` of a folder.
2. Define `FORMAT`, its name as users type it.
3. Define `fits(values)`: whether the values of a document's first records are of this format.
4. Define `reader(name, warnings)`, which returns a `shared.foreign.Reader` for one document. Let it fill a
   `shared.log_builder.LogBuilder`, keep what has no event type as a custom event, and count what is lost in `warnings`.
5. Add the module to `MODULES` below. The formats are tried in this order, so put it before those that would also
   accept its documents.
6. Put a sample under `tests/data/`, and test the reader in `tests/storage/transfer/formats/` with `documents.py` there:
   a log that grows, broken records, events that can be stored.
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
from storage.transfer.formats.shared.json_decoding import BadNumber
from storage.transfer.formats.shared.record import BrokenRecord, Record, UnparsedText
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

MODULES: Mapping[str, ModuleType] = {
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
"""The modules of the formats by name, in the order in which they are tried."""
FORMATS = tuple(MODULES)
"""The names of the formats that can be read, in the order in which they are tried."""
HEAD = 20
"""Number of records at the start of a document that its format is recognized by."""
HEAD_CHARACTERS = 4 * 1024 * 1024
"""Fewer than `HEAD` records are used once they hold more characters than this."""


class DocumentReader:
    """Reads one document record by record, into steps; `accepted` counts the records that the format accepted.

    A record that breaks the format is left out and counted if `warnings` is lenient; otherwise it raises BadInput with
    its location.
    """

    def __init__(self, format: str, reader: Reader, warnings: ImportWarnings) -> None:
        self.format = format
        self.warnings = warnings
        self.accepted = 0
        self._reader = reader

    def add(self, record: Record | BrokenRecord) -> Sequence[Step]:
        """Return the steps of the next record."""
        try:
            if isinstance(record, BrokenRecord):
                raise record.error()
            if record.bad_number is not None:
                self._accept_number(record.bad_number, record.location)
            if record.repaired:
                self.warnings.add("record", "held bytes that are not UTF-8, now U+FFFD")
            try:
                steps = self._reader.add(record)
            except RecursionError as error:
                raise errors.BadInput(f"{record.location}: nested deeper than {text.MAX_NESTING} levels") from error
        except errors.BadInput as error:
            self.warnings.leave_out(error, conversation=self._reader.reads_conversations)
            return ()
        self.accepted += 1
        return steps

    def _accept_number(self, number: BadNumber, location: str) -> None:
        """Count a number that became a string. Raises BadInput in strict reading, if JSON does not allow it."""
        reason = f"{location}: {number.reason}"
        if number.is_json:
            self.warnings.add("record", "held numbers that events can't store, now strings", reason=reason)
            return
        if not self.warnings.lenient:
            raise errors.BadInput(reason)
        self.warnings.add("record", "held numbers that JSON does not allow, now strings", reason=reason)

    def end(self) -> Sequence[Step]:
        """Return the steps that remain after the last record."""
        return self._reader.end()


def peek_records(
    found: Iterator[Record | BrokenRecord],
) -> tuple[list[Record | BrokenRecord], Iterator[Record | BrokenRecord]]:
    """Return the first records of a document, and an iterator over all of its records."""
    head: list[Record | BrokenRecord] = []
    size = 0
    for record in itertools.islice(found, HEAD):
        head.append(record)
        size += _length(record.value, HEAD_CHARACTERS) if isinstance(record, Record) else 0
        if size > HEAD_CHARACTERS:
            break
    return head, itertools.chain(head, found)


def _length(value: object, enough: int) -> int:
    """Count the characters of a value's strings, plus one for each item. Stops soon after `enough`."""
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
    """Return a reader for the document that begins with these records; `format` overrides the recognized format.

    A lenient reader drops and counts only what breaks the format. Raises BadInput, naming the known formats and the
    first record, if no format fits.
    """
    warnings = ImportWarnings(lenient=lenient)
    module = _module(format) if format is not None else _recognised(name, head)
    return DocumentReader(module.FORMAT, module.reader(name, warnings), warnings)


def _module(format: str) -> ModuleType:
    if format not in FORMATS:
        raise errors.BadInput(f"format: {format!r} is none of {', '.join(FORMATS)}")
    return MODULES[format]


def _recognised(name: str, head: Sequence[Record | BrokenRecord]) -> ModuleType:
    values = [record.value for record in head if isinstance(record, Record)]
    if values:
        for module in MODULES.values():
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
    """Read a whole document strictly. Raises BadInput with the location of whatever is unknown or broken.

    Ignores `ForeignEvent.replaces`, which needs a surface: `storage.transfer.importing` handles formats that replace.
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
