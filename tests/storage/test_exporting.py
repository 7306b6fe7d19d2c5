"""What is exported and imported again is the same: events, slots, config, labels, places and references."""

import json

import pytest

from storage import errors
from storage.events import AssistantMessage, StepStart, TurnStart, UserMessage
from storage.lifecycle import Fork, NewSession
from storage.session import SessionConfig, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from tests.formats.logs import DEEPSEEK, OASST, TAU_BENCH
from tests.storage.spaces import SPACE, assert_whole, bring, contents, exported, load, nodes_of, read_lines

AGAIN = "again"


async def again(store: Store) -> None:
    """Exports each tree of the space and imports it into another, empty one."""
    for root in [node.id for node in await nodes_of(store) if node.parent_id is None]:
        reading = read_lines(await exported(store, root))
        assert reading.warnings == []
        await load(store, reading, AGAIN)


async def assert_same(store: Store) -> None:
    first, second = await contents(store), await contents(store, AGAIN)
    assert list(first) == list(second)
    for id, content in first.items():
        assert second[id] == content, id
    await assert_whole(store)


@pytest.mark.parametrize("names", [DEEPSEEK, (TAU_BENCH,), (OASST,)], ids=["harness", "tau-bench", "oasst"])
async def test_real_logs_are_the_same_after_export_and_import(store: Store, names: tuple[str, ...]) -> None:
    for name in names:
        await bring(store, name)
    await again(store)
    await assert_same(store)


async def test_all_that_a_session_has_is_kept(store: Store) -> None:
    await store.tree.create(
        SPACE,
        NewSession(
            id="a",
            label="A\nlabel",
            workflow_mode="plan",
            metadata='{"z":1.5,"a":18446744073709551615,"n":null}',
            config=SessionConfig(system_prompt="fixed", skills=["one"]),
        ),
    )
    await store.sessions.append(SPACE, "a", [TurnStart(turn_id="t"), UserMessage(content="\ufffd\0\u2028")])
    for name in SlotName:
        await store.sessions.put_slot(SPACE, SlotWrite("a", name, name.value, at_seq=1))
    await store.tree.create(SPACE, NewSession(id="b", parent_id="a", metadata="null", source_session_id="a"))
    await store.tree.fork(SPACE, Fork("a", at_seq=1, id="fork", prompt="go", config=SessionConfig(skills=[])))
    await store.tree.fork(SPACE, Fork("fork", at_seq=0, id="empty", metadata="[]"))
    await store.tree.add_ref(SPACE, "b", "fork")
    await store.sessions.append(SPACE, "fork", [StepStart(step_id="s"), AssistantMessage(content="x", timestamp=-5)])
    await store.sessions.set_status(SPACE, "b", SessionStatus.ARCHIVED)
    await again(store)
    await assert_same(store)


async def test_a_fork_alone_holds_its_whole_visible_log(store: Store) -> None:
    await store.tree.create(SPACE, NewSession(id="a"))
    await store.sessions.append(SPACE, "a", [UserMessage(content=str(number)) for number in range(10)])
    await store.tree.fork(SPACE, Fork("a", at_seq=7, id="f"))
    await store.sessions.append(SPACE, "f", [UserMessage(content="own")])
    reading = read_lines(await exported(store, "f", tree=False))
    assert (await load(store, reading, AGAIN)).warnings == [
        "1 fork became a session of its own that holds the inherited events too",
        "1 session lost its parent, which is not in the file",
    ]
    first, second = await contents(store), await contents(store, AGAIN)
    assert second["f"]["events"] == first["f"]["events"]
    assert len(second["f"]["events"]) == 8


async def test_in_a_tree_a_fork_holds_only_its_own_events(store: Store) -> None:
    await store.tree.create(SPACE, NewSession(id="a"))
    await store.sessions.append(SPACE, "a", [UserMessage(content=str(number)) for number in range(10)])
    await store.tree.fork(SPACE, Fork("a", at_seq=7, id="f"))
    await store.sessions.append(SPACE, "f", [UserMessage(content="own")])
    lines = [json.loads(line) for line in (await exported(store, "a")).splitlines()]
    assert [line.get("seq") for line in lines] == [None, *range(10), None, 7]
    assert (lines[11]["firstSeq"], lines[11]["forkSeq"], lines[11]["sourceSessionId"]) == (7, 7, "a")


async def test_a_source_that_was_moved_below_its_fork_is_no_obstacle(store: Store) -> None:
    await store.tree.create(SPACE, NewSession(id="a"))
    await store.sessions.append(SPACE, "a", [UserMessage(content="one"), UserMessage(content="two")])
    await store.tree.fork(SPACE, Fork("a", at_seq=1, id="f", as_root=True))
    await store.sessions.append(SPACE, "f", [UserMessage(content="own")])
    await store.tree.create(SPACE, NewSession(id="child", parent_id="f", source_session_id="a"))
    await store.tree.move(SPACE, "a", "f")
    await store.tree.fork(SPACE, Fork("f", id="g"))
    await load(store, read_lines(await exported(store, "f")), AGAIN)
    first, second = await contents(store), await contents(store, AGAIN)
    assert {id: content["events"] for id, content in second.items()} == {
        id: content["events"] for id, content in first.items()
    }
    assert {id: content["node"][0] for id, content in second.items()} == {
        id: content["node"][0] for id, content in first.items()
    }


async def test_events_of_a_deleted_source_are_not_taken_from_a_new_session_of_its_id(store: Store) -> None:
    await store.tree.create(SPACE, NewSession(id="top"))
    await store.tree.create(SPACE, NewSession(id="a", parent_id="top"))
    await store.sessions.append(SPACE, "a", [UserMessage(content="old"), UserMessage(content="older")])
    await store.tree.fork(SPACE, Fork("a", id="f", parent_id="top"))
    await store.tree.delete(SPACE, "a")
    await store.tree.create(SPACE, NewSession(id="a", parent_id="top"))
    await store.sessions.append(SPACE, "a", [UserMessage(content="new"), UserMessage(content="newer")])
    await load(store, read_lines(await exported(store, "top")), AGAIN)
    first, second = await contents(store), await contents(store, AGAIN)
    assert second["f"]["events"] == first["f"]["events"]
    assert second["a"]["events"] == first["a"]["events"]


async def test_an_unknown_session_is_refused(store: Store) -> None:
    await store.tree.create("other", NewSession(id="a"))
    for tree in (False, True):
        with pytest.raises(errors.NotFound, match="no session 'a' in space 'space'"):
            await exported(store, "a", tree=tree)


async def test_a_reference_out_of_the_file_is_left_behind_with_a_warning(store: Store) -> None:
    for id in ("a", "b"):
        await store.tree.create(SPACE, NewSession(id=id))
    await store.tree.add_ref(SPACE, "a", "b")
    reading = read_lines(await exported(store, "a"))
    assert (await load(store, reading, AGAIN)).warnings == ["1 reference lost its end, which is not in the file"]
    assert (await contents(store, AGAIN))["a"]["node"] == (None, None, None, ())
