"""API keys: shown once, stored as a hash, revoked for good, and listed by space."""

import asyncio

import pytest

from storage import access_key, access_keys, errors
from storage.access_key import AccessKey, AccessRole
from storage.log.append import now
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.conftest import Stored
from tests.contract.shorthand import SPACE

HOUR = 60 * 60 * 1_000


async def found(store: Store, id: str) -> AccessKey:
    return (await access_keys.find(store.database, [id]))[id]


async def test_a_key_is_found_by_id_and_matches_only_its_secret(store: Store) -> None:
    made = await access_keys.create(store.database, SPACE, AccessRole.AGENT, "a runtime", now() + HOUR)
    parts = access_key.split(made.text)
    assert parts is not None
    id, secret = parts
    key = await found(store, id)
    assert key == made.key
    assert (key.space, key.role, key.name, key.last_used_at) == (SPACE, AccessRole.AGENT, "a runtime", None)
    assert key.opened_by(secret)
    for other in ("", secret[:-1], secret + "A", secret.swapcase(), key.hash):
        assert not key.opened_by(other)


async def test_the_secret_is_not_stored(store: Store, stored: Stored) -> None:
    made = await access_keys.create(store.database, SPACE, AccessRole.ADMIN)
    parts = access_key.split(made.text)
    assert parts is not None
    assert await stored.mentioned(parts[1], made.text, made.key.hash) == {made.key.hash}


async def test_every_key_is_unique(store: Store) -> None:
    made = await asyncio.gather(
        *(access_keys.create(store.database, SPACE, AccessRole.VIEWER, "same") for _ in range(20))
    )
    assert len({one.text for one in made}) == len({one.key.id for one in made}) == 20
    assert {key.id for key in await access_keys.list_all(store.database, SPACE)} == {one.key.id for one in made}


async def test_a_revoked_key_is_never_deleted_or_restored(open_store: OpenStore) -> None:
    first, second = await open_store(), await open_store()
    made = await access_keys.create(first.database, SPACE, AccessRole.ADMIN)
    assert made.key.holds_at(now())
    revoked = await access_keys.revoke(second.database, made.key.id)
    assert await found(first, made.key.id) == revoked
    assert not revoked.holds_at(now())
    assert await access_keys.revoke(first.database, made.key.id) == revoked
    assert await access_keys.exist(first.database)


@pytest.mark.parametrize("id", ["0" * 16, "", "ü", "a/b", "$where", "\0"])
async def test_revoking_an_unknown_key_is_not_found(store: Store, id: str) -> None:
    await access_keys.create(store.database, SPACE, AccessRole.ADMIN)
    with pytest.raises(errors.NotFound, match="id: no key"):
        await access_keys.revoke(store.database, id)
    assert await access_keys.find(store.database, [id]) == {}


async def test_a_key_expires_at_its_instant(store: Store) -> None:
    end = now() + HOUR
    key = (await access_keys.create(store.database, SPACE, AccessRole.ADMIN, None, end)).key
    assert key.holds_at(end - 1)
    assert not key.holds_at(end)
    assert (await found(store, key.id)).expires_at == end


async def test_last_use_never_moves_back_and_keeps_a_revocation(open_store: OpenStore) -> None:
    first, second = await open_store(), await open_store()
    one, other = [(await access_keys.create(first.database, SPACE, AccessRole.ADMIN)).key.id for _ in range(2)]
    await access_keys.note_uses(first.database, {one: 2_000, other: 1_000, "0" * 16: 5_000})
    await asyncio.gather(
        access_keys.revoke(first.database, one),
        access_keys.note_uses(second.database, {one: 1_000}),
        access_keys.note_uses(first.database, {other: 3_000}),
    )
    key = await found(second, one)
    assert (key.last_used_at, key.revoked_at is None) == (2_000, False)
    assert (await found(second, other)).last_used_at == 3_000
    assert set(await access_keys.find(first.database, [one, other, "0" * 16])) == {one, other}


async def test_keys_are_listed_by_space_in_order_of_creation(store: Store) -> None:
    assert not await access_keys.exist(store.database)
    assert await access_keys.list_all(store.database) == []
    made = [(await access_keys.create(store.database, space, AccessRole.VIEWER)).key for space in ("a", "b", "a")]
    assert await access_keys.list_all(store.database) == sorted(made, key=lambda key: (key.created_at, key.id))
    assert {key.id for key in await access_keys.list_all(store.database, "a")} == {made[0].id, made[2].id}
    assert await access_keys.list_all(store.database, "c") == []


async def test_bad_input_creates_no_key(store: Store) -> None:
    for space, name, expires_at, argument in (
        ("a/b", None, None, "space"),
        (SPACE, "", None, "name"),
        (SPACE, "n" * 101, None, "name"),
        (SPACE, None, now() - 1, "expiresAt"),
    ):
        with pytest.raises(errors.BadInput, match=argument):
            await access_keys.create(store.database, space, AccessRole.ADMIN, name, expires_at)
    assert not await access_keys.exist(store.database)


def test_each_role_includes_the_lower_ones() -> None:
    order = [AccessRole.VIEWER, AccessRole.AGENT, AccessRole.ORCHESTRATOR, AccessRole.ADMIN]
    assert order == list(AccessRole)
    for index, role in enumerate(order):
        assert [role.includes(other) for other in order] == [rank <= index for rank in range(4)]
