"""The indexes, and the version of the documents."""

import contextlib
from typing import Any

from motor.motor_asyncio import AsyncIOMotorDatabase
from pymongo import ASCENDING, IndexModel
from pymongo.errors import DuplicateKeyError

from storage import errors

VERSION = 2
ATTEMPT_SECONDS = 24 * 60 * 60
"""How long the evidence of a transaction is retained. It is needed for seconds."""


def _index(*names: str, **options: Any) -> IndexModel:
    return IndexModel([(name, ASCENDING) for name in names], **options)


INDEXES = {
    "sessions": [
        _index("space", "createdAt", "id"),
        _index("space", "updatedAt", "id"),
        _index("segments.log"),
        _index("creationKey", unique=True, sparse=True),
    ],
    "nodes": [
        _index("parentKey"),
        _index("space", "lineage"),
        _index("refKeys", sparse=True),
    ],
    "slots": [_index("space", "createdAt", "id")],
    "commits": [
        _index("log", "first", unique=True),
        _index("key", unique=True, sparse=True),
        _index("turns", sparse=True),
        _index("steps", sparse=True),
        _index("cards", sparse=True),
    ],
    "forms": [_index("space")],
    "runs": [
        _index("space", "startedAt", "place"),
        _index("space", "sessionId", "startedAt", "place"),
        _index("space", "status", "startedAt", "place"),
        _index("space", "agentNames", "startedAt", "place"),
        _index("space", "toolNames", "startedAt", "place"),
        _index("space", "feedback", "startedAt", "place", partialFilterExpression={"feedback": {"$exists": True}}),
    ],
    "keys": [_index("space")],
    "attempts": [_index("at", expireAfterSeconds=ATTEMPT_SECONDS)],
}


async def prepare(database: AsyncIOMotorDatabase[dict[str, Any]]) -> None:
    """Creates the indexes that are missing. Raises StartupError for documents of another version."""
    # Another server may start at the same time.
    with contextlib.suppress(DuplicateKeyError):
        await database["meta"].update_one({"_id": "schema"}, {"$setOnInsert": {"version": VERSION}}, upsert=True)
    found = await database["meta"].find_one({"_id": "schema"})
    version = VERSION if found is None else found["version"]
    if version > VERSION:
        raise errors.StartupError(
            f"the database {database.name} was written by a newer Sapwood (schema version {version}, this one knows "
            f"{VERSION}): install that version, or name another database in SAPWOOD_DATABASE_URL"
        )
    if version < VERSION:
        raise errors.StartupError(
            f"the database {database.name} was written by an earlier pre-release of Sapwood (schema version {version}, "
            f"this one knows {VERSION}): export its sessions with that one, and import them here into another database"
        )
    for collection, indexes in INDEXES.items():
        await database[collection].create_indexes(indexes)
