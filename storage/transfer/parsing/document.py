"""Reading a document of a known format as batches of steps."""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from storage import errors, events
from storage.transfer.formats import registry
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.record import BrokenRecord, Record
from storage.transfer.formats.shared.records import read_records

STEP_WEIGHT = 200
"""What a step weighs apart from its texts and events."""


class StepBatch(NamedTuple):
    """Consecutive steps, and about how many characters they take."""

    steps: Sequence[Step]
    weight: int


def never() -> bool:
    """The `stopped` of a document that is always read to its end."""
    return False


class Document:
    """A document being read. Unless its format is given, it is detected by the first records.

    A broken record is left out, with a warning. Raises BadInput for a document of no known format.
    """

    def __init__(self, name: str, stream: BinaryIO, format: str | None = None) -> None:
        head, self._records = registry.peek_records(read_records(name, stream))
        self._feed = registry.reader_for(name, head, format, lenient=True)

    @property
    def format(self) -> str:
        """The name of its format."""
        return self._feed.format

    @property
    def warnings(self) -> ImportWarnings:
        """What was left out or changed so far. Complete once all batches were yielded."""
        return self._feed.warnings

    def batches(self, stopped: Callable[[], bool] = never) -> Iterator[StepBatch]:
        """Yields the steps of each record in order. Once `stopped` is true, reads as if the document ended there.

        Raises BadInput at the end of a document of which no record fits the format.
        """
        for batch in map(self._batch, self._records):  # unlike a loop over them, map keeps no record alive
            yield batch
            del batch
            if stopped():
                break
        if not self._feed.accepted and self.warnings.first_broken:
            raise errors.BadInput(self.warnings.first_broken)
        yield _weighed(self._feed.end())

    def _batch(self, record: Record | BrokenRecord) -> StepBatch:
        return _weighed(self._feed.add(record))


def _weighed(steps: Sequence[Step]) -> StepBatch:
    return StepBatch(steps, sum(map(_weight, steps)))


def _weight(step: Step) -> int:
    match step:
        case ForeignEvent():
            return events.weight(step.event)
        case ForeignSession():
            texts = (step.system_prompt, step.memory, step.insight, step.metadata)
            return STEP_WEIGHT + sum(len(text or "") for text in texts) + sum(map(events.weight, step.events))
    return STEP_WEIGHT
