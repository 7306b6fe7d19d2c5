"""Measures both stores and prints the ratios."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import (
    append_rates,
    conversations,
    digests,
    imports,
    logs,
    query_counts,
    run_pages,
    small_queries,
    surfaces,
)
from tests.bench.places import Place
from tests.conftest import MongoServer

MEASURES = (
    append_rates.measure,
    logs.measure,
    digests.measure,
    query_counts.measure,
    small_queries.measure,
    surfaces.measure,
    conversations.measure,
    run_pages.measure,
    imports.measure,
)


@contextlib.contextmanager
def places() -> Iterator[list[Place]]:
    """Both stores, in folders that go afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        server = MongoServer(Path(folder) / "mongodb")
        server.start()
        try:
            yield [
                Place("sqlite", Path(folder) / "sqlite"),
                Place("mongodb", Path(folder) / "unused", f"{server.url}bench"),
            ]
        finally:
            server.stop()


async def main() -> None:
    """Every measure on every store."""
    with places() as found:
        for place in found:
            for measure in MEASURES:
                await measure(place)


if __name__ == "__main__":
    asyncio.run(main())
