"""Surfaces of a store are the same read in parts or at once, cached or not, in a session or in a fork of it."""

import asyncio
import gc
import itertools
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import errors
from storage.events import AssistantChunk, ChunkKind, Event
from storage.lifecycle import Fork, NewSession
from storage.readers import surfaces
from storage.readers.surfaces import Surfaces
from storage.scope import DatabaseScope
from storage.store import Store, UnitOfWork
from storage.views.surface import Surface
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE, append, conversation, create, fork, session, surface, texts, whole_log
from tests.counting import counted
from tests.storage.views.admitted_logs import ADMITTED
from tests.storage.views.surface_logs import assistant, call, chunk, result, seqs, shown, user
from tests.storage.views.validity import check

SMALL = 12_000
"""Bytes of cache that hold a handful of events."""


def content_of(found: Surface) -> tuple[object, ...]:
    """Everything that a surface contains."""
    return found.head, found.messages(), found.openai_text(), found.delivered()


async def uncached(store: Store, id: str, at_seq: int | None = None, max_bytes: int = 0) -> Surface:
    """The surface as read by a process without a cache."""
    meta = await session(store, id)
    return await store.database.read(
        lambda queries: Surfaces(max_bytes).read(queries, meta, at_seq, keep=bool(max_bytes))
    )


class Play:
    """A log written to a session in parts and read after each."""

    def __init__(self, store: Store, id: str) -> None:
        self.store = store
        self.id = id
        self.little = UnitOfWork(DatabaseScope(store.database), Surfaces(SMALL))

    async def write(self, log: Sequence[Event], sizes: Sequence[int]) -> None:
        await create(self.store, self.id)
        done = 0
        for size in itertools.chain(sizes, itertools.repeat(len(log))):
            part = log[done : done + size]
            if not part:
                return
            await append(self.store, self.id, *part)
            done += len(part)
            await self.compare(self.id)

    async def compare(self, id: str, at_seq: int | None = None) -> None:
        """Checks that a full, a small and an empty cache give the same surface as a fold of the whole log."""
        meta = await session(self.store, id)
        events = await whole_log(self.store, id)
        expected = Surface().add_all(events[:at_seq])
        expected.head = meta.head if at_seq is None else at_seq
        readings = (
            await surface(self.store, id, at_seq),
            await self.little.messages.surface(meta, at_seq),
            await uncached(self.store, id, at_seq),
        )
        for found in readings:
            assert content_of(found) == content_of(expected)
            check(found)

    async def compare_fork(self, at_seq: int, more: Sequence[Event]) -> None:
        """Checks that the surface at a seq equals that of a fork there, and that later events stay separate."""
        made = await self.store.tree.fork(SPACE, Fork(source_id=self.id, at_seq=at_seq, id=f"{self.id}-{at_seq}"))
        before = content_of(await surface(self.store, self.id))
        assert content_of(await surface(self.store, made.id)) == content_of(await surface(self.store, self.id, at_seq))
        await append(self.store, made.id, *more)
        await self.compare(made.id)
        await self.compare(made.id, at_seq)
        assert content_of(await surface(self.store, self.id)) == before


MORE = (user("more"), call("A"), result("A"), chunk("part"))


def test_a_surface_is_the_same_however_it_is_read(opening: OpenStore) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(opening())
        names = (f"s{n}" for n in itertools.count())

        @settings(database=None)
        @given(
            ADMITTED,
            st.lists(st.integers(1, 9), max_size=12),
            st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True),
        )
        def check_one(log: list[Event], sizes: list[int], cuts: list[float]) -> None:
            async def play() -> None:
                playing = Play(store, next(names))
                await playing.write(log, sizes)
                for at_seq in sorted({round(cut * len(log)) for cut in cuts}):
                    await playing.compare(playing.id, at_seq)
                    await playing.compare_fork(at_seq, MORE)

            runner.run(play())

        try:
            check_one()
        finally:
            runner.run(store.close())


async def test_every_cut_equals_the_fork_at_it(store: Store) -> None:
    """Also through a fork of the fork, inside turns, groups and commits."""
    playing = Play(store, "a")
    await playing.write([*conversation(1), *MORE, assistant("whole"), user("all", 8, 12)], [3, 1, 7])
    await fork(store, "a", id="b", at_seq=9)
    await append(store, "b", *conversation(2)[8:], user("sum", 8, 8))
    head = (await session(store, "b")).head
    for at_seq in range(head + 1):
        await fork(store, "b", id=f"c{at_seq}", at_seq=at_seq)
        assert content_of(await surface(store, f"c{at_seq}")) == content_of(await surface(store, "b", at_seq))
        await playing.compare("b", at_seq)


async def test_a_seq_out_of_range_is_refused(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    for wrong in (-1, 3):
        with pytest.raises(errors.BadInput, match=f"^atSeq: must be 0 to the head 2, is {wrong}$"):
            await surface(store, "a", wrong)
    assert content_of(await surface(store, "a", 0)) == content_of(Surface())
    assert (await surface(store, "a", 2)).head == 2


async def test_a_session_created_again_under_its_id_has_its_own_surface(store: Store, open_store: OpenStore) -> None:
    other = await open_store()
    await create(store, "a")
    await append(store, "a", *texts(3))
    assert [len((await surface(each, "a")).messages()) for each in (store, other)] == [3, 3]
    await store.tree.delete(SPACE, "a")
    await create(store, "a")
    assert [(await surface(each, "a")).messages() for each in (store, other)] == [[], []]
    await append(store, "a", *(user(f"new {n}") for n in range(5)))
    for each in (store, other):
        assert shown(await surface(each, "a")) == [("user", f"new {n}") for n in range(5)]
        assert shown(await surface(each, "a", 3)) == [("user", f"new {n}") for n in range(3)]


async def test_equal_ids_in_two_spaces_have_their_own_surfaces(store: Store) -> None:
    for space in ("one", "two"):
        await store.tree.create(space, NewSession(id="a"))
        await store.sessions.append(space, "a", [user(space)])
    for space in ("one", "two", "one"):
        meta = await store.sessions.get(space, "a")
        assert meta is not None
        assert shown(await store.messages.surface(meta)) == [("user", space)]


async def test_surfaces_of_a_rolled_back_transaction_are_never_cached(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))

    async def work(unit: UnitOfWork) -> None:
        await unit.sessions.append(SPACE, "a", [user("never"), user("was", 0, 1)])
        meta = await unit.sessions.get(SPACE, "a")
        assert meta is not None
        assert shown(await unit.messages.surface(meta)) == [("user", "was"), ("user", "never")]
        raise errors.BadInput("on second thoughts")

    with pytest.raises(errors.BadInput, match="on second thoughts"):
        await store.transaction(work)
    await append(store, "a", user("instead"), user("is", 1, 2))
    assert shown(await surface(store, "a")) == [("user", "message 0"), ("user", "is")]


async def test_a_surface_of_an_older_head_does_not_change(store: Store) -> None:
    """A session read before an append has the surface of that time, even after a longer one is cached."""
    await create(store, "a")
    await append(store, "a", user("q"), call("x"))
    old = await session(store, "a")
    early = await store.messages.surface(old)
    before = content_of(early)
    await append(store, "a", result("x"), user("again", 0, 0), chunk("part"))
    late = content_of(await surface(store, "a"))
    assert content_of(early) == content_of(await store.messages.surface(old)) == before
    assert content_of(await surface(store, "a")) == late


async def test_concurrent_readers_all_get_the_whole_surface(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(4))
    heads = [0, 5, 9, 17, 32, None] * 4
    expected = {at: content_of(await uncached(store, "a", at)) for at in set(heads)}
    found = await asyncio.gather(*(surface(store, "a", at) for at in heads))
    assert [content_of(each) for each in found] == [expected[at] for at in heads]


async def test_only_events_appended_since_are_read(store: Store, open_store: OpenStore) -> None:
    """Also for a fork that shares the log: a long surface takes as many queries as a short one."""
    other = await open_store()
    for name, size in (("short", 1), ("long", 5_000)):
        await create(store, name)
        for start in range(0, size, 1_000):
            await append(store, name, *texts(min(size, 1_000), start))
    counts: dict[str, list[int]] = {}
    for name in ("short", "long"):
        await surface(store, name)
        await append(other, name, user("more"))
        await fork(store, name, id=f"{name}-fork")
        await append(other, f"{name}-fork", user("and more"))
        counts[name] = []
        for id in (name, name, f"{name}-fork", f"{name}-fork"):
            meta = await session(store, id)
            async with counted(store) as count:
                found = await store.messages.surface(meta)
            assert len(found.messages()) == meta.head
            counts[name].append(count.queries)
    assert counts["long"] == counts["short"]
    assert counts["long"][1] == counts["long"][3] == 0 < counts["long"][0]


async def test_events_appended_by_this_process_are_not_read(store: Store) -> None:
    await create(store, "a")
    for event in conversation(2):
        await append(store, "a", event)
    await fork(store, "a", id="b")
    for id in ("a", "b"):
        meta = await session(store, id)
        async with counted(store) as count:
            found = await store.messages.surface(meta)
        assert content_of(found) == content_of(await uncached(store, id))
        assert count.queries == 0


async def test_events_appended_by_another_server_are_read(store: Store, open_store: OpenStore) -> None:
    other = await open_store()
    await create(store, "a")
    for each in (store, store, other, store, other, other, store, store):
        meta = await session(store, "a")
        await append(each, "a", *texts(2, meta.head))
        if meta.head % 4 == 0:
            assert content_of(await surface(store, "a")) == content_of(await uncached(store, "a"))
    assert shown(await surface(store, "a")) == [("user", f"message {n}") for n in range(16)]


async def test_the_cache_is_bounded_over_many_sessions(store: Store) -> None:
    little = Surfaces(SMALL)
    unit = UnitOfWork(DatabaseScope(store.database), little)
    for name in "abcdef":
        await create(store, name)
        await append(store, name, *texts(4))
    for name in "abcdefabc":
        meta = await session(store, name)
        assert content_of(await unit.messages.surface(meta)) == content_of(await uncached(store, name))
    assert 0 < sum(kept.size for kept in little._cached.values()) <= SMALL
    assert len(little._cached) < 6


async def test_many_small_surfaces_stay_within_the_cache_limit(store: Store) -> None:
    allowed = 1024 * 1024
    unit = UnitOfWork(DatabaseScope(store.database), Surfaces(allowed))
    metas = []
    for number in range(150):
        await create(store, f"s{number}")
        await append(store, f"s{number}", *texts(20))
        metas.append(await session(store, f"s{number}"))
    tracemalloc.start()
    try:
        for meta in metas:
            (await unit.messages.surface(meta)).openai_text()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1.5 * allowed
    async with counted(store) as count:
        await unit.messages.surface(metas[-1])
    assert count.queries == 0


async def test_replaced_nodes_do_not_count_against_the_cache(store: Store) -> None:
    """So a long log that is compacted now and then is read from the last compaction on."""
    little = Surfaces(4 * SMALL)
    unit = UnitOfWork(DatabaseScope(store.database), little)
    await create(store, "a")
    for number in range(20):
        start = 0 if number == 0 else 21 * number - 1
        await append(store, "a", *texts(20))
        await append(store, "a", user("summary", start, 21 * number + 19))
        found = await unit.messages.surface(await session(store, "a"))
        assert seqs(found) == [(21 * number + 20,)]
    meta = await session(store, "a")
    async with counted(store) as count:
        await unit.messages.surface(meta)
    assert count.queries == 0


async def test_a_log_longer_than_one_read_has_the_same_surface(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts it is read in, and wherever they end: between chunks, in a group, at a replacement."""
    await create(store, "a")
    answer = [AssistantChunk(delta=f"{n} ", kind=ChunkKind.TEXT) for n in range(7)]
    thought = [AssistantChunk(delta="hm", kind=ChunkKind.REASONING)] * 3
    log = [*answer, assistant("one"), *thought, *answer, *MORE, user("r", 11, 11), *answer, *conversation(2), *answer]
    for start in range(0, len(log), 5):
        await append(store, "a", *log[start : start + 5])
    expected = Surface().add_all(await whole_log(store, "a"))
    check(expected)
    assert len(seqs(expected)) > 10
    for size in (1, 2, 3, 7, 11, 100):
        monkeypatch.setattr(surfaces, "PART_EVENTS", size)
        assert content_of(await uncached(store, "a")) == content_of(expected)
        assert content_of(await uncached(store, "a", max_bytes=100_000)) == content_of(expected)
