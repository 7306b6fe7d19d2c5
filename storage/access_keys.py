"""API keys: shown once when created, stored as a hash, revoked but never deleted."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from storage import access_key, errors, text
from storage.access_key import AccessKey, AccessRole
from storage.database import Database, Transaction
from storage.events import Instant
from storage.log.append import now

MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key and its text, `sapwood_<id>_<secret>`, which can't be shown again."""

    key: AccessKey
    text: str


async def create(
    database: Database, space: str, role: AccessRole, name: str | None = None, expires_at: Instant | None = None
) -> CreatedKey:
    """Creates a key for one space. Raises BadInput for a name over 100 characters or an expiry in the past."""
    text.space_name(space)
    if name is not None and not 1 <= len(name) <= MAX_NAME:
        raise errors.BadInput(f"name: must have 1 to {MAX_NAME} characters, has {len(name)}")
    created_at = now()
    if expires_at is not None and expires_at <= created_at:
        raise errors.BadInput(f"expiresAt: {text.format_instant(expires_at)} is not in the future")
    id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    key = AccessKey(
        id=id,
        space=space,
        name=name,
        role=role,
        hash=access_key.hash_of(secret),
        created_at=created_at,
        expires_at=expires_at,
    )
    await database.transact(lambda tx: tx.insert_access_key(key))
    return CreatedKey(key, access_key.joined(id, secret))


async def find(database: Database, ids: Collection[str]) -> dict[str, AccessKey]:
    """The keys with these ids, including revoked and expired ones."""
    return await database.read(lambda queries: queries.access_keys(ids))


async def list_all(database: Database, space: str | None = None) -> list[AccessKey]:
    """All keys of the space, or of all spaces, in order of creation."""
    found = await database.read(lambda queries: queries.access_keys_in(space))
    return sorted(found, key=lambda key: (key.created_at, key.id))


async def exist(database: Database) -> bool:
    """Whether any key was ever created."""
    return await database.read(lambda queries: queries.access_keys_exist())


async def revoke(database: Database, id: str) -> AccessKey:
    """Revokes a key for good. A repeat changes nothing. Raises NotFound."""

    async def work(tx: Transaction) -> AccessKey:
        key = (await tx.access_keys([id])).get(id)
        if key is None:
            raise errors.NotFound(f"id: no key {id[:80]!r}; `sapwood keys list` shows all")
        return key if key.revoked_at is not None else await tx.change_access_key(key, {"revoked_at": now()})

    return await database.transact(work)


async def note_uses(database: Database, uses: Mapping[str, Instant]) -> None:
    """Records when keys, by id, were last used."""

    async def work(tx: Transaction) -> None:
        for id, key in (await tx.access_keys(list(uses))).items():
            if key.last_used_at is None or key.last_used_at < uses[id]:
                await tx.change_access_key(key, {"last_used_at": uses[id]})

    await database.transact(work)
