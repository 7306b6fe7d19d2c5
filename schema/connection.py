"""What all pages of a list have in common."""

from __future__ import annotations

from collections.abc import Sequence

import strawberry


@strawberry.type
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None

    @classmethod
    def of(cls, cursors: Sequence[str], more: bool, after: str | None) -> PageInfo:
        """Of a page with these cursors, read behind `after`."""
        return cls(
            has_next_page=more,
            has_previous_page=after is not None,
            start_cursor=cursors[0] if cursors else None,
            end_cursor=cursors[-1] if cursors else None,
        )
