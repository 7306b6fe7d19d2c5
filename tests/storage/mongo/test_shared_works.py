"""Works that share a transaction run in transactions of their own when they can't share one."""

from collections.abc import AsyncIterator

import pytest

from storage import errors
from storage.database import Transaction, Work
from storage.lifecycle import NewSession
from storage.mongo import database
from storage.mongo.client import open_url
from storage.session import SessionMeta, SlotName
from storage.slots import SlotWrite, WrittenSlot, put
from storage.store import Store

SPACE = "space"


@pytest.fixture
async def store(mongodb_database: str) -> AsyncIterator[Store]:
    store = Store(await open_url(mongodb_database))
    await store.tree.create_many(SPACE, [NewSession(id=id) for id in ("a", "b", "c")])
    yield store
    await store.close()


async def test_works_run_alone_after_conflicts_with_another_writer(store: Store) -> None:
    """Another writer changes a session of the middle work while any transaction is under way that shares it."""
    attempts: list[str] = []

    def writing(id: str) -> Work:
        async def run(tx: Transaction) -> WrittenSlot:
            attempts.append(id)
            if id == "b" and attempts.count("b") <= database.SHARED_ATTEMPTS:
                await tx.session(SPACE, id)  # takes the snapshot that the other write then conflicts with
                await store.sessions.put_slot(SPACE, SlotWrite(id, SlotName.MEMORY, "of another writer"))
            return await put(tx, SPACE, SlotWrite(id, SlotName.INSIGHT, f"of {id}"))

        return Work(run)

    results = await store.database.transact_each([writing(id) for id in ("a", "b", "c")])
    assert [result.slot.content for result in results if isinstance(result, WrittenSlot) and result.slot] == [
        "of a",
        "of b",
        "of c",
    ]
    assert attempts == ["a", "b", "c"] * (database.SHARED_ATTEMPTS + 1)
    found = await store.sessions.slots(SPACE, ["a", "b", "c"])
    assert [slots.insight and slots.insight.version for slots in found.values()] == [1, 1, 1]
    assert found["b"].memory is not None
    assert found["b"].memory.version == database.SHARED_ATTEMPTS


async def test_a_document_that_the_driver_refuses_costs_its_own_work_alone(store: Store) -> None:
    def renaming(id: str, head: int) -> Work:
        async def run(tx: Transaction) -> SessionMeta:
            meta = await tx.session(SPACE, id)
            assert meta is not None
            return await tx.change_session(meta, {"memory_at_seq": head})

        return Work(run)

    first, refused, last = await store.database.transact_each(
        [renaming("a", 1), renaming("b", 2**64), renaming("c", 2)]
    )
    assert isinstance(first, SessionMeta)
    assert isinstance(last, SessionMeta)
    assert (first.memory_at_seq, last.memory_at_seq) == (1, 2)
    assert isinstance(refused, errors.BadInput)
    for id, expected in (("a", 1), ("b", 0), ("c", 2)):
        meta = await store.sessions.get(SPACE, id)
        assert meta is not None
        assert meta.memory_at_seq == expected
