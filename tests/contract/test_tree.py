"""The forest: positions, moves and references that no interleaving can corrupt."""

import asyncio

import pytest

from storage import errors
from storage.database import Transaction
from storage.events import TurnEnd, TurnStart
from storage.lifecycle import NewSession
from storage.session import SessionConfig, SessionFilter, SessionStatus
from storage.session_tree import Forest
from storage.store import Store, UnitOfWork
from storage.topology import MAX_DEPTH
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE, append, create, forest, fork, ids, node, session, user

ACTIVE, ARCHIVED = SessionStatus


async def plant(store: Store, *paths: str) -> None:
    """Creates sessions by path: `a/b` creates b under a."""
    for path in paths:
        above, _, id = path.rpartition("/")
        await create(store, id, above.rpartition("/")[2] or None)


def drawn(found: Forest) -> list[str]:
    """The path of each node of a forest, in order."""
    return ["/".join([*reversed(node.document.ancestors), node.id]) for node in found.nodes]


async def refs_of(store: Store) -> set[tuple[str, str]]:
    return set((await forest(store)).refs)


async def check_forest(store: Store) -> None:
    """Checks that positions, counters and references agree with each other."""
    found = await forest(store)
    by_id = {node.id: node for node in found.nodes}
    assert len(by_id) == await store.sessions.count(SPACE, SessionFilter())
    for document in (shown.document for shown in found.nodes):
        parent = by_id[document.parent_id].document if document.parent_id is not None else None
        assert document.ancestors == ((parent.id, *parent.ancestors) if parent else ())
        children = [child.document for child in found.nodes if child.parent_id == document.id]
        assert document.child_count == len(children)
        assert len({child.index for child in children}) == len(children)
        assert all(child.index < document.next_index for child in children)
        for target in document.refs:
            assert target in by_id
            assert document.id not in by_id[target].document.ancestors
            assert target not in document.ancestors
    assert found.roots == [node.id for node in found.nodes if node.parent_id is None]


async def test_an_empty_space_has_an_empty_forest(store: Store) -> None:
    assert await store.tree.roots(SPACE) == []
    assert await forest(store) == Forest([], [], [])
    assert await store.tree.forest(SPACE, "unknown") is None
    assert await store.tree.node(SPACE, "unknown") is None


async def test_a_session_without_a_parent_is_a_root(store: Store) -> None:
    await create(store, "a")
    found = await node(store, "a")
    assert (found.parent_id, found.depth, found.session.label) == (None, 0, "Root")
    document = found.document
    assert (document.ancestors, document.refs, document.child_count, document.index) == ((), (), 0, 0)
    assert (document.source_session_id, document.fork_seq, document.config) == (None, None, None)
    assert found.session == await session(store, "a")


async def test_an_unknown_parent_is_not_found_and_nothing_is_created(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.NotFound, match=r"parentId.*nobody"):
        await create(store, "b", "nobody")
    assert await ids(store) == {"a"}
    assert (await create(store, "c")).id == "c"
    assert (await node(store, "c")).document.index == 1


async def test_ancestors_are_nearest_first(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "a/b/c/d")
    found = await node(store, "d")
    assert (found.document.ancestors, found.depth, found.parent_id) == (("c", "b", "a"), 3, "c")


@pytest.mark.parametrize("parent", ["p", None])
async def test_eight_concurrent_creations_get_the_indexes_0_to_7(open_store: OpenStore, parent: str | None) -> None:
    stores = [await open_store(), await open_store()]
    if parent is not None:
        await create(stores[0], parent)
    made = await asyncio.gather(*(create(stores[n % 2], None, parent) for n in range(8)))
    nodes = await stores[0].tree.nodes(SPACE, [meta.id for meta in made])
    assert sorted(node.document.index for node in nodes.values()) == list(range(8))
    assert {node.parent_id for node in nodes.values()} == {parent}
    if parent is not None:
        assert (await node(stores[0], parent)).document.child_count == 8
        assert len((await stores[1].tree.children(SPACE, [parent]))[parent]) == 8


async def test_an_index_is_never_reused(store: Store) -> None:
    await plant(store, "p", "p/a", "p/b", "p/c", "q")
    await store.tree.delete(SPACE, "c")
    await store.tree.move(SPACE, "b", "q")
    await plant(store, "p/d")
    assert (await node(store, "d")).document.index == 3
    await store.tree.move(SPACE, "b", "p")
    assert (await node(store, "b")).document.index == 4
    assert [child.id for child in (await store.tree.children(SPACE, ["p"]))["p"]] == ["a", "d", "b"]
    await store.tree.delete(SPACE, "q")
    await store.tree.move(SPACE, "a", None)
    assert (await node(store, "a")).document.index == 2


async def test_children_are_listed_by_parent_and_index(store: Store) -> None:
    await plant(store, "p", "q", "p/z", "q/x", "p/y", "p/a")
    found = await store.tree.children(SPACE, ["p", "q", "a", "unknown"])
    assert {parent: [child.id for child in children] for parent, children in found.items()} == {
        "p": ["z", "y", "a"],
        "q": ["x"],
        "a": [],
        "unknown": [],
    }


async def test_a_node_shows_its_sessions_state(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), user("x"), TurnEnd(turn_id="t"))
    await store.sessions.update(SPACE, "a", {"label": "name"})
    found = await node(store, "a")
    assert (found.session.head, found.session.turn_count, found.session.label) == (3, 1, "name")
    assert found.updated_at == max(found.document.updated_at, found.session.updated_at)


async def test_neither_appends_nor_slots_touch_the_node(store: Store) -> None:
    await create(store, "a")
    before = (await node(store, "a")).document
    await append(store, "a", user("x"))
    await store.sessions.update(SPACE, "a", {"label": "name"})
    await store.sessions.set_status(SPACE, "a", ARCHIVED)
    assert (await node(store, "a")).document == before


async def test_neither_moves_nor_refs_touch_the_session(store: Store) -> None:
    await plant(store, "a", "b", "c")
    before = await session(store, "a")
    await store.tree.move(SPACE, "a", "b")
    await store.tree.add_ref(SPACE, "a", "c")
    await store.tree.put_config(SPACE, "a", SessionConfig())
    await create(store, None, "a")
    assert await session(store, "a") == before


async def test_archiving_touches_no_child(store: Store) -> None:
    await plant(store, "a", "a/b")
    await store.sessions.set_status(SPACE, "a", ARCHIVED)
    assert (await session(store, "b")).status is ACTIVE
    await append(store, "b", user("x"))
    await plant(store, "a/c", "r")
    await store.tree.move(SPACE, "a", "r")
    await store.tree.move(SPACE, "r", None)
    assert drawn(await forest(store)) == ["r", "r/a", "r/a/b", "r/a/c"]


async def test_a_move_includes_the_whole_subtree(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "a/b/c/d", "a/e", "x", "x/y")
    await store.tree.move(SPACE, "b", "y")
    assert drawn(await forest(store)) == ["a", "a/e", "x", "x/y", "x/y/b", "x/y/b/c", "x/y/b/c/d"]
    await store.tree.move(SPACE, "c", None)
    assert drawn(await forest(store)) == ["a", "a/e", "x", "x/y", "x/y/b", "c", "c/d"]
    await store.tree.move(SPACE, "x", "d")
    assert drawn(await forest(store)) == ["a", "a/e", "c", "c/d", "c/d/x", "c/d/x/y", "c/d/x/y/b"]
    await check_forest(store)
    assert await ids(store, under="d") == {"d", "x", "y", "b"}


async def test_a_move_up_to_a_grandparent_and_down_again(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "a/b/c/d")
    await store.tree.move(SPACE, "c", "a")
    assert drawn(await forest(store)) == ["a", "a/b", "a/c", "a/c/d"]
    await store.tree.move(SPACE, "c", "b")
    assert drawn(await forest(store)) == ["a", "a/b", "a/b/c", "a/b/c/d"]
    await check_forest(store)


@pytest.mark.parametrize(("id", "parent"), [("b", "a"), ("a", None)])
async def test_a_move_to_the_same_parent_changes_nothing(store: Store, id: str, parent: str | None) -> None:
    await plant(store, "a", "a/b", "a/c")
    before = await forest(store)
    await store.tree.move(SPACE, id, parent)
    assert await forest(store) == before


async def test_a_move_under_itself_or_a_descendant_is_a_cycle(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c")
    before = await forest(store)
    for parent in ("a", "b", "c"):
        with pytest.raises(errors.Cycle):
            await store.tree.move(SPACE, "a", parent)
    assert await forest(store) == before


async def test_a_move_of_or_to_an_unknown_node_is_not_found(store: Store) -> None:
    await plant(store, "a", "b")
    with pytest.raises(errors.NotFound, match=r"id.*nobody"):
        await store.tree.move(SPACE, "nobody", "a")
    with pytest.raises(errors.NotFound, match=r"parentId.*nobody"):
        await store.tree.move(SPACE, "a", "nobody")


async def test_two_racing_moves_make_no_cycle(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await plant(stores[0], "a", "b", "a/a1", "b/b1")
    for _ in range(8):
        results = await asyncio.gather(
            stores[0].tree.move(SPACE, "a", "b1"), stores[1].tree.move(SPACE, "b", "a1"), return_exceptions=True
        )
        assert [type(result) for result in results if isinstance(result, Exception)] == [errors.Cycle]
        await check_forest(stores[0])
        for id in ("a", "b"):
            await stores[0].tree.move(SPACE, id, None)


async def test_many_racing_moves_leave_a_forest(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    names = ["a", "b", "c", "d"]
    await plant(stores[0], *names)
    for round in range(4):
        moves = [
            stores[n % 2].tree.move(SPACE, id, names[(n + shift + round) % 4])
            for n, id in enumerate(names)
            for shift in (1, 2)
        ]
        results = await asyncio.gather(*moves, return_exceptions=True)
        assert all(isinstance(result, errors.Cycle) for result in results if isinstance(result, Exception))
        await check_forest(stores[1])


async def test_the_largest_depth_is_256(store: Store) -> None:
    async def chain(unit: UnitOfWork) -> None:
        for depth in range(MAX_DEPTH + 1):
            await unit.tree.create(SPACE, NewSession(id=f"n{depth}", parent_id=f"n{depth - 1}" if depth else None))

    await store.transaction(chain)
    assert (await node(store, "n256")).depth == 256
    with pytest.raises(errors.BadInput, match="256"):
        await create(store, "too-deep", "n256")
    with pytest.raises(errors.BadInput, match="256"):
        await fork(store, "n256", id="too-deep")
    await plant(store, "a", "a/b")
    with pytest.raises(errors.BadInput, match="256"):
        await store.tree.move(SPACE, "a", "n255")
    with pytest.raises(errors.BadInput, match="256"):
        await store.tree.move(SPACE, "n0", "a")
    await store.tree.move(SPACE, "a", "n254")
    assert (await node(store, "b")).depth == 256
    await store.tree.move(SPACE, "n200", None)
    assert (await node(store, "n256")).depth == 56
    assert len((await forest(store, root_id="n200")).nodes) == 59
    await check_forest(store)


async def test_nodes_of_different_branches_can_refer_to_each_other(store: Store) -> None:
    await plant(store, "a", "a/b", "a/c", "x")
    for source, target in (("b", "c"), ("c", "b"), ("b", "x"), ("x", "c"), ("a", "x"), ("x", "a")):
        await store.tree.add_ref(SPACE, source, target)
    expected = {("b", "c"), ("c", "b"), ("b", "x"), ("x", "c"), ("a", "x"), ("x", "a")}
    assert await refs_of(store) == expected
    assert (await node(store, "b")).document.refs == ("c", "x")
    assert await store.tree.referrers(SPACE, ["x", "c", "b"]) == {"x": ["a", "b"], "c": ["b", "x"], "b": ["c"]}


async def test_a_reference_to_itself_an_ancestor_or_a_descendant_is_refused(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c")
    before = await forest(store)
    for source in ("a", "b", "c"):
        for target in ("a", "b", "c"):
            with pytest.raises(errors.InvalidRef):
                await store.tree.add_ref(SPACE, source, target)
    assert await forest(store) == before


async def test_a_repeated_reference_changes_nothing(store: Store) -> None:
    await plant(store, "a", "b")
    await store.tree.add_ref(SPACE, "a", "b")
    before = await forest(store)
    await store.tree.add_ref(SPACE, "a", "b")
    await store.tree.remove_ref(SPACE, "b", "a")
    assert await forest(store) == before


async def test_a_removed_reference_can_be_added_again(store: Store) -> None:
    await plant(store, "a", "b", "c")
    await store.tree.add_ref(SPACE, "a", "b")
    await store.tree.add_ref(SPACE, "a", "c")
    await store.tree.remove_ref(SPACE, "a", "b")
    assert await refs_of(store) == {("a", "c")}
    assert await store.tree.referrers(SPACE, ["b"]) == {"b": []}
    await store.tree.add_ref(SPACE, "a", "b")
    assert (await node(store, "a")).document.refs == ("c", "b")


async def test_a_reference_of_or_to_an_unknown_node_is_not_found(store: Store) -> None:
    await plant(store, "a")
    for change in (store.tree.add_ref, store.tree.remove_ref):
        with pytest.raises(errors.NotFound, match=r"fromId.*nobody"):
            await change(SPACE, "nobody", "a")
        with pytest.raises(errors.NotFound, match=r"toId.*nobody"):
            await change(SPACE, "a", "nobody")


async def test_concurrent_references_are_all_stored(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    names = [f"n{n}" for n in range(6)]
    await plant(stores[0], *names)
    pairs = {(source, target) for source in names for target in names if source != target}
    await asyncio.gather(*(stores[n % 2].tree.add_ref(SPACE, *pair) for n, pair in enumerate(sorted(pairs))))
    assert await refs_of(stores[0]) == pairs
    await check_forest(stores[1])


async def test_a_move_that_makes_a_reference_vertical_is_refused(store: Store) -> None:
    await plant(store, "a", "a/b", "x", "x/y")
    await store.tree.add_ref(SPACE, "b", "x")
    await store.tree.add_ref(SPACE, "a", "y")
    before = await forest(store)
    for id, parent in (("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("y", "a"), ("y", "b"), ("x", "a"), ("x", "b")):
        with pytest.raises(errors.InvalidRef):
            await store.tree.move(SPACE, id, parent)
    assert await forest(store) == before
    await store.tree.move(SPACE, "y", None)
    await store.tree.move(SPACE, "b", "y")
    await check_forest(store)


async def test_a_racing_move_and_reference_never_connect_a_lineage(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await plant(stores[0], "a", "a/b", "x", "x/y")
    for round in range(8):
        source, target = (("b", "x"), ("x", "b"))[round % 2]
        results = await asyncio.gather(
            stores[0].tree.move(SPACE, "a", "y"),
            stores[1].tree.add_ref(SPACE, source, target),
            return_exceptions=True,
        )
        assert [type(result) for result in results if isinstance(result, Exception)] == [errors.InvalidRef]
        await check_forest(stores[0])
        await stores[0].tree.move(SPACE, "a", None)
        await stores[0].tree.remove_ref(SPACE, source, target)


async def test_a_racing_reference_and_deletion_leave_no_dangling_reference(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await plant(stores[0], "a")
    for round in range(8):
        await plant(stores[0], f"b{round}")
        added, deleted = await asyncio.gather(
            stores[0].tree.add_ref(SPACE, "a", f"b{round}"),
            stores[1].tree.delete(SPACE, f"b{round}"),
            return_exceptions=True,
        )
        assert deleted == [f"b{round}"]
        assert not isinstance(added, Exception) or isinstance(added, errors.NotFound)
        assert (await node(stores[0], "a")).document.refs == ()


async def test_a_racing_move_and_deletion_leave_no_orphan(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await plant(stores[0], "a")
    for round in range(8):
        await plant(stores[0], f"b{round}")
        moved, deleted = await asyncio.gather(
            stores[0].tree.move(SPACE, "a", f"b{round}"),
            stores[1].tree.delete(SPACE, f"b{round}"),
            return_exceptions=True,
        )
        refusals = {type(result) for result in (moved, deleted) if isinstance(result, Exception)}
        assert refusals in ({errors.NotFound}, {errors.HasChildren})
        await check_forest(stores[0])
        await stores[0].tree.move(SPACE, "a", None)


async def test_the_forest_is_depth_first_by_index(store: Store) -> None:
    await plant(store, "z", "a", "z/m", "a/y", "z/b", "z/m/k", "a/x", "z/m/c")
    found = await forest(store)
    assert drawn(found) == ["z", "z/m", "z/m/k", "z/m/c", "z/b", "a", "a/y", "a/x"]
    assert found.roots == ["z", "a"]
    assert [root.id for root in await store.tree.roots(SPACE)] == ["z", "a"]
    await store.tree.move(SPACE, "m", "a")
    await store.tree.move(SPACE, "m", "z")
    assert drawn(await forest(store)) == ["z", "z/b", "z/m", "z/m/k", "z/m/c", "a", "a/y", "a/x"]


async def test_a_forest_can_be_limited_to_a_tree_and_a_depth(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "a/b/c/d", "a/e", "x")
    for source, target in (("c", "e"), ("d", "x"), ("x", "b")):
        await store.tree.add_ref(SPACE, source, target)
    tree = await forest(store, root_id="b")
    assert drawn(tree) == ["a/b", "a/b/c", "a/b/c/d"]
    assert (tree.roots, tree.refs) == (["b"], [])
    assert drawn(await forest(store, max_depth=0)) == ["a", "x"]
    shallow = await forest(store, max_depth=2)
    assert drawn(shallow) == ["a", "a/b", "a/b/c", "a/e", "x"]
    assert set(shallow.refs) == {("c", "e"), ("x", "b")}
    assert drawn(await forest(store, root_id="b", max_depth=1)) == ["a/b", "a/b/c"]
    assert drawn(await forest(store, root_id="d")) == ["a/b/c/d"]
    assert drawn(await forest(store, max_depth=99)) == drawn(await forest(store))
    with pytest.raises(errors.BadInput, match="maxDepth"):
        await store.tree.forest(SPACE, max_depth=-1)


async def test_a_forest_filtered_by_status_includes_ancestors(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "a/d", "x", "x/y")
    for id in ("c", "x"):
        await store.sessions.set_status(SPACE, id, ARCHIVED)
    assert drawn(await forest(store, status=ARCHIVED)) == ["a", "a/b", "a/b/c", "x"]
    assert drawn(await forest(store, status=ACTIVE)) == ["a", "a/b", "a/d", "x", "x/y"]
    assert drawn(await forest(store, root_id="b", status=ARCHIVED)) == ["a/b", "a/b/c"]
    assert drawn(await forest(store, root_id="d", status=ARCHIVED)) == []
    assert drawn(await forest(store, status=ARCHIVED, max_depth=1)) == ["a", "a/b", "x"]


async def damage(store: Store, id: str, parent_id: str) -> None:
    """Corrupts a node's parent, as no operation can."""

    async def work(tx: Transaction) -> None:
        found = await tx.node(SPACE, id)
        assert found is not None
        await tx.change_node(found, {"parent_id": parent_id, "ancestors": (parent_id,)})

    await store.database.transact(work)


async def test_a_node_whose_parent_is_missing_is_shown_as_a_root(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "x")
    await damage(store, "b", "missing")
    found = await forest(store)
    assert sorted(drawn(found)) == ["a", "b", "b/c", "x"]
    assert set(found.roots) == {"a", "b", "x"}
    assert {node.id: (node.parent_id, node.depth) for node in found.nodes} == {
        "a": (None, 0),
        "b": (None, 0),
        "c": ("b", 1),
        "x": (None, 0),
    }
    roots = await store.tree.roots(SPACE)
    assert {root.id: (root.parent_id, root.depth) for root in roots} == {"a": (None, 0), "b": (None, 0), "x": (None, 0)}
    assert drawn(await forest(store, max_depth=0)) == [node.id for node in roots]


async def test_an_orphan_requested_alone_is_a_root(store: Store) -> None:
    await plant(store, "a", "a/b")
    await damage(store, "b", "missing")
    found = await node(store, "b")
    assert (found.parent_id, found.depth) == (None, 0)
    assert drawn(await forest(store, root_id="b")) == ["b"]


async def test_an_orphan_can_be_moved_and_deleted(store: Store) -> None:
    await plant(store, "a", "a/b", "a/b/c", "a/d", "x")
    for id in ("b", "d"):
        await damage(store, id, "missing")
    await store.tree.move(SPACE, "b", "x")
    assert drawn(await forest(store, root_id="x")) == ["x", "x/b", "x/b/c"]
    assert await store.tree.delete(SPACE, "d") == ["d"]
    assert await ids(store) == {"a", "b", "c", "x"}


async def test_nodes_on_a_cycle_after_damage_are_shown(store: Store) -> None:
    await plant(store, "a", "a/b", "x")
    await damage(store, "a", "b")
    found = await forest(store)
    assert sorted(node.id for node in found.nodes) == ["a", "b", "x"]
    assert len(found.roots) == 2
