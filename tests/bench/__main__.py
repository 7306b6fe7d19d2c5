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
from tests.bench.backends import Backend
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
def backends() -> Iterator[list[Backend]]:
    """Both stores, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        server = MongoServer(Path(folder) / "mongodb")
        server.start()
        try:
            yield [
                Backend("sqlite", Path(folder) / "sqlite"),
                Backend("mongodb", Path(folder) / "unused", f"{server.url}bench"),
            ]
        finally:
            server.stop()


async def main() -> None:
    """Runs every measure on every store."""
    with backends() as measured:
        for backend in measured:
            for measure in MEASURES:
                await measure(backend)


if __name__ == "__main__":
    asyncio.run(main())
