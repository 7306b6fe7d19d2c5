"""Sessions: created once, found again, renamed, archived and restored."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from storage import errors
from storage.lifecycle import NewSession
from storage.session import SessionConfig, SessionFilter, SessionMeta, SessionStatus
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE, append, create, fork, ids, node, put, session, slots, user
from tests.contract.test_slots import MEMORY


async def test_a_new_session_is_empty_and_active(store: Store) -> None:
    made = await create(store, "a")
    assert (made.id, made.head, made.turn_count, made.status) == ("a", 0, 0, SessionStatus.ACTIVE)
    assert (made.workflow_mode, made.metadata, made.last_event_at) == (None, None, None)
    assert made.created_at == made.updated_at
    assert await session(store, "a") == made


async def test_an_id_is_a_random_uuid_unless_given(store: Store) -> None:
    first, second = await create(store), await create(store)
    assert first.id != second.id
    assert str(uuid.UUID(first.id)) == first.id
    assert await session(store, first.id) == first


@pytest.mark.parametrize("id", ["x", "A-z_0.9:b", "i" * 128])
async def test_an_id_has_up_to_128_allowed_characters(store: Store, id: str) -> None:
    assert (await create(store, id)).id == id


@pytest.mark.parametrize("id", ["", "i" * 129, "a b", "ä", "a/b", "a\n", "$a", "a\x00", "\ud800"])
async def test_other_ids_are_refused(store: Store, id: str) -> None:
    with pytest.raises(errors.BadInput, match="id"):
        await create(store, id)
    assert await ids(store) == set()


@pytest.mark.parametrize("id", ["b", "", "A", "a\x00", "a\x00b", "\ud800", "$ne", "i" * 10_000])
async def test_any_unknown_id_finds_nothing(store: Store, id: str) -> None:
    await create(store, "a")
    assert await store.sessions.get(SPACE, id) is None
    assert await store.sessions.get_many(SPACE, [id]) == [None]
    assert await store.tree.node(SPACE, id) is None
    assert await ids(store, ids=(id,)) == set()
    assert await store.tree.forest(SPACE, id) is None


async def test_a_taken_id_is_refused_and_nothing_is_overwritten(store: Store) -> None:
    await create(store, "parent")
    first = await create(store, "a", label="first")
    with pytest.raises(errors.DuplicateId):
        await create(store, "a", "parent", label="second")
    with pytest.raises(errors.DuplicateId):
        await fork(store, "parent", id="a")
    assert await session(store, "a") == first
    assert (await node(store, "parent")).document.child_count == 0


async def test_one_of_several_concurrent_creations_gets_the_id(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    tries = [create(stores[n % 2], "a", label=str(n)) for n in range(8)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    [made] = [result for result in results if isinstance(result, SessionMeta)]
    assert sum(isinstance(result, errors.DuplicateId) for result in results) == 7
    assert await session(stores[0], "a") == made


async def test_default_labels(store: Store) -> None:
    assert (await create(store, "root")).label == "Root"
    assert (await create(store, "child", "root")).label == "Session"
    assert (await create(store, "named", label="")).label == ""


async def test_a_label_has_at_most_500_characters(store: Store) -> None:
    longest = "🌳" * 500
    assert (await create(store, "a", label=longest)).label == longest
    with pytest.raises(errors.BadInput, match="500"):
        await create(store, "b", label="x" * 501)
    with pytest.raises(errors.BadInput, match="500"):
        await store.sessions.update(SPACE, "a", {"label": "x" * 501})
    assert (await session(store, "a")).label == longest


async def test_given_fields_come_back(store: Store) -> None:
    metadata = '{"$set": 1, "a.b": [2.50, 18446744073709551615], "": "\\u0000", "z": {}, "a": null}'
    config = SessionConfig(system_prompt="be brief", skills=["search"])
    await create(store, "source")
    await create(store, "a", workflow_mode="plan", metadata=metadata, config=config, source_session_id="source")
    found = await session(store, "a")
    assert (found.workflow_mode, found.metadata) == ("plan", metadata)
    document = (await node(store, "a")).document
    assert (document.config, document.source_session_id, document.fork_seq) == (config, "source", None)
    prompt = (await slots(store, "a")).system_prompt
    assert prompt is not None
    assert (prompt.content, prompt.version) == ("be brief", 1)


@pytest.mark.parametrize("config", [None, SessionConfig(), SessionConfig(skills=[]), SessionConfig(system_prompt="")])
async def test_a_config_comes_back_without_invented_keys(store: Store, config: SessionConfig | None) -> None:
    await create(store, "a", config=config)
    await create(store, "b", config=SessionConfig(system_prompt="old", skills=["old"]))
    assert (await node(store, "a")).document.config == config
    if config is not None:
        await store.tree.put_config(SPACE, "b", config)
        assert (await node(store, "b")).document.config == config


async def test_the_config_is_not_part_of_the_session(store: Store) -> None:
    await create(store, "root")
    before = await create(store, "a", "root", label="name")
    await store.tree.put_config(SPACE, "a", SessionConfig(skills=["x"]))
    await store.sessions.update(SPACE, "a", {"label": "new name"})
    assert (await node(store, "a")).document.config == SessionConfig(skills=["x"])
    after = await session(store, "a")
    assert after.model_copy(update={"label": "name", "updated_at": before.updated_at}) == before
    assert (await node(store, "root")).document.child_count == 1


@pytest.mark.parametrize("name", ["metadata", "config"])
async def test_metadata_and_config_have_at_most_one_mebibyte(store: Store, name: str) -> None:
    def given(size: int) -> dict[str, Any]:
        if name == "metadata":
            return {"metadata": json.dumps("m" * (size - 2))}
        return {"config": SessionConfig(skills=["s" * (size - len('{"skills":[""]}'))])}

    await create(store, "a", **given(1024 * 1024))
    with pytest.raises(errors.PayloadTooLarge, match=rf"{name}.*1048576"):
        await create(store, "b", **given(1024 * 1024 + 1))
    assert await ids(store) == {"a"}


async def test_lone_surrogates_become_the_replacement_character(store: Store) -> None:
    config = SessionConfig(system_prompt="\udc00!", skills=["\ud800"])
    await create(store, "a", label="a\ud800b", workflow_mode="\udfff", config=config)
    made = await session(store, "a")
    assert (made.label, made.workflow_mode) == ("a\ufffdb", "\ufffd")
    assert (await node(store, "a")).document.config == SessionConfig(system_prompt="\ufffd!", skills=["\ufffd"])
    await store.sessions.update(SPACE, "a", {"label": "\udcff", "workflow_mode": "\ud801"})
    made = await session(store, "a")
    assert (made.label, made.workflow_mode) == ("\ufffd", "\ufffd")


async def test_nul_is_kept_in_texts(store: Store) -> None:
    await create(store, "a", label="a\x00b", workflow_mode="\x00", metadata='"\\u0000"')
    made = await session(store, "a")
    assert (made.label, made.workflow_mode, made.metadata) == ("a\x00b", "\x00", '"\\u0000"')


async def test_a_repeated_creation_returns_the_session_as_it_is_now(store: Store) -> None:
    new = NewSession(label="mine", key="key-1")
    made = await store.tree.create(SPACE, new)
    await append(store, made.id, user("hello"))
    await store.sessions.update(SPACE, made.id, {"label": "renamed"})
    again = await store.tree.create(SPACE, new)
    assert again == await session(store, made.id)
    assert (again.id, again.head, again.label) == (made.id, 1, "renamed")
    assert await store.sessions.count(SPACE, SessionFilter()) == 1


async def test_eight_concurrent_creations_with_one_key_create_one_session(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    made = await asyncio.gather(*(create(stores[n % 2], key="key-1") for n in range(8)))
    assert len({meta.id for meta in made}) == 1
    assert await ids(stores[0]) == {made[0].id}
    assert (await create(stores[0], "next")).id == "next"
    assert (await node(stores[0], "next")).document.index == 1


async def test_a_creation_key_with_other_input_is_refused(store: Store) -> None:
    await create(store, "a", label="mine", key="key-1")
    for other in ({"label": "other"}, {"label": "mine", "config": SessionConfig()}, {"label": "mine", "metadata": "1"}):
        with pytest.raises(errors.IdempotencyMismatch):
            await create(store, "a", key="key-1", **other)
    with pytest.raises(errors.IdempotencyMismatch):
        await fork(store, "a", id="a", label="mine", key="key-1")
    assert await ids(store) == {"a"}


async def test_a_deletion_frees_the_creation_key(store: Store) -> None:
    first = await create(store, key="key-1")
    await store.tree.delete(SPACE, first.id)
    second = await create(store, key="key-1")
    assert second.id != first.id
    assert await ids(store) == {second.id}


@pytest.mark.parametrize("key", ["", "k" * 257])
async def test_a_creation_key_has_1_to_256_characters(store: Store, key: str) -> None:
    with pytest.raises(errors.BadInput, match="idempotencyKey"):
        await create(store, key=key)
    assert await ids(store) == set()


@pytest.mark.parametrize("key", ["k" * 256, "a\x00b", "🔑", "\ud800", "a/b.$c"])
async def test_any_text_can_be_a_creation_key(store: Store, key: str) -> None:
    first = await create(store, key=key)
    assert (await create(store, key=key)).id == first.id
    await create(store, "other", key="a")
    assert len(await ids(store)) == 2


async def test_an_update_changes_what_is_given_and_null_clears(store: Store) -> None:
    await create(store, "a", label="name", workflow_mode="plan", metadata="[1]")
    await store.sessions.update(SPACE, "a", {"label": "new"})
    found = await session(store, "a")
    assert (found.label, found.workflow_mode, found.metadata) == ("new", "plan", "[1]")
    changed = await store.sessions.update(SPACE, "a", {"workflow_mode": None, "metadata": None})
    assert changed == await session(store, "a")
    assert (changed.label, changed.workflow_mode, changed.metadata) == ("new", None, None)
    with pytest.raises(errors.BadInput, match="label"):
        await store.sessions.update(SPACE, "a", {"label": None})


async def test_writes_to_an_unknown_session_are_not_found(store: Store) -> None:
    with pytest.raises(errors.NotFound, match="nobody"):
        await store.sessions.update(SPACE, "nobody", {"label": "x"})
    with pytest.raises(errors.NotFound, match="nobody"):
        await store.sessions.set_status(SPACE, "nobody", SessionStatus.ARCHIVED)
    with pytest.raises(errors.NotFound, match="nobody"):
        await append(store, "nobody", user("x"))
    with pytest.raises(errors.NotFound, match="nobody"):
        await put(store, "nobody", MEMORY, "x")
    with pytest.raises(errors.NotFound, match="nobody"):
        await create(store, source_session_id="nobody")
    assert await ids(store) == set()


async def test_an_archived_session_can_be_read_and_renamed_and_restored(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("hello"))
    archived = await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    assert archived.status is SessionStatus.ARCHIVED
    with pytest.raises(errors.Archived):
        await append(store, "a", user("refused"))
    assert (await store.sessions.events(archived)).events[0].seq == 0
    assert (await store.sessions.update(SPACE, "a", {"label": "old one"})).label == "old one"
    await store.sessions.set_status(SPACE, "a", SessionStatus.ACTIVE)
    assert (await append(store, "a", user("again"))).first_seq == 1


async def test_an_update_to_the_same_values_changes_nothing(store: Store) -> None:
    made = await create(store, "a", label="name")
    assert await store.sessions.update(SPACE, "a", {"label": "name"}) == made
    assert await store.sessions.set_status(SPACE, "a", SessionStatus.ACTIVE) == made
    assert await session(store, "a") == made


async def test_updated_at_is_the_last_change_and_never_runs_backwards(store: Store) -> None:
    times = [(await create(store, "a")).updated_at]
    times.append((await append(store, "a", user("x"))).session.updated_at)
    assert (await session(store, "a")).last_event_at == times[-1]
    times.append((await store.sessions.update(SPACE, "a", {"label": "new"})).updated_at)
    times.append((await put(store, "a", MEMORY, "m")).session.updated_at)
    times.append((await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)).updated_at)
    found = await session(store, "a")
    assert times == sorted(times)
    assert found.updated_at == times[-1]
    assert found.last_event_at == times[1]


async def test_many_sessions_are_found_in_the_requested_order(store: Store) -> None:
    ids = [f"s{n}" for n in range(120)]
    await asyncio.gather(*(create(store, id) for id in ids))
    asked = [*reversed(ids), "unknown", "s5", "s5"]
    found = await store.sessions.get_many(SPACE, asked)
    assert [meta and meta.id for meta in found] == [*reversed(ids), None, "s5", "s5"]
    assert await store.sessions.get_many(SPACE, []) == []
    with pytest.raises(errors.PayloadTooLarge, match=r"ids.*1000"):
        await store.sessions.get_many(SPACE, ["s1"] * 1_001)
