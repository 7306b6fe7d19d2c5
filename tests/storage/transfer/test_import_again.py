"""What is there already is found again, gone on with where a log has grown, and forked where it differs."""

import asyncio
import itertools
import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pytest

from storage.events import (
    CustomEvent,
    Event,
    SurfaceHide,
    SurfaceOp,
    SurfaceOpKind,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.session import MAX_LABEL, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Logged, Renamed, Step
from storage.transfer.importing import Import, Imported, NotYet, Target
from storage.transfer.importing.engine import OPEN_LOGS
from storage.transfer.importing.log import MAX_EVENT_BYTES
from tests.conftest import OpenStore
from tests.effort import LONG
from tests.storage.large_logs import suited
from tests.storage.spaces import SPACE, assert_whole, bring, contents, log_of, nodes_of
from tests.storage.transfer.formats.logs import DATA, OASST

LOGS = sorted(
    str(path.relative_to(DATA)) for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj", ".yaml")
)
LINES = [name for name in LOGS if name.endswith(".jsonl") and name != OASST and "openhands" not in name]


def said(*contents: str) -> list[Event]:
    return [UserMessage(content=content) for content in contents]


def lines_of(id: str, *contents: str, **header: Any) -> bytes:
    """One of our own files, of one session."""
    first = {"type": "session", "format": "sapwood", "version": 1, "id": id, **header}
    events = [{"seq": seq, "type": "user/message", "content": content} for seq, content in enumerate(contents)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in (first, *events))


def chat(*contents: str) -> bytes:
    return json.dumps([{"role": "user", "content": content} for content in contents]).encode()


async def take(store: Store, steps: Iterable[Step], *, defer: bool = False, space: str = SPACE) -> Imported:
    run = Import(Target(store, space), "made", ImportWarnings(), again=True, defer=defer)
    await run.take(list(steps))
    return await run.finish()


async def texts(store: Store, id: str, space: str = SPACE) -> list[str]:
    meta = await store.sessions.get(space, id)
    assert meta is not None
    return [event.content if isinstance(event, UserMessage) else event.type for event in await log_of(store, meta)]


@pytest.mark.parametrize("name", LOGS)
async def test_a_real_log_that_comes_again_adds_nothing(store: Store, name: str) -> None:
    content = suited(store, name)
    first = await bring(store, name, content)
    before = await contents(store)
    assert first.sessions > 0
    again = await bring(store, name, content)
    assert (again.sessions, again.forks, again.nodes, again.events) == (0, 0, 0, 0)
    assert again.known == len(again.ids)
    assert again.ids == first.ids
    assert await contents(store) == before
    await assert_whole(store)


@pytest.mark.parametrize("name", LINES)
async def test_a_real_log_that_has_grown_is_gone_on_with(store: Store, name: str) -> None:
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    for size in sorted({1, len(lines) // 3 + 1, len(lines) // 2 + 1, len(lines)}):
        await bring(store, name, b"".join(lines[:size]), format=format_of(name))
    await bring(store, name, space="other")
    # A log without an id is named by what it began with.
    grown, whole = [list((await contents(store, space)).values()) for space in (SPACE, "other")]
    assert len(grown) == len(whole)
    for first, second in zip(grown, whole, strict=True):
        assert untimed(first["events"]) == untimed(second["events"])
        assert first["session"] == second["session"]
    await assert_whole(store)


def formats_of(name: str) -> str | None:
    return {"pi-mono": "pi"}.get(name.split("/", maxsplit=1)[0], name.split("/", maxsplit=1)[0])


def format_of(name: str) -> str:
    folder = name.split("/", maxsplit=1)[0]
    return {"pi-mono": "pi"}.get(folder, folder)


def untimed(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without times, which are those of recording where the log has none."""
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in found]


async def test_a_log_that_differs_becomes_a_fork_at_the_difference(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two", "three"))
    differing = lines_of("a", "one", "zwei", "drei", label="Other")
    done = await bring(store, "a", differing)
    assert (done.sessions, done.forks, done.known, done.events) == (1, 1, 0, 2)
    assert done.warnings == ["1 session differed from the one here and became a fork of it"]
    node = await store.tree.node(SPACE, "a.2")
    assert node is not None
    assert (node.document.source_session_id, node.document.fork_seq, node.session.label) == ("a", 1, "Other")
    assert await texts(store, "a.2") == ["one", "zwei", "drei"]
    again = await bring(store, "a", differing)
    assert (again.sessions, again.known, again.events, again.warnings) == (0, 1, 0, [])
    longer = await bring(store, "a", lines_of("a", "one", "zwei", "drei", "vier"))
    assert (longer.sessions, longer.known, longer.events) == (0, 1, 1)
    third = await bring(store, "a", lines_of("a", "one", "zwei", "trois"))
    assert list(third.ids.values()) == ["a.3"]
    assert await texts(store, "a.3") == ["one", "zwei", "trois"]
    assert await texts(store, "a") == ["one", "two", "three"]
    await assert_whole(store)


async def test_a_log_that_shares_nothing_with_the_one_of_its_id_is_a_session_of_its_own(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one"))
    done = await bring(store, "a", lines_of("a", "eins"))
    assert (done.sessions, done.forks) == (1, 0)
    assert await texts(store, "a.2") == ["eins"]
    assert (await bring(store, "a", lines_of("a", "eins", "zwei"))).ids == done.ids
    assert await texts(store, "a.2") == ["eins", "zwei"]


async def test_a_shorter_version_of_a_log_adds_nothing(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    done = await bring(store, "a", lines_of("a", "one"))
    assert (done.sessions, done.known, done.events, done.warnings) == (0, 1, 0, [])


async def test_equal_conversations_of_one_file_stay_apart_and_are_found_again(store: Store) -> None:
    document = b"[" + b",".join([chat("same"), chat("same"), chat("other")]) + b"]"
    first = await bring(store, "chats", document)
    assert first.sessions == 3
    assert len(set(first.ids.values())) == 3
    again = await bring(store, "chats", document)
    assert (again.sessions, again.known, again.events) == (0, 3, 0)


async def test_a_conversation_without_an_id_is_found_when_it_has_grown(store: Store) -> None:
    contents = [f"message {number}" for number in range(200)]
    for size in (1, 2, 3, 40, 64, 65, 200, 100):
        done = await bring(store, "chat", chat(*contents[:size]))
        assert done.sessions == (size == 1)
    [id] = done.ids.values()
    assert [text for text in await texts(store, id) if text.startswith("message")] == contents


async def test_a_conversation_that_begins_like_another_one_shares_its_beginning(store: Store) -> None:
    shared = [f"message {number}" for number in range(70)]
    first = await bring(store, "one", chat(*shared, "left"))
    second = await bring(store, "two", chat(*shared, "right"))
    assert (second.sessions, second.forks) == (1, 1)
    assert set(first.ids.values()) & set(second.ids.values()) == set()
    [id] = second.ids.values()
    assert [text for text in await texts(store, id) if not text.startswith("turn/")] == [*shared, "right"]
    for name, last in (("one", "left"), ("two", "right")):
        assert (await bring(store, name, chat(*shared, last))).events == 0


async def test_what_people_add_here_does_not_stand_in_the_way_of_a_log_that_grows(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    await store.sessions.append(SPACE, "a", [SurfaceHide(from_seq=0, to_seq=1)])
    done = await bring(store, "a", lines_of("a", "one", "two", "three"))
    assert (done.sessions, done.known, done.events, done.warnings) == (0, 1, 1, [])
    await store.sessions.append(SPACE, "a", [SurfaceHide(from_seq=1, to_seq=2)])
    assert (await bring(store, "a", lines_of("a", "one", "two", "three", "four"))).events == 1
    assert await texts(store, "a") == ["one", "two", "surface/hide", "three", "surface/hide", "four"]
    assert (await bring(store, "a", lines_of("a", "one", "two", "three", "four"))).events == 0


async def test_seqs_that_a_log_names_follow_what_was_added_here(store: Store) -> None:
    steps: list[Step] = [ForeignSession("a", None, id="a"), *(Logged("a", event) for event in said("one", "two"))]
    await take(store, steps)
    await store.sessions.append(SPACE, "a", [SurfaceHide(from_seq=0, to_seq=1)])
    steps += [Logged("a", UserMessage(content="three")), Logged("a", SurfaceHide(from_seq=2, to_seq=3))]
    await take(store, steps)
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    last = (await log_of(store, meta))[-1]
    assert isinstance(last, SurfaceHide)
    assert (last.from_seq, last.to_seq) == (3, 4)


async def test_a_session_that_is_refused_costs_only_itself(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one"))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    done = await bring(store, "ab", lines_of("a", "one", "two") + lines_of("b", "eins"))
    assert list(done.refused) == ["a"]
    assert "archived" in done.refused["a"].lower()
    assert await texts(store, "a") == ["one"]
    assert await texts(store, "b") == ["eins"]


async def test_an_event_that_the_log_refuses_is_kept_in_another_form(store: Store) -> None:
    events = [TurnStart(turn_id="t"), *said("one"), TurnEnd(turn_id="never"), *said("two")]
    steps: list[Step] = [ForeignSession("a", None, id="a"), *(Logged("a", event) for event in events)]
    done = await take(store, steps)
    assert done.warnings == ["1 turn/end event refused by the log kept in another form"]
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    kept = (await log_of(store, meta))[2]
    assert isinstance(kept, CustomEvent)
    assert (kept.name, json.loads(kept.data)["turnId"]) == ("turn/end", "never")
    again = await take(store, steps)
    assert (again.sessions, again.known, again.events) == (0, 1, 0)


async def test_an_event_that_the_log_refuses_in_two_forms_is_found_again(store: Store) -> None:
    """A replacement in a turn that was never started: refused as such, as a message, and kept as custom."""
    op = SurfaceOp(op=SurfaceOpKind.REPLACE, start=0, end=0)
    summary = UserMessage(content="summary", turn_id="never", surface_op=op)
    steps: list[Step] = [ForeignSession("a", None, id="a")]
    steps += [Logged("a", event) for event in (*said("one"), summary, *said("two"))]
    done = await take(store, steps)
    assert done.warnings == ["2 user/message events refused by the log kept in another form"]
    assert await texts(store, "a") == ["one", "custom", "two"]
    again = await take(store, steps)
    assert (again.sessions, again.known, again.events, again.warnings) == (0, 1, 0, [])


@pytest.mark.parametrize(
    "data",
    [
        {f"path/{number}": {"a": number} for number in range(400_000)},
        list(range(1_500_000)),
        [[[list(range(10))] * 10] * 10] * 3_000,
        {"deep": [{"text": "🌳" * 3_000_000}, {"text": '"' * 3_000_000}]},
    ],
    ids=["fields", "numbers", "lists", "texts"],
)
async def test_json_that_is_too_large_is_cut_whatever_makes_it_so(store: Store, data: Any) -> None:
    events = [CustomEvent(name="snapshot", data=json.dumps(data)), *said("after")]
    steps: list[Step] = [ForeignSession("a", None, id="a"), *(Logged("a", event) for event in events)]
    done = await take(store, steps)
    assert done.warnings == [f"1 event over {MAX_EVENT_BYTES} bytes cut to fit"]
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    cut, after = await log_of(store, meta)
    assert isinstance(cut, CustomEvent) and after.type == "user/message"
    assert "cut, it had" in cut.data
    assert len(cut.data.encode()) > MAX_EVENT_BYTES // 20
    assert (await take(store, steps)).events == 0


async def test_a_record_that_was_torn_and_is_whole_now_is_not_passed_over(store: Store) -> None:
    whole = lines_of("a", "one", "two", "three")
    lines = whole.splitlines(keepends=True)
    await bring(store, "a", b"".join([*lines[:2], lines[2][:20] + b"\n", lines[3]]))
    assert await texts(store, "a") == ["one", "custom", "three"]
    done = await bring(store, "a", whole)
    assert done.warnings == ["1 session differed from the one here and became a fork of it"]
    assert await texts(store, "a.2") == ["one", "two", "three"]


async def test_an_event_that_is_too_large_is_cut_and_found_again(store: Store) -> None:
    steps: list[Step] = [
        ForeignSession("a", None, id="a"),
        *(Logged("a", event) for event in said("x" * 9_000_000, "after")),
    ]
    done = await take(store, steps)
    assert done.warnings == [f"1 event over {MAX_EVENT_BYTES} bytes cut to fit"]
    [cut, after] = await texts(store, "a")
    assert cut.endswith("… (cut, it had 9000000 characters)")
    assert len(cut) > 4_000_000
    assert after == "after"
    assert (await take(store, steps)).events == 0


async def test_a_session_of_another_file_is_waited_for_and_done_without_at_last(store: Store) -> None:
    child: list[Step] = [
        ForeignSession("c", None, id="c", parent_id="p"),
        *(Logged("c", event) for event in said("one")),
    ]
    with pytest.raises(NotYet):
        await take(store, child, defer=True)
    assert await nodes_of(store) == []
    alone = await take(store, child)
    assert alone.warnings == ["1 session lost its parent, which is not here"]
    await take(store, [ForeignSession("p", None, id="p")], space="other")
    assert (await take(store, child, defer=True, space="other")).warnings == []
    nodes = {node.id: node for node in await nodes_of(store, "other")}
    assert nodes["c"].parent_id == "p"


@pytest.mark.parametrize(("at_most", "shared"), [(None, 3), (2, 2), (9, 3)])
async def test_a_log_that_repeats_another_is_a_fork_as_far_as_it_does(
    store: Store, at_most: int | None, shared: int
) -> None:
    await bring(store, "a", lines_of("a", "one", "two", "three", "four"))
    session = ForeignSession("b", None, id="b", repeats="a", repeats_at_most=at_most)
    steps: list[Step] = [session, *(Logged("b", event) for event in said("one", "two", "three", "vier"))]
    done = await take(store, steps)
    assert (done.sessions, done.forks, done.events) == (1, 1, 4 - shared)
    node = await store.tree.node(SPACE, "b")
    assert node is not None
    assert (node.document.source_session_id, node.document.fork_seq) == ("a", shared)
    assert await texts(store, "b") == ["one", "two", "three", "vier"]
    assert (await take(store, steps)).events == 0
    await assert_whole(store)


async def test_a_log_that_is_a_whole_beginning_of_another_is_a_fork_when_it_ends(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    session = ForeignSession("b", "B", id="b", repeats="a")
    done = await take(store, [session, *(Logged("b", event) for event in said("one"))])
    assert (done.sessions, done.forks, done.events) == (1, 1, 0)
    assert await texts(store, "b") == ["one"]


async def test_a_parent_may_be_told_after_its_child(store: Store) -> None:
    child = ForeignSession("c", None, id="c", parent="p", refs=("r", "p"))
    done = await take(store, [child, ForeignSession("p", None, id="p"), ForeignSession("r", None, id="r")])
    assert done.warnings == ["1 reference refused by the forest left out"]
    nodes = {node.id: node for node in await nodes_of(store)}
    assert (nodes["c"].parent_id, nodes["c"].document.refs) == ("p", ("r",))
    lost = await take(store, [ForeignSession("d", None, id="d", parent="none", refs=("none",))])
    assert lost.warnings == [
        "1 session lost its parent, which is not in the file",
        "1 reference lost its end, which is not in the file",
    ]


async def test_a_label_that_comes_late_names_the_session(store: Store) -> None:
    start: list[Step] = [ForeignSession("a", "first", id="a"), *(Logged("a", event) for event in said("one"))]
    await take(store, [*start, Renamed("a", "second")])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and meta.label == "second"
    await store.sessions.update(SPACE, "a", {"label": "by hand"})
    await take(store, [*start, Renamed("a", "second")])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and meta.label == "by hand"
    more: list[Step] = [Logged("a", UserMessage(content="two")), Renamed("a", "third")]
    await take(store, [*start, Renamed("a", "second"), *more])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and (meta.label, meta.head) == ("by hand", 2)


async def test_a_label_that_is_all_that_has_grown_names_the_session(store: Store) -> None:
    named: list[Step] = [ForeignSession("a", None, id="a"), *(Logged("a", event) for event in said("one"))]
    for label in ("first", "second", "third " * 200):
        named.append(Renamed("a", label))
        await take(store, named)
        meta = await store.sessions.get(SPACE, "a")
        assert meta is not None and meta.label == label[:MAX_LABEL]
    await take(store, named)


async def test_an_import_that_was_cut_off_is_completed_by_the_next(store: Store) -> None:
    given: dict[str, Any] = {"memory": "m", "insight": "i", "systemPrompt": "p", "status": "ARCHIVED", "refs": ["b"]}
    whole = lines_of("a", "one", "two", **given) + lines_of("b")
    cut_off = Import(Target(store, SPACE), "made", ImportWarnings(), again=True)
    await cut_off.take([ForeignSession("a", "Root", id="a"), *(Logged("a", event) for event in said("one"))])
    await cut_off.settle()
    done = await bring(store, "a", whole)
    assert (done.known, done.sessions, done.events, done.warnings) == (1, 1, 1, [])
    await bring(store, "a", whole, space="other")
    found, expected = await contents(store), await contents(store, "other")
    assert found.keys() == expected.keys()
    for id in found:
        first, second = found[id], expected[id]
        assert untimed(first.pop("events")) == untimed(second.pop("events"))
        first.pop("totals"), second.pop("totals")
        assert first == second
    before = await contents(store)
    assert (await bring(store, "a", whole)).refused == {}
    assert await contents(store) == before
    await assert_whole(store)


async def test_what_was_changed_here_since_an_import_stays(store: Store) -> None:
    whole = lines_of("a", "one", memory="m", insight="i", status="ARCHIVED") + lines_of("b", "eins", parentId="a")
    await bring(store, "a", whole)
    await store.sessions.set_status(SPACE, "a", SessionStatus.ACTIVE)
    await store.sessions.put_slot(SPACE, SlotWrite("a", SlotName.MEMORY, "new"))
    await store.sessions.clear_insight(SPACE, "a", None)
    await store.tree.move(SPACE, "b", None)
    before = await contents(store)
    await bring(store, "a", whole)
    assert await contents(store) == before


async def test_forks_nested_deeper_than_the_forest_stand_beside_each_other(store: Store) -> None:
    steps: list[Step] = [ForeignSession("0", None, id="0")]
    steps += [ForeignSession(f"{n}", None, id=f"{n}", parent=f"{n - 1}") for n in range(1, 260)]
    steps.append(Logged("259", UserMessage(content="last")))
    done = await take(store, steps)
    assert (done.refused, done.warnings) == ({}, ["3 sessions put beside the parent, as nothing can stand deeper"])
    nodes = {node.id: node.parent_id for node in await nodes_of(store)}
    assert [nodes[id] for id in ("256", "257", "258", "259")] == ["255", "255", "255", "255"]
    assert await texts(store, "259") == ["last"]
    assert (await take(store, steps)).known == 260
    await assert_whole(store)


async def test_a_child_that_came_before_its_parent_is_put_under_it(store: Store) -> None:
    child: list[Step] = [ForeignSession("c", None, id="c", parent_id="p")]
    await take(store, child)
    await take(store, [ForeignSession("p", None, id="p")])
    assert (await take(store, child)).warnings == []
    assert {node.id: node.parent_id for node in await nodes_of(store)} == {"p": None, "c": "p"}
    await store.tree.move(SPACE, "c", None)
    assert (await take(store, child)).warnings == []
    assert {node.id: node.parent_id for node in await nodes_of(store)} == {"p": None, "c": None}


async def test_a_log_that_its_source_has_archived_goes_on_and_is_archived_again(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", status="ARCHIVED", memory="m"))
    again = await bring(store, "a", lines_of("a", "one", status="ARCHIVED", memory="m"), dry=True)
    assert (again.refused, again.known) == ({}, 1)
    more = lines_of("a", "one", "two", status="ARCHIVED", memory="m") + lines_of("b", "eins", parentId="a")
    done = await bring(store, "a", more)
    assert (done.refused, done.events) == ({}, 2)
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and meta.status is SessionStatus.ARCHIVED
    assert await texts(store, "a") == ["one", "two"]


async def test_a_reference_that_was_removed_here_stays_away(store: Store) -> None:
    whole = lines_of("a", "one", refs=["b"]) + lines_of("b", "eins")
    await bring(store, "a", whole)
    await store.tree.remove_ref(SPACE, "a", "b")
    await bring(store, "a", whole)
    assert {node.id: node.document.refs for node in await nodes_of(store)} == {"a": (), "b": ()}


async def test_a_log_that_repeats_a_longer_one_waits_for_it_to_be_that_long(store: Store) -> None:
    await take(store, [ForeignSession("p", None, id="p"), *(Logged("p", event) for event in said("one"))])
    child: list[Step] = [ForeignSession("c", None, id="c", repeats="p", repeats_at_most=2)]
    child += [Logged("c", event) for event in said("one", "two", "three")]
    with pytest.raises(NotYet):
        await take(store, child, defer=True)
    await take(store, [ForeignSession("p", None, id="p"), *(Logged("p", event) for event in said("one", "two"))])
    await take(store, child, defer=True)
    node = await store.tree.node(SPACE, "c")
    assert node is not None
    assert (node.document.source_session_id, node.document.fork_seq) == ("p", 2)


async def test_the_label_that_a_fork_has_inherited_gives_way_to_its_own(store: Store) -> None:
    start: list[Step] = [ForeignSession("a", "first", id="a"), *(Logged("a", event) for event in said("one"))]
    start.append(ForeignSession("f", None, id="f", parent="a", source="a", at_seq=1, counted=False))
    await take(store, start)
    await take(store, [*start, Logged("f", said("two")[0]), Renamed("f", "own")])
    meta = await store.sessions.get(SPACE, "f")
    assert meta is not None and meta.label == "own"


@pytest.mark.parametrize("seed", [1, 2, 3] if LONG else [1])
async def test_logs_that_are_told_in_turns_come_in_whole_and_in_order(store: Store, seed: int) -> None:
    random = Random(seed)
    keys = [f"s{number}" for number in range(OPEN_LOGS * 2 + 7)]
    steps: list[Step] = []
    expected: dict[str, list[str]] = {}
    children: dict[str | None, list[str]] = {}
    for number in itertools.count():
        fresh = len(expected) < len(keys) and random.random() < 0.3
        if fresh:
            key = keys[len(expected)]
            parent = random.choice([None, *expected])
            source = random.choice([None, *expected])
            at_seq = random.randint(0, len(expected[source])) if source is not None else 0
            steps.append(ForeignSession(key, key, id=key, parent=parent, source=source, at_seq=at_seq))
            expected[key] = expected[source][:at_seq] if source is not None else []
            children.setdefault(parent, []).append(key)
        elif expected:
            key = random.choice(list(expected))
            content = str(number) * random.choice([1, 1, 1, 20_000])
            steps.append(Logged(key, UserMessage(content=content)))
            expected[key].append(content)
        if len(expected) == len(keys) and number > 1_500:
            break
    done = await take(store, steps)
    assert done.sessions == len(keys)
    assert {key: await texts(store, key) for key in keys} == expected
    found = await nodes_of(store)
    assert {parent: [node.id for node in found if node.parent_id == parent] for parent in children} == children
    again = await take(store, steps)
    assert (again.sessions, again.known, again.events) == (0, len(keys), 0)
    await assert_whole(store)


COUNTS = ("sessions", "forks", "nodes", "known", "events", "warnings", "ids", "refused")


@pytest.mark.parametrize("name", LOGS)
async def test_a_dry_run_counts_like_a_real_one_and_writes_nothing(store: Store, name: str) -> None:
    content = suited(store, name)
    dry = await bring(store, name, content, dry=True)
    assert await nodes_of(store) == []
    real = await bring(store, name, content)
    assert [getattr(dry, count) for count in COUNTS] == [getattr(real, count) for count in COUNTS]


@pytest.mark.parametrize("name", LINES)
async def test_a_dry_run_goes_on_with_what_is_there(store: Store, name: str) -> None:
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    await bring(store, name, b"".join(lines[: len(lines) // 2 + 1]), format=format_of(name))
    before = await contents(store)
    dry = await bring(store, name, dry=True)
    assert await contents(store) == before
    real = await bring(store, name)
    assert [getattr(dry, count) for count in COUNTS] == [getattr(real, count) for count in COUNTS]


async def test_a_dry_run_knows_where_the_forks_there_part(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    for last in ("three", "four"):
        await bring(store, "a", lines_of("a", "one", last))
    for last in ("three", "five"):
        dry = await bring(store, "a", lines_of("a", "one", last), dry=True)
        real = await bring(store, "a", lines_of("a", "one", last))
        assert [getattr(dry, count) for count in COUNTS] == [getattr(real, count) for count in COUNTS]


async def test_a_dry_run_refuses_what_an_archived_session_refuses(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one"))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    dry = await bring(store, "a", lines_of("a", "one", "two"), dry=True)
    real = await bring(store, "a", lines_of("a", "one", "two"))
    assert dry.refused == real.refused
    assert list(real.refused) == list(real.ids)


async def test_imports_of_one_growing_log_at_a_time_append_nothing_twice(store: Store) -> None:
    runs = [Import(Target(store, SPACE), "made", ImportWarnings(), again=True) for _ in range(2)]
    events = said("one", "two", "three", "four")
    for run in runs:
        await run.take([ForeignSession("a", None, id="a")])
    for event in events:
        for run in runs:
            await run.take([Logged("a", event)])
            await run.settle()
    done = [await run.finish() for run in runs]
    assert await texts(store, "a") == ["one", "two", "three", "four"]
    assert sum(each.events for each in done) == 4
    assert [each.known for each in done] == [0, 1]
    await assert_whole(store)


async def test_imports_of_the_same_logs_at_a_time_make_each_session_once(store: Store, open_store: OpenStore) -> None:
    trees = b"".join((DATA / OASST).read_bytes().splitlines(keepends=True)[:5])
    logs = {"trees": trees, "claude-code/session-624a4a58.jsonl": None, "codex": lines_of("a", *map(str, range(3_000)))}
    stores = [store, await open_store(), await open_store()]
    done = await asyncio.gather(*(bring(each, name, content) for each in stores for name, content in logs.items()))
    assert [each.refused for each in done] == [{}] * len(done)
    alone = [await bring(store, name, content, space="alone") for name, content in logs.items()]
    found, expected = await contents(store), await contents(store, "alone")
    assert {id: untimed(each["events"]) for id, each in found.items()} == {
        id: untimed(each["events"]) for id, each in expected.items()
    }
    for count in ("events", "sessions", "forks", "nodes"):
        assert sum(getattr(each, count) for each in done) == sum(getattr(each, count) for each in alone)
    await assert_whole(store)


async def test_what_others_say_in_a_followed_session_makes_its_log_go_on_in_a_fork(store: Store) -> None:
    run = Import(Target(store, SPACE), "made", ImportWarnings(), again=True)
    await run.take([ForeignSession("a", None, id="a"), Logged("a", said("one")[0])])
    await run.settle()
    await store.sessions.append(SPACE, "a", said("between"))
    await run.take([Logged("a", said("two")[0])])
    done = await run.finish()
    assert await texts(store, "a") == ["one", "between"]
    assert await texts(store, "a.2") == ["one", "two"]
    assert (done.sessions, done.forks, done.known, done.events) == (2, 1, 0, 2)
    assert done.warnings == ["1 session differed from the one here and became a fork of it"]
    await assert_whole(store)
