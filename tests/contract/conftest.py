"""Access to stored documents, bypassing the store."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest

from storage.sqlite.database import FILE


class Stored:
    """All stored documents as text, without SQLite's table of changes, which only wakes readers."""

    def __init__(self, location: Path | str) -> None:
        self._location = location

    async def mentioned(self, *texts: str) -> set[str]:
        """Those of the texts that occur in a stored document."""
        documents = "\n".join(self._rows() if isinstance(self._location, Path) else self._documents(self._location))
        return {text for text in texts if text in documents}

    def _rows(self) -> list[str]:
        with closing(sqlite3.connect(Path(self._location) / FILE)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            assert "commits" in tables
            return [
                str(row)
                for table in tables
                if table != "changes"
                for row in connection.execute(f"SELECT * FROM {table}")
            ]

    def _documents(self, url: str) -> list[str]:
        with pymongo.MongoClient[dict[str, Any]](url) as client:
            database = client[urlsplit(url).path.strip("/")]
            collections = database.list_collection_names()
            assert "commits" in collections
            return [str(document) for name in collections for document in database[name].find()]


@pytest.fixture
def stored(location: Path | str) -> Stored:
    """The documents of the store under test."""
    return Stored(location)
