"""Spaces: isolated from each other; what one owns is unknown to all others."""

import pytest

from storage import errors
from storage.lifecycle import NewSession
from storage.session import SessionConfig, SessionFilter
from storage.store import Store
from tests.contract.shorthand import append, contents, create, ids, texts, user


async def test_two_spaces_can_use_the_same_ids(store: Store) -> None:
    for space in ("one", "two"):
        await store.tree.create(space, NewSession(id="a", label=space, key="key"))
        await store.tree.create(space, NewSession(id="b", parent_id="a"))
        await store.sessions.append(space, "a", [user(space)], key="key")
    await store.tree.create("one", NewSession(id="only-one"))
    mine = await store.sessions.get("two", "a")
    assert mine is not None
    assert (mine.label, mine.head) == ("two", 1)
    assert contents((await store.sessions.events(mine)).events) == ["two"]
    await store.tree.delete("one", "a", cascade=True)
    assert await store.sessions.count("two", SessionFilter()) == 2
    assert await store.sessions.get("two", "a") == mine
    assert (await store.sessions.events(mine)).events[0].session_id == "a"


async def test_sessions_of_another_space_are_unknown_on_every_path(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    await create(store, "b")
    theirs = "theirs"
    await store.tree.create(theirs, NewSession(id="mine"))
    assert await store.sessions.get(theirs, "a") is None
    assert await store.sessions.get_many(theirs, ["a"]) == [None]
    assert await store.sessions.slots(theirs, ["a"]) == {}
    assert await store.tree.nodes(theirs, ["a"]) == {}
    assert await store.tree.children(theirs, ["a"]) == {"a": []}
    assert await store.tree.referrers(theirs, ["a"]) == {"a": []}
    assert await store.tree.forest(theirs, "a") is None
    assert [node.id for node in await store.tree.roots(theirs)] == ["mine"]
    assert await store.sessions.digests(theirs, SessionFilter(under="a"), 1, None) is None
    for refused in (
        store.tree.create(theirs, NewSession(parent_id="a")),
        store.tree.move(theirs, "a", None),
        store.tree.move(theirs, "mine", "a"),
        store.tree.add_ref(theirs, "mine", "a"),
        store.tree.remove_ref(theirs, "a", "b"),
        store.tree.put_config(theirs, "a", SessionConfig()),
        store.tree.delete(theirs, "a"),
        store.sessions.append(theirs, "a", [user("x")]),
        store.sessions.update(theirs, "a", {"label": "x"}),
        store.sessions.clear_insight(theirs, "a", None),
        store.sessions.consume_insight(theirs, "a", None, None, None),
        store.live.session_events(theirs, "a"),
    ):
        with pytest.raises(errors.NotFound):
            await refused
    assert await ids(store) == {"a", "b"}
