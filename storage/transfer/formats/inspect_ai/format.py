"""Logs of Inspect in JSON, `{version, status, eval, plan, results, stats, samples}`: an evaluation and its samples.

The evaluation is a node without events, and the samples are its children. Samples are records of the part `samples`;
the fields after them are a record of the part `more`. https://inspect.aisi.org.uk/eval-logs.html
"""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from storage.transfer.formats.inspect_ai.samples import Sample
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step
from storage.transfer.formats.shared.log_builder import label_of
from storage.transfer.formats.shared.naming import SessionIds
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_object

FORMAT = "inspect"

_EVALUATION = "evaluation"
_CONVERTED = frozenset({"messages", "events", "attachments", "output", "uuid"})
"""Fields of a sample that are converted to events, or repeat them."""


def fits(values: Sequence[object]) -> bool:
    """Whether the first record is the head of a log."""
    match values:
        case [{"eval": {"task": str()}, "status": str()}, *_]:
            return True
    return False


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return InspectReader(warnings)


class InspectReader(Reader):
    """Yields a node for the evaluation, which does not count as a session, and a session for each sample."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._evaluation: str | None = None
        self._samples = 0
        self._ids = SessionIds()

    @property
    @override
    def reads_conversations(self) -> bool:
        return self._evaluation is not None

    def add(self, record: Record) -> Sequence[Step]:
        """Return the node of the evaluation, or the session of a sample.

        Raises BadInput for a record that is not an object, and for a sample without messages.
        """
        fields = as_object(record.value, record.location)
        match record.part:
            case None:
                return [self._head(fields, record.location)] if self._evaluation is None else []
            case "samples":
                return [self._sample(fields, record.location)]
        self._warnings.lost_fields("log", fields, ())
        return ()

    def end(self) -> Sequence[Step]:
        """Return nothing: no record waits for another."""
        return ()

    def _head(self, log: dict[str, Any], location: str) -> ForeignSession:
        evaluation = as_object(log.get("eval"), f"{location} eval")
        task = evaluation.get("task")
        self._evaluation = _EVALUATION
        return ForeignSession(
            key=_EVALUATION,
            label=label_of(task) if isinstance(task, str) else None,
            id=self._ids.claim(evaluation.get("eval_id"), self._warnings),
            metadata=facts.metadata(log, location, self._warnings),
            counted=False,
        )

    def _sample(self, fields: dict[str, Any], location: str) -> ForeignSession:
        sample = Sample(f"sample-{self._samples}", fields, location, self._warnings)
        events = sample.events()
        self._samples += 1
        rest = {name: value for name, value in fields.items() if name not in _CONVERTED}
        if sample.repeats_input(rest.get("input")):
            del rest["input"]
        return ForeignSession(
            key=sample.key,
            label=_label(fields),
            events=events,
            id=self._ids.claim(fields.get("uuid"), self._warnings),
            parent=self._evaluation,
            metadata=facts.metadata(rest, location, self._warnings),
        )


def _label(sample: dict[str, Any]) -> str | None:
    """A label from the ids of the sample and its epoch, as far as they are strings or numbers."""
    named = [("Sample", sample.get("id")), ("epoch", sample.get("epoch"))]
    return label_of(", ".join(f"{noun} {name}" for noun, name in named if isinstance(name, str | int)))
