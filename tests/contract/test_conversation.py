"""Pages of a conversation: each equals that part of the whole, for any log and any way of paging."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import errors
from storage.database import Queries
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    SurfaceHide,
    SystemMessage,
    ToolCall,
    ToolResult,
)
from storage.readers.conversation import ConversationPage, last_shown, read_conversation
from storage.session import SessionMeta
from storage.store import Store, UnitOfWork
from storage.views.conversation_entry import CardEntry, Entry, PlaceholderEntry, TextEntry, ToolEntry
from tests.conftest import OpenStore
from tests.contract.conversation_logs import Part, plans, whole, write
from tests.contract.shorthand import SPACE, append, create, fork, session, texts, user


async def forwards(queries: Queries, meta: SessionMeta, count: int) -> list[Entry]:
    """All entries, paging from the start."""
    found: list[Entry] = []
    at = 0
    while at < meta.head:
        page = await read_conversation(queries, meta, from_seq=at, first=count)
        assert page.next_seq > at
        found += page.entries
        at = page.next_seq
    return found


async def backwards(queries: Queries, meta: SessionMeta, count: int) -> list[Entry]:
    """All entries, paging back from the end."""
    found: list[Entry] = []
    at: int | None = meta.head
    while at is not None:
        page = await read_conversation(queries, meta, before_seq=at, last=count)
        assert page.next_seq == at
        assert page.prev_seq is None or page.prev_seq < at
        found = page.entries + found
        at = page.prev_seq
    return found


async def check(queries: Queries, meta: SessionMeta, count: int, start: int, stop: int) -> None:
    """Checks that pages of one log equal those parts of its whole conversation."""
    entries = await whole(queries, meta)
    assert await forwards(queries, meta, count) == entries
    assert await backwards(queries, meta, count) == entries
    everything = await whole(queries, meta, include_system=True)
    low, high = sorted((meta.head * start // 1_000, meta.head * stop // 1_000))
    part = [entry for entry in everything if low <= entry.seq < high]
    read = partial(read_conversation, queries, meta, from_seq=low, before_seq=high, include_system=True)
    assert (await read(first=count)).entries == part[:count]
    assert (await read(last=count)).entries == part[-count:]
    shown = [entry for entry in entries if not isinstance(entry, ToolEntry)]
    assert await last_shown(queries, meta) == (shown[-1] if shown else None)


def test_any_page_of_any_log_equals_that_part_of_the_whole(opening: OpenStore) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(opening())

        @settings(database=None)
        @given(plans(20), st.integers(1, 6), st.integers(0, 1_000), st.integers(0, 1_000))
        def play(plan: list[Part], count: int, start: int, stop: int) -> None:
            async def played() -> None:
                meta = await store.database.transact(partial(write, space=SPACE, plan=plan))
                await store.database.read(partial(check, meta=meta, count=count, start=start, stop=stop))

            runner.run(played())

        try:
            play()
        finally:
            runner.run(store.close())


def table(title: str, id: str | None = None) -> CardEvent:
    return CardEvent(card_type="Table", payload=f"title: {title}\n" + (f"id: {id}\n" if id else ""))


def call(id: str) -> ToolCall:
    return ToolCall(call_id=id, name="search", args="{}")


async def page(store: Store, id: str, **asked: Any) -> ConversationPage:
    return await store.conversations.page(await session(store, id), **asked)


def shown(entries: Sequence[Entry]) -> list[tuple[int, str | None]]:
    """Seq and visible text of each entry."""
    found: list[tuple[int, str | None]] = []
    for entry in entries:
        match entry:
            case TextEntry():
                found.append((entry.seq, entry.content))
            case CardEntry():
                found.append((entry.seq, entry.title))
            case PlaceholderEntry():
                found.append((entry.seq, entry.reason))
            case ToolEntry(invocation=made):
                found.append((entry.seq, made.output_preview))
    return found


async def test_pages_of_entries_and_of_events_have_the_same_bounds(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(10))
    requests: list[dict[str, Any]] = [
        {},
        {"from_seq": 3, "first": 4},
        {"from_seq": 3, "before_seq": 5},
        {"first": 4},
        {"last": 4},
        {"before_seq": 4},
        {"before_seq": 4, "last": 4},
        {"from_seq": 2, "before_seq": 4, "last": 4},
        {"from_seq": 99},
        {"from_seq": 10},
        {"from_seq": 99, "last": 3},
        {"before_seq": 99, "last": 3},
        {"before_seq": 0},
        {"first": 0},
        {"last": 0},
        {"first": 1_000},
    ]
    for asked in requests:
        found = await page(store, "a", **asked)
        events = await store.sessions.events(await session(store, "a"), **asked)
        assert (len(found.entries), found.next_seq, found.prev_seq, found.head) == (
            len(events.events),
            events.next_seq,
            events.prev_seq,
            events.head,
        )
    await create(store, "empty")
    assert await page(store, "empty") == ConversationPage([], 0, None, 0)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"first": -1}, r"first.*negative.*-1"),
        ({"last": -1}, r"last.*negative"),
        ({"from_seq": -1}, r"fromSeq.*negative"),
        ({"before_seq": -1}, r"beforeSeq.*negative"),
        ({"first": 1_001}, r"first: at most 1000, is 1001"),
        ({"last": 1_001}, r"last: at most 1000"),
        ({"first": 1, "last": 1}, r"first and last"),
    ],
)
async def test_a_bad_argument_is_refused(store: Store, asked: dict[str, int], match: str) -> None:
    await create(store, "a")
    with pytest.raises(errors.BadInput, match=match):
        await page(store, "a", **asked)


async def test_a_page_has_200_entries_by_default(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(300))
    assert [entry.seq for entry in (await page(store, "a")).entries] == list(range(200))
    assert [entry.seq for entry in (await page(store, "a", before_seq=250)).entries] == list(range(50, 250))


async def test_a_page_ends_before_4_mib_but_has_at_least_one_entry(store: Store) -> None:
    await create(store, "a")
    for size in (5, 2, 1, 1, 1):
        await append(store, "a", user("x" * (size * 1024 * 1024 - 100)))
    assert [entry.seq for entry in (await page(store, "a")).entries] == [0]
    assert [entry.seq for entry in (await page(store, "a", from_seq=1)).entries] == [1, 2, 3]
    back = await page(store, "a", before_seq=5)
    assert ([entry.seq for entry in back.entries], back.prev_seq) == ([2, 3, 4], 2)


async def test_system_messages_are_shown_on_request(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("q"), SystemMessage(content="s"))
    meta = await session(store, "a")
    assert shown((await store.conversations.page(meta)).entries) == [(0, "q")]
    assert shown((await store.conversations.page(meta, include_system=True)).entries) == [(0, "q"), (1, "s")]


async def test_a_card_updated_much_later_keeps_the_position_of_the_first(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", table("first", "x"), table("other", "y"), *texts(1_200, first=2)[:998])
    await append(store, "a", *texts(200, first=1_000), table("second", "x"))
    await append(store, "a", table("third", "x"), *texts(300, first=1_202))
    [card] = (await page(store, "a", first=1)).entries
    assert isinstance(card, CardEntry)
    assert (card.seq, card.title, card.source_event_seqs) == (0, "third", (0, 1_201))
    last = (await page(store, "a", before_seq=1_210, last=20)).entries
    assert [entry.seq for entry in last] == [*range(1_188, 1_200), *range(1_202, 1_210)]
    await append(store, "a", SurfaceHide(from_seq=0, to_seq=1))
    assert shown((await page(store, "a", first=1)).entries) == [(1, "other")]
    await append(store, "a", table("anew", "x"))
    assert shown((await page(store, "a", last=1)).entries) == [(1_503, "anew")]


async def test_cards_with_one_id_on_both_sides_of_a_cut_are_separate(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", table("first", "x"), table("second", "x"), user("q"), table("third", "x"))
    await fork(store, "a", id="b", at_seq=3)
    assert shown((await page(store, "b")).entries) == [(0, "second"), (2, "q")]
    await append(store, "b", table("mine", "x"))
    assert shown((await page(store, "b")).entries) == [(0, "mine"), (2, "q")]
    assert shown((await page(store, "a")).entries) == [(0, "third"), (2, "q")]


async def test_an_unreadable_card_is_appended_and_shown_as_a_placeholder(store: Store) -> None:
    await create(store, "a")
    bomb = "a: &a [x]\nid: [" + "*a," * 10 + "]"
    deep = "id: " + "[" * 100_000
    drafts = [CardEvent(card_type="Table", payload=payload) for payload in (bomb, deep, "id: [", "id: x\nid: x")]
    await append(store, "a", *drafts)
    entries = (await page(store, "a")).entries
    assert [type(entry) for entry in entries] == [PlaceholderEntry] * 4
    assert [entry.seq for entry in entries] == [0, 1, 2, 3]


async def test_a_much_later_result_is_found(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", call("a"), call("b"), *texts(998))
    for start in (1_000, 2_000):
        await append(store, "a", *texts(1_000, first=start))
    await append(store, "a", ToolResult(call_id="a", result='"late"'))
    assert shown((await page(store, "a", first=2)).entries) == [(0, "late"), (1, None)]


async def test_a_long_streamed_answer_is_one_entry_wherever_a_page_ends(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("q"))
    for _ in range(3):
        await append(store, "a", *[AssistantChunk(delta="x") for _ in range(1_000)])
    for asked in ({"last": 1}, {"from_seq": 1, "first": 1}, {"from_seq": 1, "before_seq": 1_500}):
        [answer] = (await page(store, "a", **asked)).entries
        assert isinstance(answer, TextEntry)
        assert (answer.seq, len(answer.content), answer.partial) == (1, 3_000, True)
    await append(store, "a", AssistantMessage(content="whole"))
    assert shown((await page(store, "a", from_seq=1, first=1)).entries) == [(3_001, "whole")]


async def test_a_page_ends_at_the_head_of_the_session_that_was_read(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", table("first", "x"), user("q"))
    meta = await session(store, "a")
    await append(store, "a", table("second", "x"), SurfaceHide(from_seq=1, to_seq=2))
    assert shown((await store.conversations.page(meta)).entries) == [(0, "first"), (1, "q")]


async def test_the_last_text_or_card_is_found_before_other_events(store: Store) -> None:
    await create(store, "a")
    meta = await session(store, "a")
    assert await store.database.read(partial(last_shown, meta=meta)) is None
    await append(store, "a", user("q"), *[call(f"{n}") for n in range(50)], SystemMessage(content="s"))
    meta = await session(store, "a")
    found = await store.database.read(partial(last_shown, meta=meta))
    assert found is not None
    assert found.source_event_seqs == (0,)


async def test_a_transaction_reads_pages_of_its_own_writes(store: Store) -> None:
    await create(store, "a")

    async def work(unit: UnitOfWork) -> list[tuple[int, str | None]]:
        await unit.sessions.append(SPACE, "a", [table("first", "x")])
        appended = await unit.sessions.append(SPACE, "a", [table("second", "x"), user("q")])
        return shown((await unit.conversations.page(appended.session)).entries)

    assert await store.transaction(work) == [(0, "second"), (2, "q")]
