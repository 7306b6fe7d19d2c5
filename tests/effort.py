"""How much work the tests do: less every day, and all of it with HYPOTHESIS_PROFILE=long, as in CI."""

import os

from storage.sqlite.database import SqliteDatabase
from storage.store import Store

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "everyday")
"""The Hypothesis profile: `everyday` or `long`."""
LONG = PROFILE == "long"


def thorough(store: Store) -> bool:
    """Whether to work with large inputs. SecantusDB takes minutes for some that take SQLite seconds."""
    return LONG or isinstance(store.database, SqliteDatabase)
