"""Which chunks of a log a surface needs: few, as most belong to answers that were logged whole."""

from collections.abc import Iterable

from storage.events import (
    AssistantMessage,
    Event,
    StepEnd,
    StepStart,
    Surfacing,
    TurnEnd,
    TurnStart,
    UserMessage,
)

_BOUNDS = (TurnStart, TurnEnd, StepStart, StepEnd, UserMessage)


def chunks_needed(events: Iterable[Event], start: int, head: int) -> list[range]:
    """The ranges of seqs whose chunks matter for folding start <= seq < head onto a surface of `start` events.

    `events` are all of these except assistant/chunk, in seq order, so that gaps between them are chunks. Folding them
    with only the chunks in the returned ranges equals folding all.
    """
    needed: list[range] = []
    gaps: list[range] = []
    expected = start
    for event in events:
        if event.seq > expected:
            gaps.append(range(expected, event.seq))
        expected = event.seq + 1
        replaces = isinstance(event, Surfacing) and event.replaces
        if isinstance(event, AssistantMessage) and not replaces:
            gaps.clear()
        elif replaces or isinstance(event, _BOUNDS):
            needed += gaps
            gaps.clear()
    if head > expected:
        gaps.append(range(expected, head))
    return needed + gaps
