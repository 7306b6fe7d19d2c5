"""Independent works that share transactions: each has its own outcome, and many cost few commits."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from storage import errors, lifecycle
from storage.database import Notification, Transaction, Work
from storage.lifecycle import NewSession
from storage.log.append import Appended
from storage.log.commit import Commit
from storage.session import SessionMeta, SlotName
from storage.session_storage import Append
from storage.session_tree import MAX_CREATED
from storage.slots import SlotWrite, WrittenSlot
from storage.store import Store
from tests.contract.shorthand import (
    SPACE,
    append,
    contents,
    create,
    forest,
    ids,
    session,
    slots,
    texts,
    user,
    whole_log,
)

MANY = 200


class Commits:
    """Counts the transactions of a store that wrote anything."""

    def __init__(self, store: Store) -> None:
        self.count = 0
        store.database.watch(self._committed)

    def _committed(self, notifications: Sequence[Notification], commits: Sequence[Commit]) -> None:
        self.count += 1


def creation(id: str, *, then: Callable[[Transaction], Awaitable[Any]] | None = None) -> Work:
    """Work that creates a session, then runs more in the same transaction."""

    async def run(tx: Transaction) -> SessionMeta:
        made = await lifecycle.create(tx, SPACE, NewSession(id=id))
        if then is not None:
            await then(tx)
        return made

    return Work(run)


async def refuse(tx: Transaction) -> None:
    raise errors.BadInput("refused after a write")


async def test_a_work_that_wrote_before_it_raised_writes_nothing(store: Store) -> None:
    works = [creation("a"), creation("b", then=refuse), creation("c"), creation("d", then=refuse), creation("e")]
    results = await store.database.transact_each(works)
    assert [result.id if isinstance(result, SessionMeta) else str(result) for result in results] == [
        "a",
        "refused after a write",
        "c",
        "refused after a write",
        "e",
    ]
    assert await ids(store) == {"a", "c", "e"}


async def test_an_error_that_is_not_ours_is_raised(store: Store) -> None:
    async def fail(tx: Transaction) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.database.transact_each([creation("a"), creation("b", then=fail)])
    assert "b" not in await ids(store)


async def test_no_work_gives_no_results(store: Store) -> None:
    assert await store.database.transact_each([]) == []


async def test_sessions_are_created_in_order_each_with_its_own_outcome(store: Store) -> None:
    await create(store, "taken")
    wanted = [
        NewSession(id="root"),
        NewSession(id="child", parent_id="root"),
        NewSession(id="taken"),
        NewSession(id="orphan", parent_id="unknown"),
        NewSession(id="no id"),
        NewSession(id="second", parent_id="root"),
        NewSession(id="grandchild", parent_id="child"),
        NewSession(id="child"),
    ]
    results = await store.tree.create_many(SPACE, wanted)
    outcomes = [result.id if isinstance(result, SessionMeta) else result.code for result in results]
    assert outcomes == [
        "root",
        "child",
        "DUPLICATE_ID",
        "NOT_FOUND",
        "BAD_INPUT",
        "second",
        "grandchild",
        "DUPLICATE_ID",
    ]
    nodes = (await forest(store, root_id="root")).nodes
    assert [(node.id, node.document.index) for node in nodes] == [
        ("root", 1),
        ("child", 0),
        ("grandchild", 0),
        ("second", 1),
    ]
    assert [result for result in results if isinstance(result, SessionMeta)] == [
        await session(store, id) for id in ("root", "child", "second", "grandchild")
    ]


async def test_creations_share_commits(store: Store) -> None:
    commits = Commits(store)
    results = await store.tree.create_many(SPACE, [NewSession(id=f"s{index}") for index in range(MANY)])
    assert [result.id for result in results if isinstance(result, SessionMeta)] == [f"s{i}" for i in range(MANY)]
    assert commits.count == 2


async def test_at_most_1000_sessions_are_created_at_once(store: Store) -> None:
    with pytest.raises(errors.PayloadTooLarge, match="1000"):
        await store.tree.create_many(SPACE, [NewSession()] * (MAX_CREATED + 1))
    assert await ids(store) == set()


async def test_a_repeated_creation_returns_the_first_session(store: Store) -> None:
    wanted = [NewSession(id=f"s{index}", key=f"key {index}") for index in range(5)]
    assert await store.tree.create_many(SPACE, wanted) == await store.tree.create_many(SPACE, wanted)
    assert len(await ids(store)) == 5


async def test_slot_writes_share_commits_and_see_those_before_them(store: Store) -> None:
    await store.tree.create_many(SPACE, [NewSession(id=f"s{index}") for index in range(50)])
    commits = Commits(store)
    writes = [SlotWrite(f"s{index % 50}", SlotName.MEMORY, f"{index}", if_version=index // 50) for index in range(100)]
    results = await store.sessions.put_slots(SPACE, writes, atomic=False)
    versions = [result.slot.version for result in results if isinstance(result, WrittenSlot) and result.slot]
    assert versions == [1] * 50 + [2] * 50
    assert commits.count == 1
    memory = (await slots(store, "s7")).memory
    assert memory is not None
    assert memory.content == "57"


async def test_appends_of_a_batch_share_commits(store: Store) -> None:
    await store.tree.create_many(SPACE, [NewSession(id=f"s{index}") for index in range(50)])
    commits = Commits(store)
    wanted = [Append(f"s{index % 50}", [user(f"{index}")], expected_head=index // 50) for index in range(100)]
    results = await store.sessions.append_batch(SPACE, wanted)
    assert [result.first_seq for result in results if isinstance(result, Appended)] == [0] * 50 + [1] * 50
    assert commits.count == 1
    assert contents(await whole_log(store, "s7")) == ["7", "57"]


async def test_a_refused_append_of_a_batch_costs_the_others_nothing(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(1))
    wanted = [
        Append("a", [user("first")], expected_head=1),
        Append("a", [user("stale")], expected_head=1),
        Append("unknown", [user("nowhere")]),
        Append("a", [], key="k"),
        Append("a", [user("last")], key="k"),
        Append("a", [user("last")], key="k"),
    ]
    results = await store.sessions.append_batch(SPACE, wanted)
    outcomes = [result.duplicate if isinstance(result, Appended) else result.code for result in results]
    assert outcomes == [False, "CONFLICT", "NOT_FOUND", "BAD_INPUT", False, True]
    assert contents(await whole_log(store, "a")) == ["message 0", "first", "last"]
