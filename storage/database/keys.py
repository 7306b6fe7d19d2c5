"""API keys: who may do what in which space. Ids are unique over all spaces."""

from collections.abc import Collection
from typing import Any, Protocol

from storage.access_key import AccessKey


class KeyQueries(Protocol):
    """Reading API keys, revoked and expired ones included."""

    async def access_keys(self, ids: Collection[str]) -> dict[str, AccessKey]:
        """Keys by id. Unknown ids, and texts that can't be ids, are left out."""
        ...

    async def access_keys_in(self, space: str | None) -> list[AccessKey]:
        """All keys, or those of one space; in no order."""
        ...

    async def access_keys_exist(self) -> bool:
        """Whether there is any key."""
        ...


class KeyWrites(Protocol):
    """Writing API keys. Keys are never deleted, and there is no Notification of them."""

    async def insert_access_key(self, key: AccessKey) -> None:
        """Writes a new key. Its id is random, so that it is not taken."""
        ...

    async def change_access_key(self, key: AccessKey, changes: dict[str, Any]) -> AccessKey:
        """Sets fields, by attribute name. Returns the new document.

        `key` is the key as this transaction has read it.
        """
        ...
