"""Parents, sources and refs that other files or later steps hold."""

import pytest

from storage.events import (
    UserMessage,
)
from storage.store import Store
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, Step
from storage.transfer.importing import MissingSessions
from tests.storage.spaces import SPACE, assert_whole, bring, nodes_of
from tests.storage.transfer.imports import import_steps, lines_of, texts, user_messages


async def test_a_session_waits_for_its_parent_in_another_file_but_not_for_ever(store: Store) -> None:
    child: list[Step] = [
        ForeignSession("c", None, id="c", parent_id="p"),
        *(ForeignEvent("c", event) for event in user_messages("one")),
    ]
    with pytest.raises(MissingSessions):
        await import_steps(store, child, defer=True)
    assert await nodes_of(store) == []
    alone = await import_steps(store, child)
    assert alone.warnings == ["1 session lost its parent, which is not in this space"]
    await import_steps(store, [ForeignSession("p", None, id="p")], space="other")
    assert (await import_steps(store, child, defer=True, space="other")).warnings == []
    nodes = {node.id: node for node in await nodes_of(store, "other")}
    assert nodes["c"].parent_id == "p"


@pytest.mark.parametrize(("at_most", "shared"), [(None, 3), (2, 2), (9, 3)])
async def test_a_log_that_repeats_another_becomes_a_fork_where_they_differ(
    store: Store, at_most: int | None, shared: int
) -> None:
    await bring(store, "a", lines_of("a", "one", "two", "three", "four"))
    session = ForeignSession("b", None, id="b", repeats="a", repeats_at_most=at_most)
    steps: list[Step] = [session, *(ForeignEvent("b", event) for event in user_messages("one", "two", "three", "vier"))]
    done = await import_steps(store, steps)
    assert (done.sessions, done.forks, done.events) == (1, 1, 4 - shared)
    node = await store.tree.node(SPACE, "b")
    assert node is not None
    assert (node.document.source_session_id, node.document.fork_seq) == ("a", shared)
    assert await texts(store, "b") == ["one", "two", "three", "vier"]
    assert (await import_steps(store, steps)).events == 0
    await assert_whole(store)


async def test_a_log_that_is_a_prefix_of_another_becomes_a_fork(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    session = ForeignSession("b", "B", id="b", repeats="a")
    done = await import_steps(store, [session, *(ForeignEvent("b", event) for event in user_messages("one"))])
    assert (done.sessions, done.forks, done.events) == (1, 1, 0)
    assert await texts(store, "b") == ["one"]


async def test_a_log_waits_until_the_one_that_it_repeats_is_long_enough(store: Store) -> None:
    await import_steps(
        store, [ForeignSession("p", None, id="p"), *(ForeignEvent("p", event) for event in user_messages("one"))]
    )
    child: list[Step] = [ForeignSession("c", None, id="c", repeats="p", repeats_at_most=2)]
    child += [ForeignEvent("c", event) for event in user_messages("one", "two", "three")]
    with pytest.raises(MissingSessions):
        await import_steps(store, child, defer=True)
    await import_steps(
        store, [ForeignSession("p", None, id="p"), *(ForeignEvent("p", event) for event in user_messages("one", "two"))]
    )
    await import_steps(store, child, defer=True)
    node = await store.tree.node(SPACE, "c")
    assert node is not None
    assert (node.document.source_session_id, node.document.fork_seq) == ("p", 2)


async def test_a_parent_may_follow_its_child(store: Store) -> None:
    child = ForeignSession("c", None, id="c", parent="p", refs=("r", "p"))
    done = await import_steps(store, [child, ForeignSession("p", None, id="p"), ForeignSession("r", None, id="r")])
    assert done.warnings == ["1 reference refused by the forest and left out"]
    nodes = {node.id: node for node in await nodes_of(store)}
    assert (nodes["c"].parent_id, nodes["c"].document.refs) == ("p", ("r",))
    lost = await import_steps(store, [ForeignSession("d", None, id="d", parent="none", refs=("none",))])
    assert lost.warnings == [
        "1 session lost its parent, which is not in the file",
        "1 reference lost its target, which is not in the file",
    ]


async def test_sessions_nested_too_deeply_are_placed_beside_each_other(store: Store) -> None:
    steps: list[Step] = [ForeignSession("0", None, id="0")]
    steps += [ForeignSession(f"{n}", None, id=f"{n}", parent=f"{n - 1}") for n in range(1, 260)]
    steps.append(ForeignEvent("259", UserMessage(content="last")))
    done = await import_steps(store, steps)
    assert (done.refused, done.warnings) == (
        {},
        ["3 sessions placed beside the parent, at the greatest depth of the forest"],
    )
    nodes = {node.id: node.parent_id for node in await nodes_of(store)}
    assert [nodes[id] for id in ("256", "257", "258", "259")] == ["255", "255", "255", "255"]
    assert await texts(store, "259") == ["last"]
    assert (await import_steps(store, steps)).known == 260
    await assert_whole(store)


async def test_a_child_imported_before_its_parent_is_moved_under_it(store: Store) -> None:
    child: list[Step] = [ForeignSession("c", None, id="c", parent_id="p")]
    await import_steps(store, child)
    await import_steps(store, [ForeignSession("p", None, id="p")])
    assert (await import_steps(store, child)).warnings == []
    assert {node.id: node.parent_id for node in await nodes_of(store)} == {"p": None, "c": "p"}
    await store.tree.move(SPACE, "c", None)
    assert (await import_steps(store, child)).warnings == []
    assert {node.id: node.parent_id for node in await nodes_of(store)} == {"p": None, "c": None}


async def test_a_ref_that_was_removed_here_is_not_added_again(store: Store) -> None:
    whole = lines_of("a", "one", refs=["b"]) + lines_of("b", "eins")
    await bring(store, "a", whole)
    await store.tree.remove_ref(SPACE, "a", "b")
    await bring(store, "a", whole)
    assert {node.id: node.document.refs for node in await nodes_of(store)} == {"a": (), "b": ()}
