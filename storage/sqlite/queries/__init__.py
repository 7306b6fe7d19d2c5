"""Reading documents of the file."""

from storage.sqlite.queries.log import HIDES, SqliteQueries, mask, parts, placeholders

__all__ = ["HIDES", "SqliteQueries", "mask", "parts", "placeholders"]
