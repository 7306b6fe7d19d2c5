"""Reading about the database as a whole."""

from typing_extensions import override

from storage.database.maintenance import MaintenanceQueries
from storage.events import Instant
from storage.mongo import codec
from storage.mongo.queries.base import MongoReader

LAG_MS = 90_000
"""Longer than a transaction can live, so that whatever it writes is not older than an `as_of` before its commit."""


class MongoMaintenanceQueries(MongoReader, MaintenanceQueries):
    """Reads the server's clock, and which spaces have documents."""

    @override
    async def all_spaces(self) -> list[str]:
        spaces = {"$group": {"_id": "$space"}}
        found = [row for name in ("sessions", "nodes", "runs") for row in await self._aggregate(name, [spaces])]
        return sorted({row["_id"] for row in found})

    @override
    async def as_of(self) -> Instant:
        hello = await self._database.command("hello", codec_options=codec.OPTIONS)
        return int(hello["localTime"]) - LAG_MS
