"""Reading the log: pages forward and back, of selected types, over commits of any size."""

import random
from typing import Any

import pytest

from storage import errors
from storage.events import CustomEvent, Event, ToolCall
from storage.log.reading import EventPage
from storage.session import SessionMeta
from storage.store import Store
from tests.contract.shorthand import (
    append,
    append_in_parts,
    contents,
    conversation,
    create,
    fork,
    seqs,
    session,
    texts,
    user,
)

MEBIBYTE = 1024 * 1024


async def mixed(store: Store, seed: int) -> tuple[SessionMeta, list[Event]]:
    """A log of 64 events in commits of random sizes, in a fork of a fork, and the events as written."""
    chance = random.Random(seed)
    await create(store, "a")
    events = conversation(8)
    cuts = sorted(chance.sample(range(1, 64), 2))
    await append_in_parts(store, "a", events[: cuts[0]], chance)
    await append(store, "a", *texts(3))
    await fork(store, "a", id="b", at_seq=cuts[0])
    await append_in_parts(store, "b", events[cuts[0] : cuts[1]], chance)
    await append(store, "b", *texts(2))
    await fork(store, "b", id="c", at_seq=cuts[1])
    await append_in_parts(store, "c", events[cuts[1] :], chance)
    return await session(store, "c"), events


def as_sent(event: Event) -> dict[str, object]:
    """An event as its writer sent it."""
    return event.model_dump(exclude={"timestamp", "turn_id", "step_id"})


@pytest.mark.parametrize("seed", range(3))
async def test_every_forward_page_equals_that_part_of_the_log(store: Store, seed: int) -> None:
    meta, events = await mixed(store, seed)
    for start in range(0, 65, 1 if seed == 0 else 7):
        for size in (0, 1, 2, 3, 7, 10, 64, 1_000):
            page = await store.sessions.events(meta, from_seq=start, first=size)
            stop = min(start + size, 64)
            assert seqs(page.events) == list(range(start, stop))
            assert [as_sent(event) for event in page.events] == [as_sent(event) for event in events[start:stop]]
            assert (page.next_seq, page.prev_seq, page.head) == (stop, start or None, 64)


@pytest.mark.parametrize("seed", range(3))
async def test_every_backward_page_equals_that_part_of_the_log(store: Store, seed: int) -> None:
    meta, events = await mixed(store, seed)
    for stop in range(0, 65, 1 if seed == 0 else 7):
        for size in (0, 1, 2, 3, 7, 10, 64, 1_000):
            page = await store.sessions.events(meta, before_seq=stop, last=size)
            start = max(stop - size, 0)
            assert seqs(page.events) == list(range(start, stop))
            assert [as_sent(event) for event in page.events] == [as_sent(event) for event in events[start:stop]]
            assert (page.next_seq, page.prev_seq, page.head) == (stop, start or None, 64)


async def read_forward(store: Store, meta: SessionMeta, first: int, types: set[str] | None = None) -> list[EventPage]:
    pages = [await store.sessions.events(meta, from_seq=0, first=first, types=types)]
    while pages[-1].next_seq < meta.head:
        assert len(pages) <= meta.head
        pages.append(await store.sessions.events(meta, from_seq=pages[-1].next_seq, first=first, types=types))
    return pages


async def read_back(store: Store, meta: SessionMeta, last: int, types: set[str] | None = None) -> list[EventPage]:
    pages = [await store.sessions.events(meta, last=last, types=types)]
    while pages[-1].prev_seq is not None:
        assert len(pages) <= meta.head
        before = pages[-1].prev_seq
        pages.append(await store.sessions.events(meta, before_seq=before, last=last, types=types))
    return pages


@pytest.mark.parametrize("size", [1, 2, 5, 64])
@pytest.mark.parametrize("types", [None, {"custom"}, {"user/message", "tool/call", "turn/end"}, {"card"}, set()])
async def test_pages_hold_each_event_of_the_requested_types_once(
    store: Store, size: int, types: set[str] | None
) -> None:
    meta, events = await mixed(store, 5)
    expected = [seq for seq, event in enumerate(events) if types is None or event.type in types]
    forward = await read_forward(store, meta, size, types)
    assert [seq for page in forward for seq in seqs(page.events)] == expected
    back = await read_back(store, meta, size, types)
    assert [seq for page in reversed(back) for seq in seqs(page.events)] == expected
    assert all(len(page.events) <= size for page in (*forward, *back))
    assert len(forward) <= len(expected) // size + 2
    assert len(back) <= len(expected) // size + 2


async def test_a_page_has_the_first_100_events_by_default(store: Store) -> None:
    await create(store, "a")
    meta = (await append(store, "a", *texts(250))).session
    assert seqs((await store.sessions.events(meta)).events) == list(range(100))
    assert seqs((await store.sessions.events(meta, from_seq=200)).events) == list(range(200, 250))
    assert seqs((await store.sessions.events(meta, before_seq=220)).events) == list(range(120, 220))
    assert seqs((await store.sessions.events(meta, last=30)).events) == list(range(220, 250))


async def test_a_page_can_have_both_bounds(store: Store) -> None:
    await create(store, "a")
    meta = (await append(store, "a", *texts(20))).session
    page = await store.sessions.events(meta, from_seq=5, before_seq=12)
    assert seqs(page.events) == list(range(5, 12))
    page = await store.sessions.events(meta, from_seq=5, before_seq=12, last=3)
    assert (seqs(page.events), page.prev_seq) == ([9, 10, 11], 9)
    page = await store.sessions.events(meta, from_seq=5, before_seq=12, first=3)
    assert (seqs(page.events), page.next_seq) == ([5, 6, 7], 8)
    assert (await store.sessions.events(meta, from_seq=12, before_seq=5)).events == []


async def test_a_page_of_size_zero_is_empty(store: Store) -> None:
    await create(store, "a")
    meta = (await append(store, "a", *texts(5))).session
    page = await store.sessions.events(meta, from_seq=2, first=0)
    assert (page.events, page.next_seq, page.prev_seq, page.head) == ([], 2, 2, 5)
    page = await store.sessions.events(meta, before_seq=3, last=0)
    assert (page.events, page.next_seq, page.prev_seq, page.head) == ([], 3, 3, 5)


@pytest.mark.parametrize("from_seq", [5, 6, 1_000_000])
async def test_a_page_from_the_head_is_empty(store: Store, from_seq: int) -> None:
    await create(store, "a")
    meta = (await append(store, "a", *texts(5))).session
    for first in (None, 0, 3):
        page = await store.sessions.events(meta, from_seq=from_seq, first=first)
        assert (page.events, page.next_seq, page.prev_seq, page.head) == ([], 5, 5, 5)
    page = await store.sessions.events(meta, before_seq=from_seq, last=2)
    assert (seqs(page.events), page.next_seq) == ([3, 4], 5)


async def test_a_page_of_an_empty_log_is_empty(store: Store) -> None:
    meta = await create(store, "a")
    for page in (await store.sessions.events(meta), await store.sessions.events(meta, last=5)):
        assert (page.events, page.next_seq, page.prev_seq, page.head) == ([], 0, None, 0)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"from_seq": -1}, "fromSeq"),
        ({"before_seq": -1}, "beforeSeq"),
        ({"first": -1}, "first"),
        ({"last": -1}, "last"),
        ({"first": 1_001}, "first.*1000"),
        ({"last": 1_001}, "last.*1000"),
        ({"first": 1, "last": 1}, "first and last"),
    ],
)
async def test_bad_numbers_are_refused(store: Store, asked: dict[str, Any], name: str) -> None:
    meta = await create(store, "a")
    with pytest.raises(errors.BadInput, match=name):
        await store.sessions.events(meta, **asked)


@pytest.mark.parametrize("together", [True, False])
async def test_a_page_ends_before_4_mebibytes(store: Store, together: bool) -> None:
    await create(store, "a")
    drafts = [user("x" * (MEBIBYTE - 200)) for _ in range(7)]
    for part in [drafts] if together else [[draft] for draft in drafts]:
        meta = (await append(store, "a", *part)).session
    forward = await read_forward(store, meta, 1_000)
    assert [seqs(page.events) for page in forward] == [[0, 1, 2, 3], [4, 5, 6]]
    back = await read_back(store, meta, 1_000)
    assert [seqs(page.events) for page in back] == [[3, 4, 5, 6], [0, 1, 2]]


async def test_a_page_has_at_least_one_event_however_large(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("before"))
    await append(store, "a", user("x" * (7 * MEBIBYTE)))
    meta = (await append(store, "a", user("after"))).session
    assert [seqs(page.events) for page in await read_forward(store, meta, 1_000)] == [[0], [1], [2]]
    assert [seqs(page.events) for page in await read_back(store, meta, 1_000)] == [[2], [1], [0]]


async def test_events_left_out_by_type_do_not_count_against_the_page(store: Store) -> None:
    await create(store, "a")
    large = "x" * (3 * MEBIBYTE)
    await append(store, "a", user(large), CustomEvent(name="n", data="0"))
    await append(store, "a", user(large))
    meta = (await append(store, "a", user(large), CustomEvent(name="n", data="1"))).session
    page = await store.sessions.events(meta, types={"custom"})
    assert (seqs(page.events), page.next_seq) == ([1, 4], 5)


async def test_rare_events_are_found_in_a_long_log(store: Store) -> None:
    await create(store, "a")
    for _ in range(3):
        await append(store, "a", ToolCall(call_id="c", name="n", args="{}"), *texts(899))
    meta = await session(store, "a")
    page = await store.sessions.events(meta, types={"tool/call"}, first=10)
    assert (seqs(page.events), page.next_seq) == ([0, 900, 1_800], 2_700)
    page = await store.sessions.events(meta, types={"tool/call"}, last=2)
    assert seqs(page.events) == [900, 1_800]
    page = await store.sessions.events(meta, from_seq=1_795, first=10)
    assert contents(page.events[:2]) == ["message 894", "message 895"]


async def test_a_page_ends_at_the_head_of_the_session_that_was_read(store: Store) -> None:
    await create(store, "a")
    meta = (await append(store, "a", *texts(3))).session
    await append(store, "a", *texts(3))
    page = await store.sessions.events(meta)
    assert (seqs(page.events), page.next_seq, page.head) == ([0, 1, 2], 3, 3)
    assert seqs((await store.sessions.events(meta, last=2)).events) == [1, 2]


async def test_reading_writes_nothing(store: Store) -> None:
    await create(store, "a")
    meta = (await append(store, "a", *texts(3))).session
    await store.sessions.events(meta)
    assert await session(store, "a") == meta
