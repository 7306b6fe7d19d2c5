"""Rows of runs that are missing, wrong or orphaned are reported, and rebuilt from the logs."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from storage.database import Transaction
from storage.events import RunFeedback, RunStatus, TurnEnd, TurnStart
from storage.lifecycle import Fork, NewSession
from storage.run_filter import RunFilter
from storage.store import Store
from storage.views.run_rows import RunRow
from tests.contract.shorthand import append_in_parts, conversation
from tests.storage.check.damage import assert_left, change_session, found, lose, plant
from tests.storage.spaces import SPACE, assert_whole, problems

Damage = Callable[[Transaction], Awaitable[None]]


async def rows_of(store: Store, id: str) -> dict[str, RunRow]:
    return await store.database.read(lambda queries: queries.run_rows(SPACE, id, None))


async def run_row(tx: Transaction, id: str, turn: str) -> RunRow:
    return (await tx.run_rows(SPACE, id, [turn]))[turn]


async def grow(store: Store) -> None:
    """A forest with an own turn, a torn one and late feedback in the fork `f`."""
    await plant(store)
    await store.sessions.append(SPACE, "f", [TurnEnd(turn_id="turn-1"), TurnStart(turn_id="own")])
    await store.sessions.append(SPACE, "f", [RunFeedback(turn_id="turn-0", feedback="good")])
    assert set(await rows_of(store, "f")) == {"turn-0", "turn-1", "own"}


async def drop(tx: Transaction) -> None:
    await tx.drop_run_rows(SPACE, "f", ["turn-1", "own"])


async def drop_all(tx: Transaction) -> None:
    await tx.drop_run_rows(SPACE, "a", None)


async def change(tx: Transaction) -> None:
    row = await run_row(tx, "f", "turn-1")
    await tx.put_run_rows([row.model_copy(update={"status": RunStatus.PENDING, "tool_names": ("made up",)})])


async def copy(tx: Transaction) -> None:
    row = await run_row(tx, "a", "turn-3")
    await tx.put_run_rows([row.model_copy(update={"session_id": "f"})])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (drop, ("f", "lacks rows of runs: 'own', 'turn-1'")),
        (drop_all, ("a", "lacks rows of runs: 'turn-0', 'turn-1', 'turn-2' and 1 more")),
        (change, ("f", "has rows of runs with other values than its log: 'turn-1'")),
        (copy, ("f", "has rows of runs of which its log has no event: 'turn-3'")),
    ],
)
async def test_damaged_rows_are_found_and_repaired(store: Store, damage: Damage, expected: tuple[str, str]) -> None:
    await grow(store)
    before = [await rows_of(store, id) for id in ("a", "f")]
    await store.database.transact(damage)
    assert await found(store) == await found(store) == [expected]
    [repaired] = await problems(store, repair=True)
    assert repaired.repaired
    await assert_whole(store)
    assert [await rows_of(store, id) for id in ("a", "f")] == before
    page = await store.runs.page(SPACE, RunFilter(tool_name="made up"), 10, None)
    assert page is not None
    assert page.rows == []


async def test_rows_of_deleted_sessions_are_dropped(store: Store) -> None:
    await grow(store)
    kept = list((await rows_of(store, "f")).values())
    await store.database.transact(lose("f"))
    await problems(store, repair=True)

    async def leave(tx: Transaction) -> None:
        await tx.put_run_rows([*kept, *(row.model_copy(update={"space": "gone"}) for row in kept)])

    await store.database.transact(leave)
    what = "has rows of runs, and no session: 'own', 'turn-0', 'turn-1'"
    assert [(problem.space, problem.id, problem.what) for problem in await problems(store)] == [
        ("gone", "f", what),
        (SPACE, "f", what),
    ]
    assert all(problem.repaired for problem in await problems(store, repair=True))
    await assert_whole(store)
    assert await store.database.read(lambda queries: queries.all_spaces()) == [SPACE]


async def test_rows_are_left_alone_when_their_log_has_lost_events(store: Store) -> None:
    await grow(store)
    meta = await store.sessions.get(SPACE, "f")
    assert meta is not None
    before = await rows_of(store, "f")
    await store.database.collect(meta.log, 15)
    await assert_left(store, "f", "events are lost")
    assert await rows_of(store, "f") == before


async def test_rows_are_checked_against_the_log_not_the_head_in_the_document(store: Store) -> None:
    await grow(store)
    await store.database.transact(change_session("a", head=16))
    assert [id for id, _ in await found(store)] == ["a"]
    await problems(store, repair=True)
    await assert_whole(store)


async def test_all_rows_of_any_forest_are_rebuilt(store: Store) -> None:
    chance = random.Random(11)
    await store.tree.create(SPACE, NewSession(id="0"))
    await append_in_parts(store, "0", conversation(5), chance)
    for number in range(1, 9):
        source = await store.sessions.get(SPACE, str(chance.randrange(number)))
        assert source is not None
        fork = Fork(source.id, at_seq=chance.randint(1, source.head), id=str(number), as_root=True, prompt="go on")
        made = await store.tree.fork(SPACE, fork)
        turns = [RunFeedback(turn_id=turn.turn, feedback=str(number)) for turn in made.open if turn.turn]
        own = TurnStart(turn_id=made.id), *conversation(1)[1:-1], TurnEnd(turn_id=made.id)
        late = [event.model_copy(update={"turn_id": made.id}) for event in own]
        await append_in_parts(store, made.id, [*turns, *late], chance)
    ids = [str(number) for number in range(9)]
    before = [await rows_of(store, id) for id in ids]

    async def drop_each(tx: Transaction) -> None:
        for id in ids:
            await tx.drop_run_rows(SPACE, id, None)

    await assert_whole(store)
    await store.database.transact(drop_each)
    assert len(await problems(store, repair=True)) == len(ids)
    assert [await rows_of(store, id) for id in ids] == before
    await assert_whole(store)


async def test_a_check_beside_a_writer_finds_nothing(store: Store) -> None:
    await grow(store)
    check = asyncio.ensure_future(problems(store, repair=True))
    count = 0
    while not check.done():
        turn = f"beside-{count}"
        await store.sessions.append(SPACE, "f", [TurnStart(turn_id=turn), TurnEnd(turn_id=turn)])
        count += 1
    assert await check == []
    assert count > 0
    await assert_whole(store)
