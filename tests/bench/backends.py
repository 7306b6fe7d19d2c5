"""The two stores: opened here, behind a server process, or read with the bare driver."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from server.settings import Settings
from server.stores import open_store
from storage.store import Store


@contextlib.asynccontextmanager
async def serving(command: Sequence[str]) -> AsyncIterator[int]:
    """Runs a server process that prints its address on the first line; yields its port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SAPWOOD_")}
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        yield int(line.rsplit(":", 1)[1].split("/")[0])
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


class Backend:
    """A store to measure. `kind` is sqlite or mongodb."""

    def __init__(self, kind: str, folder: Path, url: str | None = None) -> None:
        self.kind = kind
        self.folder = folder
        self.url = url

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        """Opens the store in this process."""
        store = await open_store(Settings(data_dir=self.folder, database_url=self.url))
        try:
            yield store
        finally:
            await store.close()

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        """Runs a Sapwood server on the store; yields its port."""
        where = ["--data-dir", str(self.folder)] if self.url is None else ["--database-url", self.url]
        async with serving([str(Path(sys.executable).parent / "sapwood"), "serve", "--port", "0", *where]) as port:
            yield port

    @contextlib.asynccontextmanager
    async def bare_database(self) -> AsyncIterator[Any]:
        """The bare driver's MongoDB database, with the store's read and write concerns."""
        from motor.motor_asyncio import AsyncIOMotorClient

        client: Any = AsyncIOMotorClient(self.url, w="majority", journal=True, readConcernLevel="majority")
        try:
            yield client.get_default_database()
        finally:
            client.close()
