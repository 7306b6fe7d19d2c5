"""What a store has written, read past its interface."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pymongo
import pytest
from pymongo.database import Database

from storage.sqlite.database import FILE


class Stored:
    """Everything in the database as text, except SQLite's table of changes, which only wakes readers."""

    def __init__(self, place: Path | str) -> None:
        self._place = place

    async def mentioned(self, *texts: str) -> set[str]:
        """Those of the texts that occur in any stored document."""
        documents = "\n".join(self._rows() if isinstance(self._place, Path) else self._documents(self._place))
        return {text for text in texts if text in documents}

    def _rows(self) -> list[str]:
        with closing(sqlite3.connect(Path(self._place) / FILE)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            assert "commits" in tables
            return [
                str(row)
                for table in tables
                if table != "changes"
                for row in connection.execute(f"SELECT * FROM {table}")
            ]

    def _documents(self, url: str) -> list[str]:
        client: pymongo.MongoClient[dict[str, object]]
        with pymongo.MongoClient(url) as client:
            database: Database[dict[str, object]] = client[urlsplit(url).path.strip("/")]
            collections = database.list_collection_names()
            assert "commits" in collections
            return [str(document) for name in collections for document in database[name].find()]


@pytest.fixture
def stored(place: Path | str) -> Stored:
    """What the store under test has written."""
    return Stored(place)
