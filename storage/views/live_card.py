"""Where the card of one type and payload id stands now, from seqs alone: of its versions, and of what hides them."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.events import SurfaceHide


@dataclass(frozen=True, slots=True)
class LiveCard:
    """The seq of the first version, which is the card's place, and of the newest, which is its content."""

    place: int
    version: int


def live_card(seqs: Sequence[int], hides: Sequence[SurfaceHide]) -> LiveCard | None:
    """The card whose versions have these seqs, at least one, after these hides; both in seq order.

    A hide that takes the place or the version of the time takes the card away, and the next version starts anew.
    Hides before the first version may be left out, and versions that are neither the first nor the last between two
    hides.
    """
    place = 0
    for hide in hides:
        versions = bisect_left(seqs, hide.seq)
        if place < versions and (_takes(hide, seqs[place]) or _takes(hide, seqs[versions - 1])):
            place = versions
            if place == len(seqs):
                return None
    return LiveCard(seqs[place], seqs[-1])


def _takes(hide: SurfaceHide, seq: int) -> bool:
    return hide.from_seq <= seq < hide.to_seq


def unhidden(seqs: Sequence[int], hides: Iterable[SurfaceHide]) -> set[int]:
    """Those of these seqs, in order, that no hide takes."""
    left = list(seqs)
    for hide in hides:
        del left[bisect_left(left, hide.from_seq) : bisect_left(left, hide.to_seq)]
    return set(left)
