"""Logs of Inspect in JSON, `{version, status, eval, plan, results, stats, samples}`: the evaluation, and its samples.

The evaluation is a node without events, the samples are its children. A log's samples are records of the part
`samples`, what stands behind them is one of the part `more`. https://inspect.aisi.org.uk/eval-logs.html
"""

from collections.abc import Sequence
from typing import Any

from storage.transfer.formats.inspect_ai.samples import Sample
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.log_builder import label_of
from storage.transfer.formats.shared.naming import SessionIds
from storage.transfer.formats.shared.records import Record
from storage.transfer.formats.shared.values import as_object

FORMAT = "inspect"

_EVALUATION = "evaluation"
_TOLD = frozenset({"messages", "events", "attachments", "output", "uuid"})
"""Fields of a sample that become events, or stand there already."""


def fits(values: Sequence[object]) -> bool:
    """Whether the first record is the head of a log."""
    match values:
        case [{"eval": {"task": str()}, "status": str()}, *_]:
            return True
    return False


def reader(name: str, warnings: ImportWarnings) -> "InspectReader":
    """A reader of one document."""
    return InspectReader(warnings)


class InspectReader:
    """A session for the evaluation, not counted, and one for each sample."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._evaluation: str | None = None
        self._samples = 0
        self._ids = SessionIds()

    def add(self, record: Record) -> Sequence[Step]:
        """The evaluation of the head, or the session of a sample.

        Raises BadInput for a record that is no object, and for a sample without messages.
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
        """Nothing: each record says all that it says at once."""
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
        told = {name: value for name, value in fields.items() if name not in _TOLD}
        if sample.repeats_input(told.get("input")):
            del told["input"]
        return ForeignSession(
            key=sample.key,
            label=_label(fields),
            events=events,
            id=self._ids.claim(fields.get("uuid"), self._warnings),
            parent=self._evaluation,
            metadata=facts.metadata(told, location, self._warnings),
        )


def _label(sample: dict[str, Any]) -> str | None:
    """A label that names the sample and its epoch, as far as they are texts or numbers."""
    named = [("Sample", sample.get("id")), ("epoch", sample.get("epoch"))]
    return label_of(", ".join(f"{noun} {name}" for noun, name in named if isinstance(name, str | int)))
