"""Slot changes, live: the newest version of each slot that changes, none twice."""

import pytest

from storage import errors
from storage.live.slot_changes import SlotChange
from storage.session import SessionConfig, SlotName
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.live import all_slots
from tests.contract.shorthand import (
    SPACE,
    append,
    create,
    put,
    put_insight,
    rest,
    take,
    user,
)

SYSTEM_PROMPT, INSIGHT, MEMORY = SlotName


async def test_the_newest_version_of_each_slot_is_sent_and_none_twice(open_store: OpenStore) -> None:
    store, other = await open_store(), await open_store()
    await create(store, "a")
    await put(store, "a", MEMORY, "known")
    stream = await all_slots(store)
    for n in range(4):
        await put((store, other)[n % 2], "a", INSIGHT, f"insight {n}")
    newest = await put(store, "a", MEMORY, "memory")
    seen: list[SlotChange] = []
    while len(seen) < 2 or seen[-1].slot != newest.slot:
        seen += await take(stream, 1)
        assert len(seen) <= 6
    versions = [(change.name, change.slot.version) for change in seen if change.slot is not None]
    assert versions[-1] == (MEMORY, 2)
    assert [version for name, version in versions if name is INSIGHT][-1] == 4
    assert len(set(versions)) == len(versions) == len(seen)
    await append(store, "a", user("no slot"))
    await store.sessions.update(SPACE, "a", {"label": "no slot"})
    mark = await put(store, "a", SYSTEM_PROMPT, "mark")
    assert await take(stream, 1) == [SlotChange("a", SYSTEM_PROMPT, mark.slot)]
    await stream.aclose()


async def test_what_was_written_before_is_not_sent(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="known"))
    await put_insight(store, "a", "known")
    stream = await all_slots(store, "a")
    written = await put(store, "a", MEMORY, "new")
    assert await take(stream, 1) == [SlotChange("a", MEMORY, written.slot)]
    await stream.aclose()


async def test_an_insight_that_is_cleared_or_consumed_is_sent_as_none(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "one")
    stream = await all_slots(store, "a")
    await store.sessions.clear_insight(SPACE, "a", None)
    assert await take(stream, 1) == [SlotChange("a", INSIGHT, None)]
    second = await put_insight(store, "a", "two")
    assert await take(stream, 1) == [SlotChange("a", INSIGHT, second.slot)]
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    assert await take(stream, 1) == [SlotChange("a", INSIGHT, None)]
    await stream.aclose()


async def test_slots_of_the_given_names_in_a_subtree_are_sent(store: Store) -> None:
    for id, parent in (("root", None), ("a", "root"), ("x", None)):
        await create(store, id, parent)
    stream = await all_slots(store, root_id="root", names=(MEMORY,))
    await put(store, "x", MEMORY, "outside")
    await put(store, "a", INSIGHT, "another name")
    first = await put(store, "a", MEMORY, "inside")
    assert await take(stream, 1) == [SlotChange("a", MEMORY, first.slot)]
    await store.tree.move(SPACE, "x", "a")
    second = await put(store, "x", MEMORY, "inside now")
    assert await take(stream, 1) == [SlotChange("x", MEMORY, second.slot)]
    await store.tree.move(SPACE, "a", None)
    await put(store, "a", MEMORY, "outside now")
    third = await put(store, "root", MEMORY, "mark")
    assert await take(stream, 1) == [SlotChange("root", MEMORY, third.slot)]
    await stream.aclose()


async def test_the_prompt_of_a_new_session_is_sent(store: Store) -> None:
    await create(store, "a")
    stream = await all_slots(store)
    await create(store, "b", config=SessionConfig(system_prompt="be brief"))
    [change] = await take(stream, 1)
    assert (change.session_id, change.name, change.slot and change.slot.content) == ("b", SYSTEM_PROMPT, "be brief")
    await stream.aclose()


async def test_the_slots_of_a_session_that_reuses_an_id_are_sent(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="old"))
    stream = await all_slots(store)
    await store.tree.delete(SPACE, "a")
    await create(store, "a", config=SessionConfig(system_prompt="new"))
    await create(store, "b", config=SessionConfig(system_prompt="mark"))
    changes = {change.session_id: change.slot and change.slot.content for change in await take(stream, 2)}
    assert changes == {"a": "new", "b": "mark"}
    await stream.aclose()


async def test_deleting_the_session_or_the_root_completes_the_reader(store: Store) -> None:
    await create(store, "root")
    await create(store, "a", "root")
    of_session, of_root = await all_slots(store, "a"), await all_slots(store, root_id="root")
    await store.tree.delete(SPACE, "a")
    assert await rest(of_session) == []
    await store.tree.delete(SPACE, "root")
    assert await rest(of_root) == []


async def test_bad_arguments_are_refused_at_once(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.NotFound, match=r"sessionId.*nobody"):
        await all_slots(store, session_id="nobody")
    with pytest.raises(errors.NotFound, match=r"rootId.*nobody"):
        await all_slots(store, root_id="nobody")
    with pytest.raises(errors.BadInput, match="sessionId and rootId"):
        await all_slots(store, "a", "a")
