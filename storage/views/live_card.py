"""Where a card is shown, and its current version, from seqs alone: those of its versions, and of hides."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.events import SurfaceHide


@dataclass(frozen=True, slots=True)
class LiveCard:
    """The seq of the first version, which is the card's position, and of the newest, which holds its content."""

    position: int
    version: int


def live_card(seqs: Sequence[int], hides: Sequence[SurfaceHide]) -> LiveCard | None:
    """The card with versions at these seqs, at least one, after these hides; both in seq order. None if it is hidden.

    A hide whose range holds the position or the version at that time removes the card, and the next version starts a
    new one. Hides before the first version may be left out, and versions that are neither the first nor the last
    between two hides.
    """
    first = 0
    for hide in hides:
        versions = bisect_left(seqs, hide.seq)
        if first < versions and (_covers(hide, seqs[first]) or _covers(hide, seqs[versions - 1])):
            first = versions
            if first == len(seqs):
                return None
    return LiveCard(seqs[first], seqs[-1])


def _covers(hide: SurfaceHide, seq: int) -> bool:
    return hide.from_seq <= seq < hide.to_seq


def unhidden(seqs: Sequence[int], hides: Iterable[SurfaceHide]) -> set[int]:
    """Those of these seqs, which are in order, that no hide covers."""
    left = list(seqs)
    for hide in hides:
        del left[bisect_left(left, hide.from_seq) : bisect_left(left, hide.to_seq)]
    return set(left)
