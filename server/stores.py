"""Opens the store that the settings name. The only module that knows both stores."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

from server.settings import Settings
from storage import errors
from storage.database import Database
from storage.store import Store

SQLITE = "sqlite:///"
MONGODB = ("mongodb://", "mongodb+srv://")


def sqlite_file(settings: Settings) -> Path | None:
    """The file of an SQLite store; None for MongoDB. Raises StartupError for a URL that is neither's.

    After `sqlite:///` comes a path, relative to the working folder unless it begins with another slash.
    """
    from storage.sqlite.database import FILE

    url = settings.database_url
    if url is None:
        return settings.data_dir / FILE
    if url.startswith(MONGODB):
        return None
    if not url.startswith(SQLITE):
        scheme = url.partition(":")[0]
        raise errors.StartupError(
            f"SAPWOOD_DATABASE_URL starts with {scheme!r}: use mongodb://… or sqlite:///path/file.db, or leave it "
            "unset for SQLite in the data folder"
        )
    path = unquote(url.removeprefix(SQLITE))
    if not path or path.endswith("/") or path == ":memory:" or "?" in path:
        raise errors.StartupError(
            f"SAPWOOD_DATABASE_URL is {url!r}: after sqlite:/// comes the path of a file, without options; an absolute "
            "path begins with a fourth slash"
        )
    return Path(path)


def exists(settings: Settings) -> bool:
    """Whether there is a store already. MongoDB counts as one without a look at it."""
    path = sqlite_file(settings)
    return path is None or path.exists()


def check_existing(settings: Settings) -> None:
    """Raises StartupError if there is no store."""
    path = sqlite_file(settings)
    if path is not None and not path.exists():
        hint = "the data folder with --data-dir" if settings.database_url is None else "another file in --database-url"
        raise errors.StartupError(f"there is no {path.name} in {path.parent}: name {hint}")


async def open_store(settings: Settings) -> Store:
    """Opens the store. Raises StartupError, which says what to do."""
    return Store(await open_database(settings))


async def open_database(settings: Settings) -> Database:
    """Opens the store's database. Raises StartupError, which says what to do."""
    path = sqlite_file(settings)
    if path is not None:
        from storage.sqlite.database import open_file

        return await open_file(path.parent, path.name)
    from storage.mongo.client import open_url

    assert settings.database_url is not None
    return await open_url(settings.database_url)


@contextlib.asynccontextmanager
async def scratch_store() -> AsyncIterator[Store]:
    """An empty store in a temporary folder, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="sapwood-") as folder:
        store = await open_store(Settings.model_construct(data_dir=Path(folder)))
        try:
            yield store
        finally:
            await store.close()
