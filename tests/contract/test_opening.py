"""Opening and closing: everything acknowledged is there when the store is opened again."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pymongo
import pytest

from storage import errors
from storage.log.append import Appended
from storage.sqlite.database import FILE
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import (
    IN_TIME,
    append,
    conversation,
    create,
    digests,
    forest,
    fork,
    put,
    session,
    texts,
    user,
    whole_log,
)
from tests.contract.test_slots import MEMORY


async def test_everything_survives_closing_and_opening(open_store: OpenStore) -> None:
    first: Store = await open_store()
    await create(first, "a", label="name", metadata="[1]")
    await append(first, "a", *conversation(2), key="key")
    await fork(first, "a", id="b", at_seq=5, prompt="go")
    await put(first, "b", MEMORY, "memory")
    before = (await forest(first), await digests(first), await whole_log(first, "a"), await whole_log(first, "b"))
    await first.close()
    second: Store = await open_store()
    assert (
        await forest(second),
        await digests(second),
        await whole_log(second, "a"),
        await whole_log(second, "b"),
    ) == before
    assert (await append(second, "a", *conversation(2), key="key")).duplicate
    assert (await append(second, "a", user("more"), expected_head=16)).first_seq == 16


async def test_operations_running_when_the_store_closes_get_an_answer(open_store: OpenStore) -> None:
    first: Store = await open_store()
    for id in ("a", "b"):
        await create(first, id)
    writing = [asyncio.create_task(append(first, "ab"[n % 2], *texts(2))) for n in range(20)]
    await asyncio.sleep(0)  # lets all of them start
    async with asyncio.timeout(IN_TIME):
        await first.close()
        results = await asyncio.gather(*writing, return_exceptions=True)
    assert all(isinstance(result, Appended | errors.Unavailable) for result in results)
    second: Store = await open_store()
    answered = [result for result in results if isinstance(result, Appended)]
    for id in ("a", "b"):
        log = await whole_log(second, id)
        assert (await session(second, id)).head == len(log) >= 2 * sum(result.session.id == id for result in answered)
        for result in answered:
            if result.session.id == id:
                assert log[result.first_seq : result.head] == result.events
    assert (await append(second, "a", user("more"))).first_seq == len(await whole_log(second, "a")) - 1


async def test_two_stores_on_the_same_data_can_be_opened_at_once(open_store: OpenStore) -> None:
    stores = await asyncio.gather(*(open_store() for _ in range(4)))
    await asyncio.gather(*(create(store, f"s{n}") for n, store in enumerate(stores)))
    for store in stores:
        assert {node.id for node in (await forest(store)).nodes} == {"s0", "s1", "s2", "s3"}


async def test_a_feed_of_a_store_outlives_the_closing_of_another(open_store: OpenStore) -> None:
    first, second = await open_store(), await open_store()
    await create(first, "a")
    reader = await first.live.session_events("space", "a", 0)
    await append(second, "a", user("one"))
    await second.close()
    await append(first, "a", user("two"))
    async with asyncio.timeout(IN_TIME):
        assert [(await anext(reader)).seq, (await anext(reader)).seq] == [0, 1]
    await reader.aclose()


async def test_data_of_a_pre_release_is_refused(open_store: OpenStore, location: Path | str) -> None:
    await open_store()
    if isinstance(location, Path):
        with closing(sqlite3.connect(location / FILE)) as connection:
            connection.execute("PRAGMA user_version = 1")
    else:
        with pymongo.MongoClient[dict[str, Any]](location) as client:
            client.get_default_database()["meta"].update_one({"_id": "schema"}, {"$set": {"version": 1}})
    with pytest.raises(errors.StartupError, match=r"pre-release of Sapwood \(schema version 1,.*export.*import"):
        await open_store()
