"""Paging information that all connections share."""

from __future__ import annotations

import strawberry


@strawberry.type
class PageInfo:
    """Where a page starts and ends, and whether the list goes on."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None

    @classmethod
    def of(cls, ends: tuple[str, str] | None, more: bool, after: str | None) -> PageInfo:
        """The information on a page read after the cursor `after`; `ends` are the cursors of its first and last row."""
        start, end = ends or (None, None)
        return cls(has_next_page=more, has_previous_page=after is not None, start_cursor=start, end_cursor=end)
