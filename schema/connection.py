"""What all pages of a list have in common."""

from __future__ import annotations

import strawberry


@strawberry.type
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None

    @classmethod
    def of(cls, ends: tuple[str, str] | None, more: bool, after: str | None) -> PageInfo:
        """Of a page whose first and last rows have these cursors, read behind `after`."""
        start, end = ends or (None, None)
        return cls(has_next_page=more, has_previous_page=after is not None, start_cursor=start, end_cursor=end)
