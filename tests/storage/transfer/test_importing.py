"""Sessions are imported whole or not at all, and real logs are counted as their source counts them."""

from collections import Counter
from dataclasses import replace

import pytest

from storage import errors
from storage.events import CustomEvent, Event, TurnEnd, UserMessage
from storage.lifecycle import NewSession
from storage.session import SessionConfig, SessionStatus, present
from storage.store import Store
from storage.transfer.formats.registry import ForeignDocument, ForeignSession
from storage.transfer.formats.shared.foreign import ForeignEvent, Step
from storage.transfer.importing import import_reading
from storage.transfer.importing.timeline import WAITING_WEIGHT, Timeline
from tests.storage.spaces import SPACE, assert_whole, bring, load, log_of, nodes_of, own_types, plain
from tests.storage.transfer.formats.logs import DEEPSEEK, OASST, TAU_BENCH
from tests.storage.transfer.imports import import_steps

# User, assistant, tool and system messages, and calls, as counted by the source's own tools.
COUNTS = {
    "deepseek-harness/cancel-tool-calls/session.jsonl": (2, 1, 2, 0, 2),
    "deepseek-harness/compaction-recovery/session.jsonl": (2, 2, 1, 0, 1),
    "deepseek-harness/goal-multi-turn-actions/session.jsonl": (4, 12, 11, 0, 11),
    "deepseek-harness/subagent-fork-in-process/session.1.jsonl": (4, 2, 0, 0, 0),
    "deepseek-harness/subagent-fork-in-process/session.jsonl": (3, 3, 1, 0, 1),
    "deepseek-harness/subagent-multi/session.1.jsonl": (2, 1, 0, 0, 0),
    "deepseek-harness/subagent-multi/session.2.jsonl": (2, 1, 0, 0, 0),
    "deepseek-harness/subagent-multi/session.jsonl": (2, 3, 2, 0, 2),
    "deepseek-harness/workspace-context-resume/session.expected.jsonl": (4, 1, 0, 0, 0),
    OASST: (282, 402, 0, 0, 0),
    TAU_BENCH: (860, 1381, 621, 100, 621),
}
COUNTED = ("user/message", "assistant/message", "tool/result", "system/message", "tool/call")


def draft(key: str, *contents: str, **given: object) -> ForeignSession:
    return replace(ForeignSession(key, None, [UserMessage(content=content) for content in contents]), **given)  # type: ignore[arg-type]  # checked when the test runs


def reading(*sessions: ForeignSession) -> ForeignDocument:
    return ForeignDocument("made", list(sessions), [])


async def test_real_harness_logs_become_sessions_forks_and_children(store: Store) -> None:
    parents_first = sorted(DEEPSEEK, key=lambda name: not name.endswith("session.jsonl"))
    imported = {name: await bring(store, name) for name in parents_first}
    assert sum(done.sessions for done in imported.values()) == 9
    assert sum(done.forks for done in imported.values()) == 1
    assert sum(done.nodes for done in imported.values()) == 0
    by_name = {name: id for name, done in imported.items() for id in done.ids.values()}
    for name, id in by_name.items():
        meta = await store.sessions.get(SPACE, id)
        assert meta is not None
        assert tuple(meta.totals.types.get(kind, 0) for kind in COUNTED) == COUNTS[name], name
    fork = by_name["deepseek-harness/subagent-fork-in-process/session.1.jsonl"]
    parent = by_name["deepseek-harness/subagent-fork-in-process/session.jsonl"]
    nodes = {node.id: node for node in await nodes_of(store)}
    assert (nodes[fork].parent_id, nodes[fork].document.source_session_id) == (parent, parent)
    assert nodes[fork].document.fork_seq == 42
    shared = (await log_of(store, nodes[fork].session))[:42]
    assert shared == (await log_of(store, nodes[parent].session))[:42]
    multi = by_name["deepseek-harness/subagent-multi/session.jsonl"]
    assert [node.parent_id for node in nodes.values() if node.parent_id == multi] == [multi, multi]
    await assert_whole(store)


async def test_real_trials_become_children_of_their_task_and_share_their_beginnings(store: Store) -> None:
    done = await bring(store, TAU_BENCH)
    # The trials of a task begin with the same message, so three of four are forks.
    assert (done.sessions, done.forks, done.nodes) == (100, 75, 25)
    visible: Counter[str] = Counter()
    for node in await nodes_of(store):
        visible.update(node.session.totals.types)
    assert tuple(visible[kind] for kind in COUNTED) == COUNTS[TAU_BENCH]
    nodes = await nodes_of(store)
    assert [node.document.child_count for node in nodes if node.parent_id is None] == [4] * 25
    assert {node.session.head for node in nodes if node.parent_id is None} == {0}
    assert done.events == sum((await own_types(store, list(done.ids.values()))).values())
    await assert_whole(store)


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_real_trees_become_sessions_with_a_fork_for_each_further_reply(store: Store) -> None:
    done = await bring(store, OASST)
    assert (done.sessions, done.forks, done.nodes) == (60, 300, 0)
    own = await own_types(store, list(done.ids.values()))
    assert tuple(own[kind] for kind in COUNTED) == COUNTS[OASST]
    nodes = await nodes_of(store)
    assert sum(node.parent_id is None for node in nodes) == 60
    assert all(node.document.source_session_id == node.parent_id for node in nodes)
    await assert_whole(store)


async def test_everything_of_a_session_is_imported(store: Store) -> None:
    session = draft(
        "a",
        "hello",
        id="mine",
        label="Mine",
        workflow_mode="plan",
        metadata='{"b":1,"a":null}',
        system_prompt="slot",
        memory="outside",
        memory_at_seq=0,
        insight="look",
        config=SessionConfig(system_prompt="fixed", skills=[]),
        archived=True,
        refs=("b",),
    )
    done = await load(store, reading(session, draft("b")))
    assert done.ids["a"] == "mine"
    node = await store.tree.node(SPACE, "mine")
    assert node is not None
    meta = node.session
    assert (meta.label, meta.workflow_mode, meta.metadata) == ("Mine", "plan", '{"b":1,"a":null}')
    assert meta.status is SessionStatus.ARCHIVED
    assert meta.behind
    assert node.document.config == SessionConfig(system_prompt="fixed", skills=[])
    assert node.document.refs == (done.ids["b"],)
    slots = (await store.sessions.slots(SPACE, ["mine"]))["mine"]
    found = [present(slot) for slot in (slots.system_prompt, slots.insight, slots.memory)]
    assert [slot and slot.content for slot in found] == ["slot", "look", "outside"]
    await assert_whole(store)


@pytest.mark.parametrize("prompt", [None, "same", "other"])
async def test_a_fork_inherits_nothing_that_it_does_not_have(store: Store, prompt: str | None) -> None:
    source = draft(
        "a",
        "one",
        workflow_mode="plan",
        metadata="{}",
        system_prompt="same",
        config=SessionConfig(system_prompt="same", skills=["s"]),
    )
    fork = draft("b", "two", source="a", parent="a", at_seq=1, system_prompt=prompt)
    done = await load(store, reading(source, fork))
    node = await store.tree.node(SPACE, done.ids["b"])
    assert node is not None
    assert (node.session.workflow_mode, node.session.metadata) == (None, None)
    assert node.document.config is None or node.document.config.given() == {}
    slot = present((await store.sessions.slots(SPACE, [node.id]))[node.id].system_prompt)
    assert (slot and slot.content) == prompt


async def test_roots_are_imported_under_the_given_parent(store: Store) -> None:
    await store.tree.create(SPACE, NewSession(id="top"))
    done = await load(store, reading(draft("a", "one"), draft("b", source="a", at_seq=1)), parent_id="top")
    nodes = {node.id: node for node in await nodes_of(store)}
    assert {nodes[id].parent_id for id in done.ids.values()} == {"top"}


async def test_large_logs_are_split_into_commits(store: Store) -> None:
    large = [CustomEvent(name="blob", data=f'"{"x" * 3_000_000}"') for _ in range(4)]
    many = [UserMessage(content=str(number)) for number in range(2_500)]
    done = await import_reading(store, SPACE, reading(ForeignSession("a", None, [*large, *many])))
    assert done.events == 2_504
    meta = await store.sessions.get(SPACE, done.ids["a"])
    assert meta is not None
    assert [event["content"] for event in plain(await log_of(store, meta))[4:]] == [str(n) for n in range(2_500)]
    await assert_whole(store)


def timed(*times: int | None) -> list[Event]:
    """A message for each time."""
    return [UserMessage(content=str(index), timestamp=time) for index, time in enumerate(times)]


async def times_of(store: Store, id: str) -> list[int | None]:
    meta = await store.sessions.get(SPACE, id)
    assert meta is not None
    return [event.timestamp for event in await log_of(store, meta)]


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_event_without_a_time_gets_that_of_a_neighbor(store: Store, streamed: bool) -> None:
    given = timed(None, None, 1_000, None, 3_000, None, 2_000, None)
    session = ForeignSession("a", None, [] if streamed else given, id="a")
    await import_steps(store, [session, *(ForeignEvent("a", event) for event in (given if streamed else []))])
    assert await times_of(store, "a") == [1_000, 1_000, 1_000, 1_000, 3_000, 3_000, 2_000, 2_000]


async def test_a_fork_begins_with_times_of_its_source(store: Store) -> None:
    source, fork = ForeignSession("a", None, id="a"), ForeignSession("b", None, id="b", source="a", at_seq=1)
    of_source = [ForeignEvent("a", event) for event in timed(None, None)]
    of_fork = [ForeignEvent("b", event) for event in timed(None, 5_000)]
    await import_steps(store, [source, *of_source, fork, *of_fork])
    assert await times_of(store, "b") == [(await times_of(store, "a"))[0], 5_000, 5_000]
    source, fork = (replace(each, key=each.key * 2, id=each.key * 2) for each in (source, fork))
    fork = replace(fork, source="aa")
    of_source = [ForeignEvent("aa", event) for event in timed(1_000, None)]
    await import_steps(store, [source, *of_source, fork, ForeignEvent("bb", UserMessage(content="x"))])
    assert await times_of(store, "bb") == [1_000, 1_000]


async def test_events_of_a_log_without_times_all_have_the_time_of_the_import(store: Store) -> None:
    events = [ForeignEvent("a", event) for event in timed(*[None] * 2_500)]
    await import_steps(store, [ForeignSession("a", None, id="a"), *events])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    [time] = set(await times_of(store, "a"))
    assert time is not None
    assert time <= meta.updated_at


@pytest.mark.parametrize("logs", [1, 40])
def test_events_that_wait_for_a_time_take_bounded_memory(logs: int) -> None:
    """Those of all logs together; what is passed on keeps its order in each log."""
    timeline = Timeline()
    given: list[ForeignEvent] = []
    passed: list[Step] = []
    for index in range(200):
        given.append(ForeignEvent(f"{index % logs}", UserMessage(content=f"{index} ".ljust(50_000))))
        passed += timeline.add(given[-1:])
        assert 50_000 * (len(given) - len(passed)) <= WAITING_WEIGHT
    passed += timeline.settle()
    for key in range(logs):
        assert [step for step in passed if step.key == f"{key}"] == [step for step in given if step.key == f"{key}"]


async def test_a_log_imported_again_is_recognized_when_its_times_are_known(store: Store) -> None:
    session = ForeignSession("a", None, id="a")
    await import_steps(store, [session, *(ForeignEvent("a", event) for event in timed(None, None))])
    again = await import_steps(store, [session, *(ForeignEvent("a", event) for event in timed(None, None, 7_000))])
    assert (again.sessions, again.forks, again.events) == (0, 0, 1)
    assert (await times_of(store, "a"))[2] == 7_000


async def test_a_log_without_an_id_keeps_the_one_derived_from_it(store: Store) -> None:
    session = ForeignSession("a", None, timed(None, None))
    first = await import_steps(store, [session])
    again = await import_steps(store, [replace(session, events=timed(None, None, 7_000))])
    assert (again.sessions, again.ids) == (0, first.ids)


async def test_a_label_that_is_too_long_is_cut_with_a_warning(store: Store) -> None:
    done = await load(store, reading(draft("a", label="x" * 501)))
    meta = await store.sessions.get(SPACE, done.ids["a"])
    assert meta is not None
    assert meta.label == "x" * 500
    assert done.warnings == ["1 label cut to 500 characters"]


@pytest.mark.parametrize(
    ("refused", "kind", "message"),
    [
        (draft("bad", id="taken"), errors.DuplicateId, "session bad: id: 'taken' is taken"),
        (
            ForeignSession("bad", None, [UserMessage(content="x"), TurnEnd(turn_id="never")]),
            errors.BadInput,
            r"session bad: events\[1\].turnEnd.turnId: turn 'never' was never started",
        ),
        (draft("bad", source="a", at_seq=9), errors.BadInput, "session bad: atSeq: must be 0 to the head 1, is 9"),
        (draft("bad", "x", memory="m", memory_at_seq=2), errors.BadInput, "session bad: atSeq: must be 0 to the head"),
        (draft("bad", refs=("bad",)), errors.InvalidRef, "session bad: .* can't refer to itself"),
        (draft("bad", system_prompt="x" * 1_048_577), errors.PayloadTooLarge, "session bad: content: takes 1048576"),
        (draft("bad", memory="x" * 1_048_577), errors.PayloadTooLarge, "session bad: content: takes 1048576 bytes"),
    ],
)
async def test_what_is_refused_leaves_nothing_behind(
    store: Store, refused: ForeignSession, kind: type[errors.SapwoodError], message: str
) -> None:
    await store.tree.create(SPACE, NewSession(id="taken"))
    first = draft("a", "one")
    with pytest.raises(kind, match=message):
        await load(store, reading(first, draft("b", parent="a", source="a", at_seq=1), refused))
    assert [node.id for node in await nodes_of(store)] == ["taken"]
    assert len(await store.database.read(lambda queries: queries.all_logs())) == 0
    await assert_whole(store)


async def test_an_unknown_parent_is_refused(store: Store) -> None:
    with pytest.raises(errors.NotFound, match="session a: parentId: no session 'none'"):
        await load(store, reading(draft("a", "one")), parent_id="none")
    assert await nodes_of(store) == []
