"""Following what any process commits, by one change stream over the database."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from motor.motor_asyncio import AsyncIOMotorDatabase
from pymongo.errors import PyMongoError

from storage import errors
from storage.database import LOST, Notification
from storage.mongo import codec, failure
from storage.mongo.codec import Document

KINDS = {"sessions": "session", "nodes": "node", "slots": "slots"}
PIPELINE: list[Document] = [
    {
        "$match": {
            "$or": [
                {"ns.coll": "commits", "operationType": "insert"},
                {
                    "ns.coll": {"$in": list(KINDS)},
                    "operationType": {"$in": ["insert", "update", "replace", "delete"]},
                    # The commit of an append is notification enough.
                    "updateDescription.updatedFields.head": {"$exists": False},
                },
            ]
        }
    },
    {
        "$project": {
            "ns": 1,
            "documentKey": 1,
            "operationType": 1,
            "fullDocument.space": 1,
            "fullDocument.session": 1,
            "fullDocument.log": 1,
            "fullDocument.first": 1,
            "fullDocument.last": 1,
        }
    },
]
AWAIT_MS = 500
RESUME_SECONDS = 20.0
"""How long a broken stream tries to resume before it fails."""
FIRST_PAUSE_SECONDS = 0.05
LAST_PAUSE_SECONDS = 1.0


async def follow(database: AsyncIOMotorDatabase[Document]) -> AsyncGenerator[Sequence[Notification], None]:
    """Yields batches of notifications from now on; the first is empty.

    A stream that breaks resumes from its token; if that is too old, it yields LOST. Raises Unavailable when the
    database stays out of reach.
    """
    loop = asyncio.get_running_loop()
    token: Mapping[str, Any] | None = None
    opened = False
    pause, last_alive = FIRST_PAUSE_SECONDS, loop.time()
    while True:
        try:
            async with database.watch(PIPELINE, resume_after=token, max_await_time_ms=AWAIT_MS) as stream:
                if not opened:
                    yield []
                elif token is None:
                    yield [LOST]
                opened = True
                while stream.alive:  # type: ignore[truthy-function]  # a property; the driver's stub says method
                    change = await _next(stream)
                    token = stream.resume_token or token
                    pause, last_alive = FIRST_PAUSE_SECONDS, loop.time()
                    if change is not None:
                        yield [_notification(change)]
                token = None
        except PyMongoError as error:
            if failure.codes(error) & failure.HISTORY_LOST:
                token = None
            elif not opened or loop.time() - last_alive > RESUME_SECONDS:
                raise errors.Unavailable(
                    f"the database's changes can't be followed ({type(error).__name__})"
                ) from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, LAST_PAUSE_SECONDS)


async def _next(stream: Any) -> Document | None:
    """The next change, or None after a while. The driver's thread must finish with a stream before it is closed."""
    reading = asyncio.ensure_future(stream.try_next())
    try:
        change: Document | None = await asyncio.shield(reading)
    except asyncio.CancelledError:
        await asyncio.gather(reading, return_exceptions=True)
        raise
    return change


def _notification(change: Document) -> Notification:
    collection = change["ns"]["coll"]
    if collection == "commits":
        commit = change["fullDocument"]
        return Notification(
            "log", commit["space"], commit["session"], commit["log"], int(commit["first"]), int(commit["last"])
        )
    return Notification(KINDS[collection], *codec.split(change["documentKey"]["_id"]))
