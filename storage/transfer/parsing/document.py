"""A document of a known format, and what it tells step by step."""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from storage import errors, events
from storage.transfer.formats import registry
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, ImportWarnings, Step
from storage.transfer.formats.shared.records import BrokenRecord, Record, read_records

STEP_WEIGHT = 200
"""What a step weighs beside its texts and events."""


class Part(NamedTuple):
    """Some steps in order, and about how many characters they take."""

    steps: Sequence[Step]
    weight: int


def never() -> bool:
    """What a document that nobody stops is asked."""
    return False


class Document:
    """What a document tells; its format is told by its first records unless it is given.

    Of a record that is broken only that is left out, and counted among the `losses`, which are complete when all steps
    are told.

    Raises BadInput for a document of no known format.
    """

    def __init__(self, name: str, stream: BinaryIO, format: str | None = None) -> None:
        head, self._found = registry.peek_records(read_records(name, stream))
        self._feed = registry.reader_for(name, head, format, lenient=True)

    @property
    def format(self) -> str:
        """The name of its format."""
        return self._feed.format

    @property
    def losses(self) -> ImportWarnings:
        """What was lost so far."""
        return self._feed.warnings

    def parts(self, stopped: Callable[[], bool] = never) -> Iterator[Part]:
        """The steps of each record, in order; once `stopped` is true, as if the document ended there.

        Raises BadInput at the end of a document of which no record fits.
        """
        for part in map(self._part, self._found):  # which keeps no record longer than it is read
            yield part
            del part
            if stopped():
                break
        if not self._feed.accepted and self.losses.first_broken:
            raise errors.BadInput(self.losses.first_broken)
        yield _weighed(self._feed.end())

    def _part(self, record: Record | BrokenRecord) -> Part:
        return _weighed(self._feed.add(record))


def _weighed(steps: Sequence[Step]) -> Part:
    return Part(steps, sum(map(_weight, steps)))


def _weight(step: Step) -> int:
    match step:
        case ForeignEvent():
            return events.weight(step.event)
        case ForeignSession():
            texts = (step.system_prompt, step.memory, step.insight, step.metadata)
            return STEP_WEIGHT + sum(len(text or "") for text in texts) + sum(map(events.weight, step.events))
    return STEP_WEIGHT
