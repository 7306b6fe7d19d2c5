"""A small forest, and ways to damage its documents."""

from collections.abc import Awaitable, Callable
from typing import Any

from storage.database import Transaction
from storage.events import UserMessage
from storage.lifecycle import Fork, NewSession
from storage.session import SessionMeta, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from storage.topology import NodeDocument
from tests.contract.shorthand import conversation
from tests.storage.spaces import SPACE, assert_whole, problems

Damage = Callable[[Transaction], Awaitable[Any]]


async def plant(store: Store) -> None:
    """`a` with children `b` and `c`, `d` under `b`, and `f`, a fork of `a` in the middle of its log, under `c`."""
    for id, parent in (("a", None), ("b", "a"), ("c", "a"), ("d", "b")):
        await store.tree.create(SPACE, NewSession(id=id, parent_id=parent))
    await store.sessions.append(SPACE, "a", conversation(2))
    await store.sessions.append(SPACE, "a", conversation(4)[16:])
    await store.tree.fork(SPACE, Fork("a", at_seq=12, id="f", parent_id="c"))
    await store.sessions.append(SPACE, "f", [UserMessage(content="own")])
    await store.tree.add_ref(SPACE, "d", "c")
    await store.sessions.put_slot(SPACE, SlotWrite("a", SlotName.MEMORY, "outside", at_seq=3))
    await assert_whole(store)


async def session(tx: Transaction, id: str) -> SessionMeta:
    found = await tx.session(SPACE, id)
    assert found is not None
    return found


async def node(tx: Transaction, id: str) -> NodeDocument:
    found = await tx.node(SPACE, id)
    assert found is not None
    return found


async def without(tx: Transaction, id: str, *kept: str) -> None:
    """Deletes a session except those of its documents named in `kept`."""
    meta, document = await session(tx, id), await node(tx, id)
    slots = (await tx.slots(SPACE, [id]))[id]
    await tx.delete(SPACE, [id])
    if "session" in kept:
        await tx.insert_session(meta)
    if "node" in kept:
        await tx.insert_node(document)
    if "slots" in kept:
        await tx.insert_slots(slots)


def change_node(id: str, **changes: Any) -> Damage:
    async def work(tx: Transaction) -> None:
        await tx.change_node(await node(tx, id), changes)

    return work


def change_session(id: str, **changes: Any) -> Damage:
    async def work(tx: Transaction) -> None:
        await tx.change_session(await session(tx, id), changes)

    return work


def lose(id: str, *kept: str) -> Damage:
    return lambda tx: without(tx, id, *kept)


async def found(store: Store, *, repair: bool = False) -> list[tuple[str, str]]:
    return [(problem.id, problem.what) for problem in await problems(store, repair=repair)]


async def assert_left(store: Store, id: str, what: str) -> None:
    """Asserts that exactly this is found, and that a repair does not change it."""
    for repair in (False, True):
        [problem] = await problems(store, repair=repair)
        assert problem.id == id
        assert what in problem.what
        assert not problem.repaired
        assert problem.by_hand
