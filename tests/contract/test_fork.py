"""Forks share any cut of any log for good, and neither side sees the other's later events."""

import asyncio
import random
from functools import partial
from typing import Any

import pytest

from storage import errors
from storage.events import AssistantMessage, Event, StepStart, ToolResult, TurnEnd, TurnStart
from storage.log.reading import state_at
from storage.log.state import Fold, LogState
from storage.session import MAX_SEGMENTS, SessionConfig, SessionFilter, SessionMeta, SessionStatus, SlotName
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import (
    SPACE,
    append,
    append_in_parts,
    contents,
    conversation,
    create,
    fork,
    ids,
    node,
    put,
    seqs,
    session,
    slots,
    texts,
    user,
    whole_log,
)

SYSTEM_PROMPT, INSIGHT, MEMORY = SlotName


def folded(events: list[Event]) -> LogState:
    return Fold(LogState()).add_all(events).done()


async def check_fork(store: Store, made: SessionMeta, shared: list[Event]) -> None:
    """Checks that a new fork holds exactly the shared events and has the state after them."""
    assert await whole_log(store, made.id) == shared
    assert made == await session(store, made.id)
    assert made.state == folded(shared)
    assert (made.head, made.inherited, made.own_start) == (len(shared), made.totals, len(shared))


@pytest.mark.parametrize("seed", range(2))
async def test_every_cut_shares_exactly_the_events_before_it(store: Store, seed: int) -> None:
    await create(store, "a")
    await append_in_parts(store, "a", conversation(3), random.Random(seed))
    log = await whole_log(store, "a")
    for cut in range(len(log) + 1):
        made = await fork(store, "a", id=f"cut-{cut}", at_seq=cut, as_root=True)
        assert (await node(store, made.id)).document.fork_seq == cut
        await check_fork(store, made, log[:cut])
        assert (await append(store, made.id, user("own"))).first_seq == cut
    assert await whole_log(store, "a") == log


@pytest.mark.parametrize("seed", range(3))
async def test_every_cut_of_a_fork_of_a_fork_shares_exactly_the_events_before_it(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    events = conversation(3)
    await create(store, "a")
    await append(store, "a", *events[:7])
    await append(store, "a", *texts(4))
    await fork(store, "a", id="b", at_seq=5)
    await append_in_parts(store, "b", events[5:14], chance)
    await append(store, "b", *texts(4))
    await fork(store, "b", id="c", at_seq=12)
    await append_in_parts(store, "c", events[12:], chance)
    log = await whole_log(store, "c")
    assert [event.type for event in log] == [event.type for event in events]
    meta = await session(store, "c")
    for cut in range(len(log) + 1):
        made = await fork(store, "c", at_seq=cut, as_root=True)
        await check_fork(store, made, log[:cut])
        state = await store.database.read(partial(state_at, meta=meta, seq=cut))
        assert state == folded(log[:cut])


async def test_a_fork_shares_everything_unless_cut(store: Store) -> None:
    await create(store, "a", label="mine", workflow_mode="plan")
    await append(store, "a", *conversation(2))
    made = await fork(store, "a")
    await check_fork(store, made, await whole_log(store, "a"))
    assert (made.label, made.workflow_mode, made.status) == ("mine", "plan", SessionStatus.ACTIVE)
    document = (await node(store, made.id)).document
    assert (document.parent_id, document.source_session_id, document.fork_seq) == ("a", "a", 16)


async def test_inherited_events_keep_their_ids_and_sessions(store: Store) -> None:
    a = await create(store, "a")
    await append(store, "a", *texts(3))
    b = await fork(store, "a", id="b", at_seq=2)
    await append(store, "b", *texts(2, 2))
    await fork(store, "b", id="c", at_seq=3)
    await append(store, "c", user("own"))
    found = await whole_log(store, "c")
    assert [event.session_id for event in found] == ["a", "a", "b", "c"]
    assert [event.id for event in found[:3]] == [f"{a.log}/0", f"{a.log}/1", f"{b.log}/2"]
    assert found[:2] == (await whole_log(store, "a"))[:2]
    assert seqs(found) == [0, 1, 2, 3]


async def test_neither_side_sees_the_others_later_events(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(4))
    await fork(store, "a", id="b", at_seq=2)
    source, child = await session(store, "a"), await session(store, "b")
    await append(store, "b", user("of b"))
    assert await session(store, "a") == source
    await append(store, "a", user("of a"))
    assert contents(await whole_log(store, "a")) == [*(f"message {n}" for n in range(4)), "of a"]
    assert contents(await whole_log(store, "b")) == ["message 0", "message 1", "of b"]
    assert (await session(store, "b")).totals.types == {"user/message": 3}
    assert child.totals.types == {"user/message": 2}


async def test_a_fork_changes_nothing_of_its_source(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(1))
    await put(store, "a", MEMORY, "memory")
    before, slots_before = await session(store, "a"), await slots(store, "a")
    await fork(store, "a", prompt="go")
    assert await session(store, "a") == before
    assert await slots(store, "a") == slots_before
    assert (await append(store, "a", user("x"), expected_head=8)).first_seq == 8


async def test_turns_open_at_the_cut_are_open_in_the_fork(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), user("x"), TurnEnd(turn_id="t"))
    await fork(store, "a", id="b", at_seq=2)
    appended = await append(store, "b", user("goes on"), TurnEnd(turn_id="t"))
    assert appended.session.open == ()
    assert [event.turn_id for event in await whole_log(store, "b")] == ["t"] * 4


async def test_a_turn_started_after_the_cut_is_unknown_to_the_fork(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="before"), TurnEnd(turn_id="before"), TurnStart(turn_id="after"))
    await fork(store, "a", id="b", at_seq=2)
    with pytest.raises(errors.BadInput, match="turnId"):
        await append(store, "b", TurnStart(turn_id="before"))
    with pytest.raises(errors.BadInput, match="turnId"):
        await append(store, "b", ToolResult(call_id="c", turn_id="after"))
    await append(store, "b", ToolResult(call_id="c", turn_id="before"))
    await append(store, "b", TurnStart(turn_id="after"), TurnEnd(turn_id="after"))
    assert (await session(store, "a")).open[0].turn == "after"


async def test_a_step_started_after_the_cut_is_unknown_to_the_fork(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), StepStart(step_id="before"), StepStart(step_id="after"))
    await append(store, "a", StepStart(step_id="later"))
    await fork(store, "a", id="b", at_seq=2)
    with pytest.raises(errors.BadInput, match="stepId"):
        await append(store, "b", StepStart(step_id="before"))
    await append(store, "b", StepStart(step_id="later"))
    await append(store, "b", StepStart(step_id="after"))
    assert [step for turn in (await session(store, "b")).open for step in turn.steps] == ["before", "later", "after"]


async def test_a_fork_of_an_empty_session_is_empty(store: Store) -> None:
    await create(store, "a")
    made = await fork(store, "a", at_seq=0)
    await check_fork(store, made, [])
    assert made.open == ()
    assert not made.behind
    document = (await node(store, made.id)).document
    assert (document.parent_id, document.source_session_id, document.fork_seq) == ("a", "a", 0)


async def test_without_context_a_fork_starts_empty(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="be brief"))
    await append(store, "a", TurnStart(turn_id="t"))
    made = await fork(store, "a", inherit=False, prompt="go")
    assert contents(await whole_log(store, made.id)) == ["go"]
    assert (made.head, made.open, made.inherited.types) == (1, (), {})
    await append(store, made.id, TurnStart(turn_id="t"))
    assert (await fork(store, "a", inherit=False, at_seq=0)).head == 0
    with pytest.raises(errors.BadInput, match="atSeq"):
        await fork(store, "a", inherit=False, at_seq=1, id="b")
    assert await store.sessions.get(SPACE, "b") is None


async def test_the_prompt_is_the_first_own_event(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"), user("question"))
    made = await fork(store, "a", id="b", prompt="go")
    log = await whole_log(store, "b")
    assert isinstance(log[2], AssistantMessage)
    assert (log[2].content, log[2].seq, log[2].session_id, log[2].turn_id) == ("go", 2, "b", "t")
    assert (made.head, made.own_start, made.behind) == (3, 2, True)
    assert made.totals.types == {"turn/start": 1, "user/message": 1, "assistant/message": 1}
    assert made.inherited.types == {"turn/start": 1, "user/message": 1}
    assert contents(await whole_log(store, "a")) == ["question"]


async def test_a_prompt_may_hold_any_text(store: Store) -> None:
    await create(store, "a")
    for prompt, kept in (("", ""), ("\x00🌳", "\x00🌳"), ("go\ud800", "go\ufffd")):
        made = await fork(store, "a", prompt=prompt)
        assert contents(await whole_log(store, made.id)) == [kept]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, SessionConfig(system_prompt="source", skills=["a", "b"])),
        (SessionConfig(), SessionConfig(system_prompt="source", skills=["a", "b"])),
        (SessionConfig(skills=[]), SessionConfig(system_prompt="source", skills=[])),
        (SessionConfig(skills=["c"]), SessionConfig(system_prompt="source", skills=["c"])),
        (SessionConfig(system_prompt="own"), SessionConfig(system_prompt="own", skills=["a", "b"])),
        (SessionConfig(skills=None), SessionConfig(system_prompt="source")),
    ],
)
async def test_the_config_is_laid_over_the_sources(
    store: Store, given: SessionConfig | None, expected: SessionConfig
) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="source", skills=["a", "b"]))
    made = await fork(store, "a", config=given)
    assert (await node(store, made.id)).document.config == expected


async def test_a_fork_of_a_source_without_config_has_only_its_own(store: Store) -> None:
    await create(store, "a")
    plain = await fork(store, "a")
    assert (await node(store, plain.id)).document.config is None
    given = await fork(store, "a", config=SessionConfig(skills=["x"]))
    assert (await node(store, given.id)).document.config == SessionConfig(skills=["x"])


async def test_the_current_system_prompt_is_inherited_unless_given(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="at creation"))
    await append(store, "a", *texts(3))
    await put(store, "a", SYSTEM_PROMPT, "now")
    inherited = (await slots(store, (await fork(store, "a", at_seq=2)).id)).system_prompt
    assert inherited is not None
    assert (inherited.content, inherited.version, inherited.at_seq) == ("now", 1, 2)
    named = await fork(store, "a", config=SessionConfig(system_prompt="own"))
    own = (await slots(store, named.id)).system_prompt
    assert own is not None
    assert own.content == "own"
    taken_away = await fork(store, "a", config=SessionConfig(system_prompt=None))
    assert (await slots(store, taken_away.id)).system_prompt is None


async def test_memory_and_insight_and_refs_are_not_inherited(store: Store) -> None:
    for id in ("a", "friend"):
        await create(store, id)
    await append(store, "a", *texts(2))
    await put(store, "a", MEMORY, "memory")
    await put(store, "a", INSIGHT, "insight")
    await store.tree.add_ref(SPACE, "a", "friend")
    made = await fork(store, "a")
    found = await slots(store, made.id)
    assert (found.memory, found.insight) == (None, None)
    assert made.behind
    assert (await node(store, made.id)).document.refs == ()


async def test_metadata_is_inherited_unless_given(store: Store) -> None:
    await create(store, "a", metadata='{"a": 1}')
    assert (await fork(store, "a")).metadata == '{"a": 1}'
    assert (await fork(store, "a", metadata="[]")).metadata == "[]"


async def test_parent_and_source_are_independent(store: Store) -> None:
    await create(store, "a")
    await create(store, "b")
    await create(store, "c", "b")
    elsewhere = (await node(store, (await fork(store, "a", parent_id="c")).id)).document
    assert (elsewhere.parent_id, elsewhere.ancestors, elsewhere.source_session_id) == ("c", ("c", "b"), "a")
    root = (await node(store, (await fork(store, "c", as_root=True)).id)).document
    assert (root.parent_id, root.ancestors, root.index, root.source_session_id) == (None, (), 2, "c")
    with pytest.raises(errors.BadInput, match="asRoot and parentId"):
        await fork(store, "a", as_root=True, parent_id="c")


async def test_an_archived_session_can_be_forked(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    made = await fork(store, "a", at_seq=1)
    assert made.status is SessionStatus.ACTIVE
    assert (await append(store, made.id, user("x"))).first_seq == 1


async def test_a_failed_fork_leaves_nothing(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    await create(store, "taken", "a")
    before, logs = await node(store, "a"), await store.database.read(lambda queries: queries.all_logs())
    large = "x" * (1024 * 1024 + 1)
    cases: list[tuple[type[errors.SapwoodError], dict[str, Any]]] = [
        (errors.NotFound, {"source_id": "unknown"}),
        (errors.NotFound, {"parent_id": "unknown"}),
        (errors.DuplicateId, {"id": "taken"}),
        (errors.BadInput, {"id": "bad id"}),
        (errors.BadInput, {"at_seq": -1}),
        (errors.BadInput, {"at_seq": 3}),
        (errors.BadInput, {"label": "x" * 501}),
        (errors.PayloadTooLarge, {"metadata": f'"{large}"'}),
        (errors.PayloadTooLarge, {"config": SessionConfig(system_prompt=large)}),
        (errors.PayloadTooLarge, {"prompt": "x" * (8 * 1024 * 1024)}),
    ]
    for error, wanted in cases:
        with pytest.raises(error):
            await fork(store, **{"source_id": "a", "prompt": "go", **wanted})
    assert await ids(store) == {"a", "taken"}
    assert await node(store, "a") == before
    assert await store.database.read(lambda queries: queries.all_logs()) == logs


async def test_a_failed_fork_uses_up_no_root_index(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.PayloadTooLarge):
        await fork(store, "a", as_root=True, prompt="x" * (8 * 1024 * 1024))
    await create(store, "b")
    assert (await node(store, "b")).document.index == 1


async def test_a_repeated_fork_returns_the_first_one_as_it_is_now(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3))
    made = await fork(store, "a", prompt="go", key="key")
    await append(store, made.id, user("more"))
    await append(store, "a", user("more"))
    again = await fork(store, "a", prompt="go", key="key")
    assert again == await session(store, made.id)
    assert again.head == 5
    others: list[dict[str, Any]] = [{"prompt": "other"}, {"at_seq": 3, "prompt": "go"}, {"prompt": "go", "label": "x"}]
    for other in others:
        with pytest.raises(errors.IdempotencyMismatch):
            await fork(store, "a", key="key", **other)
    assert await store.sessions.count(SPACE, SessionFilter()) == 2


async def test_many_concurrent_forks_of_a_growing_source_are_exact(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")

    async def grow() -> None:
        for n in range(20):
            await append(stores[0], "a", *texts(3, 3 * n))

    async def forks(store: Store) -> list[SessionMeta]:
        return [await fork(store, "a") for _ in range(10)]

    _, first, second = await asyncio.gather(grow(), forks(stores[0]), forks(stores[1]))
    log = await whole_log(stores[0], "a")
    assert len(log) == 60
    for made in (*first, *second):
        assert made.head % 3 == 0
        await check_fork(stores[0], made, log[: made.head])
    indexes = sorted([(await node(stores[0], made.id)).document.index for made in (*first, *second)])
    assert indexes == list(range(20))


async def test_a_deep_chain_of_forks_reads_as_one_log(store: Store) -> None:
    await create(store, "fork-0")
    await append(store, "fork-0", user("0"))
    for depth in range(1, MAX_SEGMENTS):
        await fork(store, f"fork-{depth - 1}", id=f"fork-{depth}", as_root=True, prompt=str(depth))
    deepest = f"fork-{MAX_SEGMENTS - 1}"
    log = await whole_log(store, deepest)
    assert contents(log) == [str(n) for n in range(MAX_SEGMENTS)]
    assert [event.session_id for event in log] == [f"fork-{n}" for n in range(MAX_SEGMENTS)]
    meta = await session(store, deepest)
    assert contents((await store.sessions.events(meta, before_seq=100, last=5)).events) == [
        str(n) for n in range(95, 100)
    ]
    with pytest.raises(errors.BadInput, match="256"):
        await fork(store, deepest, id="too-deep", as_root=True)
    assert await store.sessions.get(SPACE, "too-deep") is None
    shallower = await fork(store, deepest, at_seq=MAX_SEGMENTS - 1, as_root=True)
    assert len(shallower.segments) == MAX_SEGMENTS
    assert (await append(store, deepest, user("last"))).first_seq == MAX_SEGMENTS


async def test_forks_without_own_events_can_be_stacked_without_limit(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    last = "a"
    for _ in range(20):
        last = (await fork(store, last, as_root=True)).id
    meta = await session(store, last)
    assert len(meta.segments) == 2
    assert contents(await whole_log(store, last)) == ["message 0", "message 1"]


async def test_an_empty_parent_id_is_an_unknown_parent(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.NotFound, match="parentId"):
        await fork(store, "a", parent_id="")
