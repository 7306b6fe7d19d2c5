"""Exporting and importing again gives the same session: all of it in JSONL, the texts in other formats."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
import yaml

from storage import errors
from storage.events import AssistantMessage, CardEvent, StepStart, TurnStart, UserMessage
from storage.lifecycle import Fork, NewSession
from storage.session import SessionConfig, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from storage.transfer.export import ExportFormat, export
from tests.storage.large_logs import suited
from tests.storage.spaces import SPACE, assert_whole, bring, contents, exported, load, nodes_of, read_lines
from tests.storage.transfer.formats.logs import DEEPSEEK, OASST, TAU_BENCH

AGAIN = "again"
YAML, JSONL, OPENAI = ExportFormat.YAML, ExportFormat.JSONL, ExportFormat.OPENAI


async def again(store: Store) -> None:
    """Exports each tree of the space and imports it into an empty space."""
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
        await bring(store, name, suited(store, name))
    await again(store)
    await assert_same(store)


async def test_jsonl_keeps_everything_of_a_session(store: Store) -> None:
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


async def test_a_source_moved_below_its_fork_is_exported(store: Store) -> None:
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


async def test_a_fork_keeps_events_of_a_deleted_source_whose_id_is_used_again(store: Store) -> None:
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
        for format in ExportFormat:
            with pytest.raises(errors.NotFound, match="no session 'a' in space 'space'"):
                await exported(store, "a", format=format, tree=tree)


async def test_a_ref_to_a_session_outside_the_file_costs_a_warning(store: Store) -> None:
    for id in ("a", "b"):
        await store.tree.create(SPACE, NewSession(id=id))
    await store.tree.add_ref(SPACE, "a", "b")
    reading = read_lines(await exported(store, "a"))
    assert (await load(store, reading, AGAIN)).warnings == ["1 reference lost its target, which is not in the file"]
    assert (await contents(store, AGAIN))["a"]["node"] == (None, None, None, ())


async def family(store: Store) -> None:
    """A tree of four: a session, its empty child, a fork of the session below that, and a fork equal to that fork."""
    await store.tree.create(SPACE, NewSession(id="a", label="--- a\n---"))
    events = [UserMessage(content="hello\n---\n...\nthere\n"), AssistantMessage(content="--- \u2028\0\ufffd\ufeff x")]
    await store.sessions.append(SPACE, "a", [*events, CardEvent(card_type="Table", payload="type: Table\n---\nx: 1\n")])
    await store.tree.create(SPACE, NewSession(id="b", parent_id="a"))
    await store.tree.fork(SPACE, Fork("a", at_seq=1, id="c", parent_id="b"))
    await store.sessions.append(SPACE, "c", [AssistantMessage(content="own")])
    await store.tree.fork(SPACE, Fork("c", id="d"))


async def documents(store: Store, format: ExportFormat, ids: Iterable[str], space: str = SPACE) -> list[Any]:
    """The texts and cards, or the messages, of each session when exported by itself."""
    texts = [await exported(store, id, space, format, tree=False) for id in ids]
    return [yaml.safe_load(text)["entries"] if format is YAML else json.loads(text) for text in texts]


@pytest.mark.parametrize("format", [YAML, OPENAI])
async def test_a_tree_is_imported_with_as_many_sessions_and_the_same_texts(store: Store, format: ExportFormat) -> None:
    await family(store)
    stream = await exported(store, "a", format=format)
    done = await bring(store, "tree", stream.encode(), space=AGAIN)
    assert (done.sessions, done.forks, done.warnings) == (4, 0, [])
    before = await documents(store, format, ["a", "b", "c", "d"])
    assert await documents(store, format, done.ids.values(), AGAIN) == before
    repeated = await bring(store, "tree", stream.encode(), space=AGAIN)
    assert (repeated.sessions, repeated.known, repeated.events) == (0, 4, 0)
    await assert_whole(store)


@pytest.mark.parametrize("format", [YAML, OPENAI])
async def test_real_logs_are_imported_with_the_same_texts(store: Store, format: ExportFormat) -> None:
    for name in DEEPSEEK:
        await bring(store, name)
    nodes = await nodes_of(store)
    roots = [node.id for node in nodes if node.parent_id is None]
    streams = [await exported(store, root, format=format) for root in roots]
    done = await bring(store, "trees", "".join(streams).encode(), space=AGAIN)
    assert done.sessions == len(nodes)
    before = await documents(store, format, [node.id for node in nodes])
    after = await documents(store, format, done.ids.values(), AGAIN)
    assert sorted(before, key=str) == sorted(after, key=str)


async def test_yaml_of_a_tree_is_a_stream_of_documents(store: Store) -> None:
    await family(store)
    stream = await exported(store, "a", format=YAML)
    assert [read["sessionId"] for read in yaml.safe_load_all(stream)] == ["a", "b", "c", "d"]
    assert stream.startswith("---\n")
    alone = await exported(store, "a", format=YAML, tree=False)
    assert stream.startswith(f"---\n{alone}---\n")


async def test_openai_of_a_tree_is_a_line_for_each_session(store: Store) -> None:
    await family(store)
    lines = [json.loads(line) for line in (await exported(store, "a", format=OPENAI)).split("\n")[:-1]]
    assert [(line["sessionId"], line["parentId"]) for line in lines] == [
        ("a", None),
        ("b", "a"),
        ("c", "b"),
        ("d", "c"),
    ]
    assert lines[0]["label"] == "--- a\n---"
    assert [line["messages"] for line in lines] == await documents(store, OPENAI, ["a", "b", "c", "d"])


@pytest.mark.parametrize("format", ExportFormat)
async def test_each_session_is_written_before_the_next_one_is_read(store: Store, format: ExportFormat) -> None:
    """So a session that is deleted meanwhile is missed only when its turn comes."""
    for id, parent in (("a", None), ("b", "a")):
        await store.tree.create(SPACE, NewSession(id=id, parent_id=parent))
        await store.sessions.append(SPACE, id, [UserMessage(content=f"text of {id}")])
    written = ""
    with pytest.raises(errors.NotFound, match="session b was deleted while it was exported"):
        async for piece in export(store, SPACE, "a", format, tree=True):
            written += piece
            if "text of a" in written and await store.sessions.get(SPACE, "b") is not None:
                await store.tree.delete(SPACE, "b")
    assert "text of b" not in written


@pytest.mark.parametrize("format", ExportFormat)
async def test_a_new_session_with_the_id_of_a_deleted_one_is_not_exported(store: Store, format: ExportFormat) -> None:
    for id, parent in (("a", None), ("b", "a")):
        await store.tree.create(SPACE, NewSession(id=id, parent_id=parent))
        await store.sessions.append(SPACE, id, [UserMessage(content="old")])
    pieces = export(store, SPACE, "a", format, tree=True)
    await anext(pieces)
    await store.tree.delete(SPACE, "b")
    await store.tree.create(SPACE, NewSession(id="b", parent_id="a"))
    await store.sessions.append(SPACE, "b", [UserMessage(content="new")])
    with pytest.raises(errors.NotFound, match="session b was deleted"):
        assert "new" not in "".join([piece async for piece in pieces])
