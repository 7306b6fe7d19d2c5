"""What all queries share: the connection, and reading documents from its rows."""

import sqlite3
from collections.abc import Iterable
from typing import Any, TypeVar

from storage import text
from storage.events import Model

M = TypeVar("M", bound=Model)


class SqliteReader:
    """Queries over one connection. None of them waits: a coroutine over them runs to its end at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _rows(self, sql: str, **values: Any) -> sqlite3.Cursor:
        return self._connection.execute(sql, values)

    def _document(self, model: type[M], sql: str, **values: Any) -> M | None:
        """The document that a statement selects; None also for an `id` that can't be one."""
        if not text.possible_id(values.get("id", "")):
            return None
        row = self._connection.execute(sql, values).fetchone()
        return None if row is None else model.model_validate_json(row[0])


def documents(model: type[M], rows: Iterable[tuple[str]]) -> list[M]:
    """The documents of rows that have no other column."""
    return [model.model_validate_json(doc) for (doc,) in rows]
