"""The real logs under tests/data, and what to count in a reading of them."""

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from storage.events import Event, SurfaceOp, SurfaceOpKind
from storage.transfer.formats.registry import ForeignDocument, ForeignSession, peek_records, read_document, reader_for
from storage.transfer.formats.shared.foreign import ForeignEvent, ImportWarnings, Step
from storage.transfer.formats.shared.records import BrokenRecord, Record, read_records
from storage.views.surface import Surface
from tests import paths

DATA = paths.DATA
DEEPSEEK = tuple(sorted(str(path.relative_to(DATA)) for path in DATA.glob("deepseek-harness/*/*.jsonl")))
TAU_BENCH = "tau-bench/gpt-4o-airline.tasks00-24.json"
OASST = "oasst/en_100_tree.lines001-060.jsonl"
CHATGPT_EXPORT = "chat-trees/chatgpt-export.json"
CHATGPT_TREE = "chat-trees/chatgpt-tree.json"
LIBRECHAT = "chat-trees/librechat-tree.json"
ALL = (*DEEPSEEK, TAU_BENCH, OASST)


def document(name: str) -> tuple[str, str]:
    return name, (DATA / name).read_bytes().decode()


def read_log(name: str) -> ForeignDocument:
    return read_document(*document(name))


def counts(sessions: Iterable[ForeignSession]) -> Counter[str]:
    return Counter(event.type for session in sessions for event in session.events)


def messages(sessions: Iterable[ForeignSession]) -> tuple[int, int, int, int]:
    """User, assistant, tool and system messages."""
    found = counts(sessions)
    return (found["user/message"], found["assistant/message"], found["tool/result"], found["system/message"])


def records_of(name: str, content: str | bytes) -> list[Record | BrokenRecord]:
    """The records of a document."""
    return list(read_records(name, io.BytesIO(content.encode() if isinstance(content, str) else content)))


def steps_of(
    found: Sequence[Record | BrokenRecord], format: str | None = None, *, lenient: bool = False
) -> tuple[list[Step], ImportWarnings]:
    """All steps that records give, and what was lost."""
    head, all_records = peek_records(iter(found))
    source = reader_for("log", head, format, lenient=lenient)
    steps = [step for record in all_records for step in source.add(record)]
    return [*steps, *source.end()], source.warnings


def visible_logs(steps: Iterable[Step]) -> dict[str, list[Event]]:
    """The events of each session with their seqs, what forks inherit included, and exact bounds of replacements."""
    logs: dict[str, list[Event]] = {}
    surfaces: dict[str, Surface] = {}

    def add(key: str, event: Event) -> None:
        event = event.model_copy(update={"seq": len(logs[key])})
        logs[key].append(event)
        surfaces[key].add(event)

    for step in steps:
        match step:
            case ForeignSession():
                inherited = logs[step.source][: step.at_seq] if step.source is not None and step.at_seq else []
                logs[step.key], surfaces[step.key] = [], Surface()
                for event in (*inherited, *step.events):
                    add(step.key, event)
            case ForeignEvent(key, event, None):
                add(key, event)
            case ForeignEvent(key, event, (first, last)):
                found = [node.seq for node in surfaces[key].nodes() if first <= node.seq <= last]
                if found:
                    op = SurfaceOp(op=SurfaceOpKind.REPLACE, start=found[0], end=found[-1])
                    event = event.model_copy(update={"surface_op": op})
                add(key, event)
    return logs
