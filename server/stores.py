"""Opens the store that the settings name. The only module that knows both stores."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from server.settings import Settings
from storage import errors
from storage.database import Database
from storage.store import Store


def exists(settings: Settings) -> bool:
    """Whether there is a store already. MongoDB counts as one without a look at it."""
    from storage.sqlite.database import FILE

    return settings.database_url is not None or (settings.data_dir / FILE).exists()


def check_existing(settings: Settings) -> None:
    """Raises StartupError if the data folder has no store."""
    from storage.sqlite.database import FILE

    if not exists(settings):
        raise errors.StartupError(f"there is no {FILE} in {settings.data_dir}: name the data folder with --data-dir")


async def open_store(settings: Settings) -> Store:
    """Opens the store. Raises StartupError, which says what to do."""
    return Store(await open_database(settings))


async def open_database(settings: Settings) -> Database:
    """Opens the store's database. Raises StartupError, which says what to do."""
    url = settings.database_url
    if url is None:
        from storage.sqlite.database import open_file

        return await open_file(settings.data_dir)
    if url.startswith(("mongodb://", "mongodb+srv://")):
        from storage.mongo.client import open_url

        return await open_url(url)
    scheme = url.partition(":")[0]
    raise errors.StartupError(
        f"SAPWOOD_DATABASE_URL starts with {scheme!r}: use a mongodb:// URL, or leave it unset for SQLite"
    )


@contextlib.asynccontextmanager
async def scratch_store() -> AsyncIterator[Store]:
    """An empty store in a temporary folder, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="sapwood-") as folder:
        store = await open_store(Settings.model_construct(data_dir=Path(folder)))
        try:
            yield store
        finally:
            await store.close()
