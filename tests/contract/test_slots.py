"""Slots: versioned writes, memory as an outside view, and insights delivered exactly once."""

import asyncio

import pytest

from storage import errors
from storage.events import InsightDelivered, TurnEnd, TurnStart
from storage.session import SessionConfig, SessionStatus, SlotName
from storage.slots import ConsumedInsight, InsightMode, SlotWrite, WrittenSlot
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE, append, create, put, put_insight, session, slots, texts, user, whole_log

SYSTEM_PROMPT, INSIGHT, MEMORY = SlotName
MEBIBYTE = 1024 * 1024


async def consume(
    store: Store, id: str, version: int | None = None, turn_id: str | None = None, key: str | None = None
) -> ConsumedInsight:
    return await store.sessions.consume_insight(SPACE, id, version, turn_id, key)


@pytest.mark.parametrize("name", SlotName)
async def test_versions_count_the_writes(store: Store, name: SlotName) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    assert (await slots(store, "a")).named(name) is None
    for version in (1, 2, 3):
        written = await put(store, "a", name, f"text {version}")
        assert written.slot is not None
        assert (written.slot.content, written.slot.version, written.slot.at_seq) == (f"text {version}", version, 3)
        assert written.slot.updated_at == written.session.updated_at
        assert (await slots(store, "a")).named(name) == written.slot
        assert await session(store, "a") == written.session


async def test_a_write_can_expect_the_version_that_it_replaces(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.Conflict) as refused:
        await put(store, "a", MEMORY, "x", if_version=1)
    assert refused.value.details == {"version": 0}
    await put(store, "a", MEMORY, "one", if_version=0)
    await put(store, "a", MEMORY, "two", if_version=1)
    for wrong in (0, 1, 3):
        with pytest.raises(errors.Conflict) as refused:
            await put(store, "a", MEMORY, "x", if_version=wrong)
        assert refused.value.details == {"version": 2}
    memory = (await slots(store, "a")).memory
    assert memory is not None
    assert (memory.content, memory.version) == ("two", 2)


async def test_one_of_several_writes_that_expect_one_version_wins(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    tries = [put(stores[n % 2], "a", MEMORY, f"text {n}", if_version=0) for n in range(8)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(result, errors.Conflict) for result in results) == 7
    [winner] = [result for result in results if isinstance(result, WrittenSlot)]
    assert (await slots(stores[1], "a")).memory == winner.slot


async def test_concurrent_writes_are_all_counted(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    await asyncio.gather(*(put(stores[n % 2], "a", INSIGHT, str(n), mode=InsightMode.APPEND) for n in range(12)))
    insight = (await slots(stores[0], "a")).insight
    assert insight is not None
    assert insight.version == 12
    assert sorted((insight.content or "").split("\n\n"), key=int) == [str(n) for n in range(12)]


async def test_a_clear_does_not_count_and_the_version_never_restarts(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "one")
    cleared = await store.sessions.clear_insight(SPACE, "a", 1)
    assert cleared.slot is None
    with pytest.raises(errors.Conflict):
        await put(store, "a", INSIGHT, "x", if_version=0)
    again = await put(store, "a", INSIGHT, "two", if_version=1)
    assert again.slot is not None
    assert (again.slot.content, again.slot.version) == ("two", 2)


async def test_a_clear_removes_only_the_version_given(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "one")
    await put_insight(store, "a", "two")
    with pytest.raises(errors.Conflict) as refused:
        await store.sessions.clear_insight(SPACE, "a", 1)
    assert refused.value.details == {"version": 2}
    assert (await consume(store, "a")).insight is not None
    assert (await store.sessions.clear_insight(SPACE, "a", None)).slot is None


async def test_append_joins_insights_with_a_blank_line(store: Store) -> None:
    await create(store, "a")
    for text in ("one", "two"):
        await put_insight(store, "a", text, InsightMode.APPEND)
    joined = (await slots(store, "a")).insight
    assert joined is not None
    assert (joined.content, joined.version) == ("one\n\ntwo", 2)
    await consume(store, "a")
    alone = await put_insight(store, "a", "three", InsightMode.APPEND)
    assert alone.slot is not None
    assert (alone.slot.content, alone.slot.version) == ("three", 3)


async def test_contents_come_back_exactly_but_for_lone_surrogates(store: Store) -> None:
    await create(store, "a")
    text = "\x00 $where {} \r\n\u2028 🌳 \\u0000"
    await put(store, "a", MEMORY, text)
    await put(store, "a", INSIGHT, "a\ud800b")
    await put(store, "a", SYSTEM_PROMPT, "")
    found = await slots(store, "a")
    assert found.memory is not None
    assert found.insight is not None
    assert found.system_prompt is not None
    assert (found.memory.content, found.insight.content, found.system_prompt.content) == (text, "a\ufffdb", "")


async def test_a_slot_has_at_most_one_mebibyte_of_utf8(store: Store) -> None:
    await create(store, "a")
    await put(store, "a", INSIGHT, "ä" * (MEBIBYTE // 2))
    with pytest.raises(errors.PayloadTooLarge, match="1048576"):
        await put(store, "a", INSIGHT, "ä" * (MEBIBYTE // 2) + "x")
    with pytest.raises(errors.PayloadTooLarge, match="1048576"):
        await put_insight(store, "a", "x", InsightMode.APPEND)
    insight = (await slots(store, "a")).insight
    assert insight is not None
    assert insight.version == 1
    taken = await consume(store, "a")
    assert taken.insight is not None
    assert taken.insight.content == insight.content


async def test_memory_records_the_head_that_it_reflects(store: Store) -> None:
    await create(store, "a")
    assert not (await session(store, "a")).behind
    await append(store, "a", *texts(4))
    assert (await session(store, "a")).behind
    written = await put(store, "a", MEMORY, "of three", at_seq=3)
    assert written.slot is not None
    assert written.slot.at_seq == 3
    assert written.session.behind
    assert not (await put(store, "a", MEMORY, "of four", at_seq=4)).session.behind
    await put(store, "a", SYSTEM_PROMPT, "no event")
    assert not (await session(store, "a")).behind
    await append(store, "a", user("one more"))
    assert (await session(store, "a")).behind
    assert not (await put(store, "a", MEMORY, "of all")).session.behind


@pytest.mark.parametrize("at_seq", [-1, 3])
async def test_memory_cannot_reflect_events_beyond_the_head(store: Store, at_seq: int) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    with pytest.raises(errors.BadInput, match="atSeq"):
        await put(store, "a", MEMORY, "x", at_seq=at_seq)
    assert (await slots(store, "a")).memory is None


async def test_a_slot_write_does_not_move_the_head(store: Store) -> None:
    await create(store, "a")
    await put(store, "a", MEMORY, "x")
    await store.sessions.update(SPACE, "a", {"label": "renamed"})
    assert (await append(store, "a", user("x"), expected_head=0)).head == 1


async def test_many_slots_are_written_together(store: Store) -> None:
    ids = [f"s{n}" for n in range(60)]
    await asyncio.gather(*(create(store, id) for id in ids))
    writes = [SlotWrite(id, INSIGHT, f"for {id}", InsightMode.APPEND) for id in [*ids, "s7"]]
    written = await store.sessions.put_slots(SPACE, writes)
    assert [isinstance(result, WrittenSlot) and result.session.id for result in written] == [*ids, "s7"]
    found = await store.sessions.slots(SPACE, ids)
    assert all(found[id].insight.content == f"for {id}" for id in ids if id != "s7")  # type: ignore[union-attr]
    last = written[-1]
    assert isinstance(last, WrittenSlot)
    assert last.slot is not None
    assert (found["s7"].insight, last.slot.content) == (last.slot, "for s7\n\nfor s7")
    assert await store.sessions.put_slots(SPACE, []) == []


async def test_an_atomic_write_is_refused_whole_and_names_every_bad_id(store: Store) -> None:
    for id in ("good", "archived", "stale"):
        await create(store, id)
    before = await session(store, "good")
    await store.sessions.set_status(SPACE, "archived", SessionStatus.ARCHIVED)
    writes = [
        SlotWrite("good", INSIGHT, "x"),
        SlotWrite("unknown-1", INSIGHT, "x"),
        SlotWrite("archived", INSIGHT, "x"),
        SlotWrite("stale", INSIGHT, "x", if_version=4),
        SlotWrite("unknown-2", INSIGHT, "x"),
    ]
    with pytest.raises(errors.NotFound) as refused:
        await store.sessions.put_slots(SPACE, writes)
    rows = refused.value.details["refusals"]
    assert isinstance(rows, list)
    assert [(row["sessionId"], row["code"]) for row in rows] == [
        ("unknown-1", "NOT_FOUND"),
        ("archived", "ARCHIVED"),
        ("stale", "CONFLICT"),
        ("unknown-2", "NOT_FOUND"),
    ]
    for id in ("unknown-1", "archived", "stale", "unknown-2"):
        assert id in refused.value.message
    assert (await slots(store, "good")).insight is None
    assert await session(store, "good") == before


async def test_many_slots_can_be_written_independently(store: Store) -> None:
    for id in ("a", "b"):
        await create(store, id)
    writes = [
        SlotWrite("a", MEMORY, "one"),
        SlotWrite("unknown", MEMORY, "x"),
        SlotWrite("a", MEMORY, "two", if_version=1),
        SlotWrite("b", MEMORY, "x", if_version=7),
    ]
    first, unknown, second, stale = await store.sessions.put_slots(SPACE, writes, atomic=False)
    assert isinstance(unknown, errors.NotFound)
    assert isinstance(stale, errors.Conflict)
    assert isinstance(first, WrittenSlot)
    assert isinstance(second, WrittenSlot)
    assert second.slot == (await slots(store, "a")).memory
    assert (second.slot and second.slot.version, (await slots(store, "b")).memory) == (2, None)


async def test_at_most_1000_slots_are_written_together(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.PayloadTooLarge, match="1000"):
        await store.sessions.put_slots(SPACE, [SlotWrite("a", MEMORY, "x")] * 1_001)
    assert (await slots(store, "a")).memory is None


async def test_consuming_clears_the_insight_and_records_it(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t1"))
    put_before = await put_insight(store, "a", "look at \x00 this")
    taken = await consume(store, "a", version=1)
    assert taken.insight == put_before.slot
    assert (taken.session.head, taken.session.behind) == (2, True)
    assert await session(store, "a") == taken.session
    event = (await whole_log(store, "a"))[1]
    assert isinstance(event, InsightDelivered)
    assert (event.content, event.version, event.turn_id, event.seq) == ("look at \x00 this", 1, "t1", 1)
    empty = await consume(store, "a")
    assert (empty.insight, empty.commit, empty.session) == (None, None, taken.session)


async def test_consuming_an_empty_inbox_writes_nothing(store: Store) -> None:
    made = await create(store, "a")
    taken = await consume(store, "a", key="key")
    assert (taken.insight, taken.commit) == (None, None)
    assert await session(store, "a") == made


async def test_the_turn_of_a_delivery_must_be_open(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t1"), TurnEnd(turn_id="t1"))
    await append(store, "a", TurnStart(turn_id="t2"), TurnStart(turn_id="t3"))
    await put_insight(store, "a", "insight")
    with pytest.raises(errors.BadInput, match="turnId"):
        await consume(store, "a", turn_id="never")
    with pytest.raises(errors.TurnEnded, match="turnId"):
        await consume(store, "a", turn_id="t1")
    assert (await session(store, "a")).head == 4
    await consume(store, "a", turn_id="t3")
    assert (await whole_log(store, "a"))[4].turn_id == "t3"


async def test_only_the_current_version_is_consumed(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "one")
    await put_insight(store, "a", "two")
    for wrong in (0, 1, 3):
        with pytest.raises(errors.Conflict) as refused:
            await consume(store, "a", version=wrong)
        assert refused.value.details == {"version": 2}
    taken = await consume(store, "a", version=2)
    assert taken.insight is not None
    assert taken.insight.content == "two"


async def test_a_retry_with_the_same_key_gets_the_same_insight(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "one")
    first = await consume(store, "a", key="key")
    await put_insight(store, "a", "two")
    for _ in range(2):
        again = await consume(store, "a", key="key")
        assert (again.insight, again.commit) == (first.insight, first.commit)
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    assert (await consume(store, "a", key="key")).commit == first.commit
    with pytest.raises(errors.IdempotencyMismatch):
        await consume(store, "a", version=1, key="key")
    pending = (await slots(store, "a")).insight
    assert pending is not None
    assert (pending.content, pending.version) == ("two", 2)
    assert (await session(store, "a")).head == 1


async def test_a_key_used_by_an_append_is_refused_for_a_delivery(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"), key="key")
    await put_insight(store, "a", "one")
    with pytest.raises(errors.IdempotencyMismatch):
        await consume(store, "a", key="key")
    assert (await session(store, "a")).head == 1


async def test_one_of_several_consumers_gets_the_insight(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    for round in range(5):
        await put_insight(stores[0], "a", f"insight {round}")
        taken = await asyncio.gather(*(consume(stores[n % 2], "a", key=f"{round}/{n}") for n in range(6)))
        assert sum(result.insight is not None for result in taken) == 1
    delivered = [event for event in await whole_log(stores[0], "a") if isinstance(event, InsightDelivered)]
    assert [(event.content, event.version) for event in delivered] == [
        (f"insight {round}", round + 1) for round in range(5)
    ]


async def test_no_insight_is_lost_or_delivered_twice_while_others_put(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    puts = 30
    done = asyncio.Event()

    async def put_all() -> None:
        for n in range(puts):
            await put_insight(stores[0], "a", f"insight-{n}", InsightMode.APPEND)
        done.set()

    async def consume_all() -> list[str]:
        taken: list[str] = []
        while True:
            last = done.is_set()
            result = await consume(stores[1], "a")
            if result.insight is not None:
                taken += (result.insight.content or "").split("\n\n")
            elif last:
                return taken

    _, taken = await asyncio.gather(put_all(), consume_all())
    assert taken == [f"insight-{n}" for n in range(puts)]
    delivered = [event.content for event in await whole_log(stores[0], "a") if isinstance(event, InsightDelivered)]
    assert "\n\n".join(delivered).split("\n\n") == taken


async def test_an_archived_session_refuses_slot_writes(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "pending")
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    before = await slots(store, "a")
    for refused in (
        put(store, "a", SYSTEM_PROMPT, "x"),
        put(store, "a", MEMORY, "x"),
        put_insight(store, "a", "x"),
        store.sessions.clear_insight(SPACE, "a", None),
        consume(store, "a"),
    ):
        with pytest.raises(errors.Archived):
            await refused
    assert await slots(store, "a") == before
    assert (await session(store, "a")).head == 0


async def test_the_slot_and_not_the_config_has_the_system_prompt(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="at creation"))
    await put(store, "a", SYSTEM_PROMPT, "now")
    found = (await slots(store, "a")).system_prompt
    assert found is not None
    assert (found.content, found.version) == ("now", 2)
    node = await store.tree.node(SPACE, "a")
    assert node is not None
    assert node.document.config == SessionConfig(system_prompt="at creation")
