"""Digests: orchestrators collect them without missing a change and without writing anything."""

import asyncio
from typing import Any

import pytest

from storage import errors
from storage.digests import MAX_DIGEST_BYTES, MAX_DIGESTS, DigestPage
from storage.session import SessionFilter, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE, append, create, digests, put, put_insight, session, slots, texts, user

SYSTEM_PROMPT, _, MEMORY = SlotName
MEBIBYTE = 1024 * 1024


async def digest_ids(store: Store, **selection: object) -> set[str]:
    return {digest.session.id for digest in await digests(store, **selection)}


async def collect(store: Store, first: int, **selection: Any) -> list[DigestPage]:
    """All pages of one collection."""
    pages: list[DigestPage] = []
    after = None
    while not pages or pages[-1].more:
        page = await store.sessions.digests(SPACE, SessionFilter(**selection), first, after)
        assert page is not None
        assert page.digests
        pages.append(page)
        after = page.cursor(page.digests[-1])
    return pages


async def test_a_digest_holds_the_session_memory_and_insight(store: Store) -> None:
    await create(store, "a", label="name")
    await append(store, "a", *texts(2))
    await put(store, "a", MEMORY, "memory", at_seq=1)
    await put(store, "a", SYSTEM_PROMPT, "prompt")
    await put_insight(store, "a", "insight")
    [digest] = await digests(store)
    found = await slots(store, "a")
    assert (digest.session, digest.memory, digest.insight) == (await session(store, "a"), found.memory, found.insight)


async def test_a_new_session_has_a_digest(store: Store) -> None:
    made = await create(store, "a")
    [digest] = await digests(store)
    assert (digest.session, digest.memory, digest.insight) == (made, None, None)


async def test_a_cleared_insight_is_none(store: Store) -> None:
    for id in ("a", "b"):
        await create(store, id)
        await put_insight(store, id, "insight")
    await store.sessions.clear_insight(SPACE, "a", None)
    await store.sessions.consume_insight(SPACE, "b", None, None, None)
    assert [digest.insight for digest in await digests(store)] == [None, None]


async def test_a_filter_matches_only_rows_that_meet_all_conditions(store: Store) -> None:
    await create(store, "root")
    await create(store, "a", "root")
    await create(store, "b", "a")
    await create(store, "other")
    await append(store, "a", user("x"))
    await append(store, "other", user("x"))
    await put(store, "other", MEMORY, "of all")
    await store.sessions.set_status(SPACE, "b", SessionStatus.ARCHIVED)
    assert await digest_ids(store) == {"root", "a", "b", "other"}
    assert await digest_ids(store, under="root") == {"root", "a", "b"}
    assert await digest_ids(store, under="a", status=SessionStatus.ACTIVE) == {"a"}
    assert await digest_ids(store, status=SessionStatus.ARCHIVED) == {"b"}
    assert await digest_ids(store, behind=True) == {"a"}
    assert await digest_ids(store, behind=False) == {"root", "b", "other"}
    assert await digest_ids(store, appended_since=0) == {"a", "other"}
    assert await digest_ids(store, ids=("b", "unknown", "a", "root"), under="a") == {"a", "b"}
    assert await digest_ids(store, ids=("unknown",)) == set()
    assert await digest_ids(store, ids=()) == set()
    assert await store.sessions.digests(SPACE, SessionFilter(under="unknown"), 10, None) is None


async def test_digests_changed_since_an_instant_are_found(store: Store) -> None:
    for id in ("a", "b", "c"):
        await create(store, id)
    clock = max(digest.session.updated_at for digest in await digests(store))
    while (changed := (await append(store, "a", user("x"))).session).updated_at == clock:
        pass
    since = changed.updated_at
    assert await digest_ids(store, updated_since=since) == {"a"}
    assert await digest_ids(store, appended_since=since) == {"a"}
    while (await put(store, "b", MEMORY, "m")).session.updated_at == since:
        pass
    assert await digest_ids(store, updated_since=since) == {"a", "b"}
    assert await digest_ids(store, updated_since=since + 1) == {"b"}
    assert await digest_ids(store, appended_since=since) == {"a"}


@pytest.mark.parametrize("name", SlotName)
async def test_a_slot_write_is_a_change(store: Store, name: SlotName) -> None:
    made = await create(store, "a")
    while (await put(store, "a", name, "x")).session.updated_at == made.updated_at:
        pass
    assert await digest_ids(store, updated_since=made.updated_at + 1) == {"a"}


@pytest.mark.parametrize("selection", [{}, {"status": SessionStatus.ACTIVE}])
@pytest.mark.parametrize("first", [1, 3, 100])
async def test_pages_hold_each_session_once_in_order_of_creation(
    store: Store, first: int, selection: dict[str, object]
) -> None:
    made = []
    for n in range(7):
        made.append(await create(store, f"s{(n * 3) % 7}"))
        await put(store, made[-1].id, MEMORY, f"memory {n}")
    expected = sorted(made, key=lambda meta: (meta.created_at, meta.id))
    pages = await collect(store, first, **selection)
    found = [digest for page in pages for digest in page.digests]
    assert [digest.session.id for digest in found] == [meta.id for meta in expected]
    assert all(digest.memory is not None for digest in found)
    assert all(len(page.digests) == first for page in pages[:-1])


async def test_every_page_of_a_collection_has_the_as_of_of_the_first(store: Store) -> None:
    for n in range(4):
        await create(store, f"s{n}")
    first = await store.sessions.digests(SPACE, SessionFilter(), 2, None)
    assert first is not None
    clock = (await session(store, "s3")).updated_at
    while (await append(store, "s0", user("x"))).session.updated_at == clock:
        pass
    second = await store.sessions.digests(SPACE, SessionFilter(), 2, first.cursor(first.digests[-1]))
    assert second is not None
    assert second.as_of == first.as_of
    assert [digest.session.id for digest in second.digests] == ["s2", "s3"]


async def test_a_cursor_of_another_collection_is_refused(store: Store) -> None:
    await create(store, "a")
    page = await store.sessions.digests(SPACE, SessionFilter(), 1, None)
    assert page is not None
    with pytest.raises(errors.BadInput, match=r"after.*another list"):
        await store.sessions.digests(SPACE, SessionFilter(behind=False), 1, page.cursor(page.digests[0]))


async def test_asking_again_since_as_of_misses_nothing(open_store: OpenStore) -> None:
    writer, reader = await open_store(), await open_store()
    names = [f"s{n}" for n in range(6)]
    done = asyncio.Event()

    async def write(id: str) -> None:
        await create(writer, id)
        for n in range(12):
            await append(writer, id, user(str(n)))
            await put(writer, id, MEMORY, f"memory {n}")

    async def write_all() -> None:
        await asyncio.gather(*map(write, names))
        done.set()

    async def collect_all() -> dict[str, tuple[int, int]]:
        known: dict[str, tuple[int, int]] = {}
        since = None
        while True:
            last = done.is_set()
            pages: list[DigestPage] = []
            while not pages or pages[-1].more:
                after = pages[-1].cursor(pages[-1].digests[-1]) if pages and pages[-1].digests else None
                page = await reader.sessions.digests(SPACE, SessionFilter(updated_since=since), 4, after)
                assert page is not None
                pages.append(page)
            for page in pages:
                for digest in page.digests:
                    known[digest.session.id] = (digest.session.head, digest.memory.version if digest.memory else 0)
            assert len({page.as_of for page in pages}) == 1
            since = pages[0].as_of
            if last:
                return known

    _, known = await asyncio.gather(write_all(), collect_all())
    assert known == dict.fromkeys(names, (12, 12))


@pytest.mark.parametrize("selection", [{}, {"status": SessionStatus.ACTIVE}])
async def test_a_page_ends_before_16_mebibytes(store: Store, selection: dict[str, object]) -> None:
    large = "ä" * (MEBIBYTE // 2)
    names = [f"s{n:02}" for n in range(18)]
    for id in names:
        await create(store, id)
        await put(store, id, MEMORY, large)
    pages = await collect(store, 100, **selection)
    assert sorted(digest.session.id for page in pages for digest in page.digests) == names
    for page in pages:
        memories = [digest.memory for digest in page.digests]
        assert all(memory is not None and memory.content == large for memory in memories)
        assert len(memories) * MEBIBYTE <= MAX_DIGEST_BYTES
    assert len(pages[0].digests) >= 13


async def test_fetching_digests_writes_nothing(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "insight")
    before = await digests(store)
    assert await digests(store) == before
    assert (await slots(store, "a")).insight == before[0].insight


async def test_a_page_of_size_zero_is_empty(store: Store) -> None:
    await create(store, "a")
    page = await store.sessions.digests(SPACE, SessionFilter(), 0, None)
    assert page is not None
    assert page.digests == []
    assert page.as_of > 0


async def test_a_page_and_a_list_of_ids_have_at_most_10000_digests(store: Store) -> None:
    for first in (-1, MAX_DIGESTS + 1):
        with pytest.raises(errors.BadInput, match=r"first.*10000"):
            await store.sessions.digests(SPACE, SessionFilter(), first, None)
    too_many = tuple(str(n) for n in range(MAX_DIGESTS + 1))
    with pytest.raises(errors.PayloadTooLarge, match=r"ids.*10000"):
        await store.sessions.digests(SPACE, SessionFilter(ids=too_many), 1, None)


async def test_many_ids_can_be_requested(store: Store) -> None:
    for n in range(4):
        await create(store, f"s{n}")
    await store.sessions.put_slots(SPACE, [SlotWrite(f"s{n}", MEMORY, str(n)) for n in range(4)])
    found = await digests(store, ids=tuple(f"s{n}" for n in range(2_000)))
    assert {digest.session.id: digest.memory and digest.memory.content for digest in found} == {
        f"s{n}": str(n) for n in range(4)
    }
