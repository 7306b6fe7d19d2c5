"""A commit whose answer is lost is neither lost nor applied twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from storage.events import UserMessage
from storage.lifecycle import NewSession
from storage.mongo.client import open_url
from storage.session import SlotName
from storage.slots import InsightMode, SlotWrite
from storage.store import Store
from tests.storage.mongo.proxy import Proxy

SPACE = "space"
CUTS = [["before"], ["after"], ["before"] * 3, ["after"] * 3, ["before", "before", "after"]]


@pytest.fixture
async def proxy(mongodb_database: str) -> AsyncIterator[Proxy]:
    async with Proxy(mongodb_database) as opened:
        yield opened


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[Store]:
    store = Store(await open_url(proxy.url))
    await store.tree.create(SPACE, NewSession(id="a"))
    yield store
    await store.close()


@pytest.mark.parametrize("cuts", CUTS)
async def test_an_append_is_written_once(store: Store, proxy: Proxy, cuts: list[str]) -> None:
    proxy.cuts = list(cuts)
    appended = await store.sessions.append(SPACE, "a", [UserMessage(content="one")])
    assert not proxy.cuts
    meta = await store.sessions.get(SPACE, "a")
    assert meta == appended.session
    assert meta.head == 1
    assert (await store.sessions.events(meta)).events == appended.events


@pytest.mark.parametrize("cuts", CUTS)
async def test_an_insight_is_joined_once(store: Store, proxy: Proxy, cuts: list[str]) -> None:
    proxy.cuts = list(cuts)
    written = await store.sessions.put_slot(SPACE, SlotWrite("a", SlotName.INSIGHT, "one", InsightMode.APPEND))
    assert not proxy.cuts
    assert written.slot is not None
    assert written.slot.version == 1
    assert (await store.sessions.slots(SPACE, ["a"]))["a"].insight == written.slot


@pytest.mark.parametrize("cuts", CUTS)
async def test_a_new_root_takes_one_index(store: Store, proxy: Proxy, cuts: list[str]) -> None:
    proxy.cuts = list(cuts)
    made = await store.tree.create(SPACE, NewSession())
    assert not proxy.cuts
    assert [(node.id, node.document.index) for node in await store.tree.roots(SPACE)] == [("a", 0), (made.id, 1)]


async def test_listeners_are_called_once_for_a_commit_whose_answer_was_lost(store: Store, proxy: Proxy) -> None:
    announced: list[int] = []
    store.database.watch(lambda _, commits: announced.extend(commit.first for commit in commits))
    proxy.cuts = ["after"] * 3
    await store.sessions.append(SPACE, "a", [UserMessage(content="one")])
    assert announced == [0]


async def test_a_cancelled_caller_leaves_the_queue_open(store: Store) -> None:
    for delay in range(20):
        cancelled = asyncio.create_task(store.sessions.append(SPACE, "a", [UserMessage(content="one")]))
        await asyncio.sleep(delay / 2_000)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
    async with asyncio.timeout(300):
        appended = await store.sessions.append(SPACE, "a", [UserMessage(content="last")])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    assert [event.seq for event in (await store.sessions.events(meta)).events] == list(range(appended.head))
