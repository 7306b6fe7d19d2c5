"""Idempotency keys of appends: a repeat gets the first answer, whatever has happened since."""

import asyncio

import pytest

from storage import errors
from storage.events import (
    AssistantMessage,
    SurfaceOp,
    TurnEnd,
    TurnStart,
)
from storage.session import SessionStatus
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import (
    SPACE,
    append,
    conversation,
    create,
    fork,
    put_insight,
    session,
    texts,
    user,
)
from tests.effort import thorough

END = TurnEnd(turn_id="t")


async def test_a_repeated_key_gets_the_first_answer_and_writes_nothing(store: Store) -> None:
    await create(store, "a")
    first = await append(store, "a", *conversation(1), key="key", expected_head=0)
    await append(store, "a", user("other"))
    before = await session(store, "a")
    for _ in range(2):
        again = await append(store, "a", *conversation(1), key="key", expected_head=0)
        assert again.duplicate
        assert (again.first_seq, again.head, again.events) == (first.first_seq, first.head, first.events)
        assert again.session == before
    assert await session(store, "a") == before


async def test_a_key_is_still_known_after_many_appends_and_archiving(store: Store) -> None:
    await create(store, "a")
    first = await append(store, "a", user("first"), key="key")
    await append(store, "a", TurnStart(turn_id="t"), key="turn")
    others = 1_000 if thorough(store) else 100
    for n in range(0, others, 50):
        await asyncio.gather(*(append(store, "a", user(str(n + m)), key=f"key-{n + m}") for m in range(50)))
    await append(store, "a", END)
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    again = await append(store, "a", user("first"), key="key")
    assert (again.duplicate, again.events, again.session.head) == (True, first.events, others + 3)
    assert (await append(store, "a", TurnStart(turn_id="t"), key="turn")).first_seq == 1
    with pytest.raises(errors.IdempotencyMismatch):
        await append(store, "a", user("other"), key="key")
    with pytest.raises(errors.Archived):
        await append(store, "a", user("other"), key="new key")
    assert (await session(store, "a")).head == others + 3


async def test_a_key_with_other_input_is_refused(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"), key="key")
    for other in (user("y"), AssistantMessage(content="x"), user("x", timestamp=1), user("x", source_event_seqs=[])):
        with pytest.raises(errors.IdempotencyMismatch, match="key"):
            await append(store, "a", other, key="key")
    with pytest.raises(errors.IdempotencyMismatch):
        await append(store, "a", user("x"), user("x"), key="key")
    assert (await session(store, "a")).head == 1


async def test_an_explicit_default_is_the_same_input(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"), key="key")
    assert (await append(store, "a", user("x", surface_op=SurfaceOp(), blocks=None), key="key")).duplicate


async def test_ten_concurrent_appends_with_one_key_write_once(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    results = await asyncio.gather(*(append(stores[n % 2], "a", *texts(3), key="key") for n in range(10)))
    assert [result.duplicate for result in results].count(False) == 1
    assert {result.first_seq for result in results} == {0}
    assert (await session(stores[0], "a")).head == 3


async def test_a_key_belongs_to_one_session(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"), key="key")
    await create(store, "b")
    await fork(store, "a", id="c")
    for id in ("b", "c"):
        assert not (await append(store, id, user("other"), key="key")).duplicate


@pytest.mark.parametrize("key", ["", "k" * 257])
async def test_a_key_has_1_to_256_characters(store: Store, key: str) -> None:
    await create(store, "a")
    with pytest.raises(errors.BadInput, match="idempotencyKey"):
        await append(store, "a", user("x"), key=key)


@pytest.mark.parametrize("key", ["k" * 256, "a\x00b", "🔑" * 256, "\ud800", "a/b.$c"])
async def test_any_text_can_be_a_key(store: Store, key: str) -> None:
    await create(store, "a")
    first = await append(store, "a", user("x"), key=key)
    assert not (await append(store, "a", user("y"), key="a")).duplicate
    again = await append(store, "a", user("x"), key=key)
    assert (again.duplicate, again.events) == (True, first.events)
    await put_insight(store, "a", "insight")
    taken = await store.sessions.consume_insight(SPACE, "a", None, None, f"{key[:-1]}z")
    assert (await store.sessions.consume_insight(SPACE, "a", None, None, f"{key[:-1]}z")).commit == taken.commit
