"""The real logs under tests/data, and how tests read a log: its records, steps and visible events."""

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from storage.events import Event, SurfaceOp, SurfaceOpKind
from storage.transfer.formats.registry import ForeignDocument, ForeignSession, peek_records, read_document, reader_for
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignLabel, ImportWarnings, Step
from storage.transfer.formats.shared.record import BrokenRecord, Record
from storage.transfer.formats.shared.records import read_records
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
    """The name and the text of a file."""
    return name, (DATA / name).read_bytes().decode()


def read_log(name: str) -> ForeignDocument:
    """Read a file."""
    return read_document(*document(name))


def counts(sessions: Iterable[ForeignSession]) -> Counter[str]:
    """The number of events of each type."""
    return Counter(event.type for session in sessions for event in session.events)


def messages(sessions: Iterable[ForeignSession]) -> tuple[int, int, int, int]:
    """The numbers of user, assistant, tool and system messages."""
    found = counts(sessions)
    return (found["user/message"], found["assistant/message"], found["tool/result"], found["system/message"])


def records_of(name: str, content: str | bytes) -> list[Record | BrokenRecord]:
    """The records of a document."""
    return list(read_records(name, io.BytesIO(content.encode() if isinstance(content, str) else content)))


def steps_of(
    records: Sequence[Record | BrokenRecord], format: str | None = None, *, lenient: bool = False
) -> tuple[list[Step], ImportWarnings]:
    """All steps of some records, and the warnings."""
    head, all_records = peek_records(iter(records))
    reader = reader_for("log", head, format, lenient=lenient)
    steps = [step for record in all_records for step in reader.add(record)]
    return [*steps, *reader.end()], reader.warnings


def steps_of_values(format: str, values: Sequence[object]) -> list[Step]:
    """All steps of records with these values, read strictly."""
    return steps_of([Record(f"x [{index}]", value) for index, value in enumerate(values)], format)[0]


def visible_logs(steps: Iterable[Step]) -> dict[str, list[Event]]:
    """The events of each session with their seqs, inherited ones included, and the exact bounds of replacements.

    Fails unless each step follows the sessions that it names.
    """
    logs: dict[str, list[Event]] = {}

    def add(key: str, event: Event) -> None:
        logs[key].append(event.model_copy(update={"seq": len(logs[key])}))

    for step in steps:
        match step:
            case ForeignSession():
                assert step.key not in logs
                inherited = logs[step.source][: step.at_seq] if step.source is not None and step.at_seq else []
                assert not step.at_seq or step.source is None or len(inherited) == step.at_seq
                logs[step.key] = []
                for event in (*inherited, *step.events):
                    add(step.key, event)
            case ForeignEvent(key, event, None):
                add(key, event)
            case ForeignEvent(key, event, (first, last)):
                nodes = Surface().add_all(logs[key]).nodes()
                replaced = [node.seq for node in nodes if first <= node.seq <= last]
                if replaced:
                    op = SurfaceOp(op=SurfaceOpKind.REPLACE, start=replaced[0], end=replaced[-1])
                    event = event.model_copy(update={"surface_op": op})
                add(key, event)
            case ForeignLabel():
                assert step.key in logs
    return logs


def visible_by_id(document: ForeignDocument) -> dict[str | None, list[Event]]:
    """The visible log of each session of a document, by the session's own id."""
    logs = visible_logs(document.sessions)
    return {session.id: logs[session.key] for session in document.sessions}
