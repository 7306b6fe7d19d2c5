"""Trimming records: which events to hide so that only the newest records stay visible."""

from storage import errors
from storage.events import SurfaceHide
from storage.views.surface import Surface


def hides_for_trim(surface: Surface, keep_recent: int, reason: str | None = "trimRecords") -> list[SurfaceHide]:
    """The fewest hides that leave the newest `keep_recent` records, and the rest of a tool group that this would tear.

    Empty if there are no more records; 0 hides all. Whatever is between hidden records, or before all visible ones, is
    hidden with them: cards, and what a hidden replacement took the place of. Raises BadInput for a negative number.
    """
    if keep_recent < 0:
        raise errors.BadInput(f"keepRecent: must not be negative, is {keep_recent}")
    nodes = surface.nodes()
    cut, count = len(nodes), 0
    while cut and count < keep_recent:
        cut -= 1
        count += 1 + len(nodes[cut].results)
    hidden_seqs = [(seq, True) for node in nodes[:cut] for seq in node.seqs()]
    visible_seqs = [(seq, False) for node in nodes[cut:] for seq in node.seqs()]
    ranges: list[tuple[int, int]] = []
    start: int | None = 0
    for seq, hidden in sorted(hidden_seqs + visible_seqs):
        if not hidden:
            start = None
        elif start is not None and ranges:
            ranges[-1] = (start, seq + 1)
        else:
            start = seq if start is None else start
            ranges.append((start, seq + 1))
    return [SurfaceHide(from_seq=first, to_seq=stop, reason=reason) for first, stop in ranges]
