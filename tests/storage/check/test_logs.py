"""Damage to logs is reported, and nothing is made up for lost events."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from storage import errors
from storage.database import Transaction
from storage.events import CardEvent, StepStart, TurnStart, UserMessage
from storage.lifecycle import Fork, NewSession
from storage.log.commit import Commit
from storage.log.state import Totals
from storage.sqlite.database import FILE, open_file
from storage.store import Store
from tests.storage.check.damage import assert_left, change_session, found, plant, session
from tests.storage.spaces import SPACE, assert_whole, exported

CARD = CardEvent(card_type="Table", payload="id: x")


async def test_lost_events_are_reported(store: Store) -> None:
    await plant(store)
    meta = await store.sessions.get(SPACE, "f")
    assert meta is not None
    await store.database.collect(meta.log, 12)
    await assert_left(store, "f", "has the head 13, but its log ends at 12: events are lost")


async def test_lost_shared_events_are_reported_for_each_session_that_reads_them(store: Store) -> None:
    await plant(store)
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    await store.tree.fork(SPACE, Fork("a", id="g"))
    await store.database.collect(meta.log, 16)
    assert await found(store) == [
        ("a", "has the head 32, but its log ends at 16: events are lost"),
        ("g", f"lacks the events 16 to 31 of log {meta.log}"),
    ]
    await store.database.collect(meta.log, 0)
    assert await found(store) == await found(store, repair=True)
    assert {id for id, _ in await found(store)} == {"a", "f", "g"}


async def insert(store: Store, id: str, **changes: Any) -> None:
    """Inserts a copy of the last commit, changed, at the session's head."""

    async def work(tx: Transaction) -> None:
        meta = await session(tx, id)
        [last] = await tx.commits(meta.log, 0, 2**31, newest_first=True, max_events=1, max_bytes=1)
        commit = last.model_copy(
            update={"id": "made", "first": meta.head, "last": meta.head, "turns": (), "turn_seqs": (), "steps": ()}
        )
        await tx.insert_commit(commit.model_copy(update=changes))

    await store.database.transact(work)


async def test_a_commit_after_a_gap_is_reported(store: Store) -> None:
    await plant(store)
    await insert(store, "f", first=20, last=20)
    await assert_left(store, "f", "has a commit at 20 where 13 comes next")


async def test_a_commit_whose_range_does_not_match_its_events_is_reported(store: Store) -> None:
    await plant(store)
    await insert(store, "f", last=15)
    await assert_left(store, "f", "has a commit of 13 to 15 with 1 events")


async def test_an_unreadable_event_is_reported(store: Store) -> None:
    await plant(store)
    await insert(store, "f", events=[{"type": "user/shout"}])
    await assert_left(store, "f", "has an event that can't be read in the commit at 13")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"types": ("card",)}, "types of events"),
        ({"totals": Totals()}, "totals"),
        ({"open": ()}, "open turns and steps"),
        ({"turns": ("x/y",), "turn_seqs": (13,)}, "turns"),
        ({"steps": ("x/y",), "step_seqs": (2,)}, "steps"),
        ({"cards": (), "card_seqs": ()}, "cards"),
        ({"cards": ("x/y", "x/y"), "card_seqs": (2, 3)}, "cards"),
    ],
)
async def test_a_commit_that_contradicts_its_events_is_reported(
    store: Store, changes: dict[str, Any], what: str
) -> None:
    await store.tree.create(SPACE, NewSession(id="s"))
    await store.sessions.append(SPACE, "s", [TurnStart(turn_id="t"), StepStart(step_id="s")])
    appended = await store.sessions.append(SPACE, "s", [UserMessage(content="x"), CARD])
    await assert_whole(store)

    async def rewrite(tx: Transaction) -> None:
        await tx.insert_commit(Commit(**{**dict(appended.commit), "id": "made", **changes}))

    await store.database.collect(appended.commit.log, 2)
    await store.database.transact(rewrite)
    await assert_left(store, "s", f"has a commit at 2 with wrong {what}")


async def test_a_repair_includes_a_commit_beyond_the_head(store: Store) -> None:
    await plant(store)
    meta = await store.sessions.get(SPACE, "f")
    assert meta is not None
    await store.sessions.append(SPACE, "f", [UserMessage(content="last")])
    await store.database.transact(change_session("f", head=meta.head, totals=meta.totals))
    assert await found(store, repair=True) == [("f", "has other values than its log for head, totals")]
    await assert_whole(store)
    now = await store.sessions.get(SPACE, "f")
    assert now is not None
    assert now.head == meta.head + 1


async def test_sqlite_only_a_missing_mark_is_reported(tmp_path: Path) -> None:
    store = Store(await open_file(tmp_path))
    try:
        await plant(store)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            connection.execute("DELETE FROM starts WHERE mark LIKE '%/turn-1'")
            connection.commit()
        await assert_left(store, "a", "has a commit at 0 that can't be found by the turns and steps it starts")
    finally:
        await store.close()


async def test_sqlite_only_a_card_missing_from_the_index_is_reported(tmp_path: Path) -> None:
    store = Store(await open_file(tmp_path))
    try:
        await plant(store)
        await store.sessions.append(SPACE, "f", [CARD, UserMessage(content="x"), CARD])
        await store.tree.fork(SPACE, Fork("f", at_seq=15, id="g"))
        await assert_whole(store)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            assert connection.execute("DELETE FROM starts WHERE kind = 'card' AND seq = 15").rowcount == 1
            connection.commit()
        await assert_left(store, "f", "has a commit at 13 that can't be found by the cards it holds")
    finally:
        await store.close()


async def test_sqlite_only_a_deleted_commit_is_reported(tmp_path: Path) -> None:
    store = Store(await open_file(tmp_path))
    try:
        await plant(store)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            connection.execute("DELETE FROM commits WHERE first = 0")
            connection.commit()
        first, second = await found(store, repair=True)
        assert first[0] == "a"
        assert first[1].startswith("has a commit at 16 where 0 comes next")
        assert second[0] == "f"
        assert second[1].startswith("shares events of the damaged log")
        with pytest.raises(errors.SapwoodError, match="lacks the event 0: the store is damaged"):
            await exported(store, "a")
    finally:
        await store.close()
