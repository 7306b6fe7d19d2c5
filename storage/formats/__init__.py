"""Logs in: records of known formats become events and topology. Pure functions; nothing here opens a file."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from storage import errors
from storage.formats import deepseek_harness, jsonl, open_assistant, openai, records, session_yaml, tau_bench
from storage.formats.foreign import ForeignSession, Reading
from storage.formats.records import Document

__all__ = ["FORMATS", "ForeignSession", "Reading", "read"]


class _Format(NamedTuple):
    fits: Callable[[object], bool]
    read: Callable[[Sequence[Document]], list[Reading]]


def _each(read_one: Callable[[Document], Reading]) -> Callable[[Sequence[Document]], list[Reading]]:
    return lambda documents: [read_one(document) for document in documents]


_BY_NAME: Mapping[str, _Format] = {
    jsonl.FORMAT: _Format(jsonl.fits, _each(jsonl.read)),
    deepseek_harness.FORMAT: _Format(deepseek_harness.fits, deepseek_harness.read),
    openai.FORMAT: _Format(openai.fits, _each(openai.read)),
    tau_bench.FORMAT: _Format(tau_bench.fits, _each(tau_bench.read)),
    open_assistant.FORMAT: _Format(open_assistant.fits, _each(open_assistant.read)),
}
FORMATS = (*_BY_NAME, session_yaml.FORMAT)
"""The names of the formats that can be read."""


def read(documents: Sequence[tuple[str, str]], format: str | None = None) -> list[Reading]:
    """The sessions in documents, given as name and text, in the order of FORMATS and then of the documents.

    Without `format` each document's is recognised by its content. Documents that belong together make one reading.
    Raises BadInput, naming the document and the line or index, for what is unknown or broken.
    """
    if format is not None and format not in FORMATS:
        raise errors.BadInput(f"format: {format!r} is none of {', '.join(FORMATS)}")
    found: dict[str, list[Document]] = {name: [] for name in _BY_NAME}
    files: list[Reading] = []
    for name, content in documents:
        if format == session_yaml.FORMAT or (format is None and session_yaml.fits(content)):
            files.append(session_yaml.read(name, content))
            continue
        try:
            document = records.document(name, content)
        except errors.BadInput as error:
            if format is not None:
                raise
            raise errors.BadInput(f"{error.message} (known formats: {', '.join(FORMATS)})") from error
        found[format or _recognised(document)].append(document)
    return [*(reading for name, known in _BY_NAME.items() for reading in known.read(found[name])), *files]


def _recognised(document: Document) -> str:
    place, value = document.records[0]
    for name, known in _BY_NAME.items():
        if known.fits(value):
            return name
    raise errors.BadInput(
        f"{document.name}: not in a known format ({', '.join(FORMATS)}): {place} holds {records.shape(value)}"
    )
