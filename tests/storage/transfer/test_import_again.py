"""Importing a log again: what is stored is found, a log that has grown is continued, one that differs is forked."""

from typing import Any

import pytest

from storage.events import (
    SurfaceHide,
    UserMessage,
)
from storage.session import MAX_LABEL, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignLabel, ForeignSession, ImportWarnings, Step
from storage.transfer.importing import Import, Target
from tests.storage.large_logs import suited
from tests.storage.spaces import SPACE, assert_whole, bring, contents, log_of
from tests.storage.transfer.formats.logs import DATA
from tests.storage.transfer.imports import (
    LINES,
    LOGS,
    chat,
    format_of,
    import_steps,
    lines_of,
    texts,
    untimed,
    user_messages,
)


@pytest.mark.parametrize("name", LOGS)
async def test_importing_a_real_log_again_adds_nothing(store: Store, name: str) -> None:
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
async def test_a_real_log_that_has_grown_is_continued(store: Store, name: str) -> None:
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    for size in sorted({1, len(lines) // 3 + 1, len(lines) // 2 + 1, len(lines)}):
        await bring(store, name, b"".join(lines[:size]), format=format_of(name))
    await bring(store, name, space="other")
    # The id of a log without one depends on how long the log was at first, so compare the sessions in order.
    grown, whole = [list((await contents(store, space)).values()) for space in (SPACE, "other")]
    assert len(grown) == len(whole)
    for first, second in zip(grown, whole, strict=True):
        assert untimed(first["events"]) == untimed(second["events"])
        assert first["session"] == second["session"]
    await assert_whole(store)


async def test_a_log_that_differs_becomes_a_fork_at_the_difference(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two", "three"))
    differing = lines_of("a", "one", "zwei", "drei", label="Other")
    done = await bring(store, "a", differing)
    assert (done.sessions, done.forks, done.known, done.events) == (1, 1, 0, 2)
    assert done.warnings == ["1 session differed from the stored one and became a fork of it"]
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


async def test_a_log_that_differs_from_its_first_event_on_is_a_new_session(store: Store) -> None:
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


async def test_a_grown_conversation_without_an_id_is_found(store: Store) -> None:
    contents = [f"message {number}" for number in range(200)]
    for size in (1, 2, 3, 40, 64, 65, 200, 100):
        done = await bring(store, "chat", chat(*contents[:size]))
        assert done.sessions == (size == 1)
    [id] = done.ids.values()
    assert [text for text in await texts(store, id) if text.startswith("message")] == contents


async def test_a_conversation_that_begins_like_another_becomes_a_fork(store: Store) -> None:
    shared = [f"message {number}" for number in range(70)]
    first = await bring(store, "one", chat(*shared, "left"))
    second = await bring(store, "two", chat(*shared, "right"))
    assert (second.sessions, second.forks) == (1, 1)
    assert set(first.ids.values()) & set(second.ids.values()) == set()
    [id] = second.ids.values()
    assert [text for text in await texts(store, id) if not text.startswith("turn/")] == [*shared, "right"]
    for name, last in (("one", "left"), ("two", "right")):
        assert (await bring(store, name, chat(*shared, last))).events == 0


async def test_a_log_is_continued_after_hides_that_were_added_here(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    await store.sessions.append(SPACE, "a", [SurfaceHide(from_seq=0, to_seq=1)])
    done = await bring(store, "a", lines_of("a", "one", "two", "three"))
    assert (done.sessions, done.known, done.events, done.warnings) == (0, 1, 1, [])
    await store.sessions.append(SPACE, "a", [SurfaceHide(from_seq=1, to_seq=2)])
    assert (await bring(store, "a", lines_of("a", "one", "two", "three", "four"))).events == 1
    assert await texts(store, "a") == ["one", "two", "surface/hide", "three", "surface/hide", "four"]
    assert (await bring(store, "a", lines_of("a", "one", "two", "three", "four"))).events == 0


async def test_seqs_that_a_log_names_are_shifted_by_what_was_added_here(store: Store) -> None:
    steps: list[Step] = [
        ForeignSession("a", None, id="a"),
        *(ForeignEvent("a", event) for event in user_messages("one", "two")),
    ]
    await import_steps(store, steps)
    await store.sessions.append(SPACE, "a", [SurfaceHide(from_seq=0, to_seq=1)])
    steps += [ForeignEvent("a", UserMessage(content="three")), ForeignEvent("a", SurfaceHide(from_seq=2, to_seq=3))]
    await import_steps(store, steps)
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    last = (await log_of(store, meta))[-1]
    assert isinstance(last, SurfaceHide)
    assert (last.from_seq, last.to_seq) == (3, 4)


async def test_a_late_label_renames_the_session_unless_a_user_has(store: Store) -> None:
    start: list[Step] = [
        ForeignSession("a", "first", id="a"),
        *(ForeignEvent("a", event) for event in user_messages("one")),
    ]
    await import_steps(store, [*start, ForeignLabel("a", "second")])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and meta.label == "second"
    await store.sessions.update(SPACE, "a", {"label": "by hand"})
    await import_steps(store, [*start, ForeignLabel("a", "second")])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and meta.label == "by hand"
    more: list[Step] = [ForeignEvent("a", UserMessage(content="two")), ForeignLabel("a", "third")]
    await import_steps(store, [*start, ForeignLabel("a", "second"), *more])
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and (meta.label, meta.head) == ("by hand", 2)


async def test_a_new_label_without_new_events_renames_the_session(store: Store) -> None:
    named: list[Step] = [
        ForeignSession("a", None, id="a"),
        *(ForeignEvent("a", event) for event in user_messages("one")),
    ]
    for label in ("first", "second", "third " * 200):
        named.append(ForeignLabel("a", label))
        await import_steps(store, named)
        meta = await store.sessions.get(SPACE, "a")
        assert meta is not None and meta.label == label[:MAX_LABEL]
    await import_steps(store, named)


async def test_an_interrupted_import_is_completed_by_the_next(store: Store) -> None:
    given: dict[str, Any] = {"memory": "m", "insight": "i", "systemPrompt": "p", "status": "ARCHIVED", "refs": ["b"]}
    whole = lines_of("a", "one", "two", **given) + lines_of("b")
    cut_off = Import(Target(store, SPACE), "made", ImportWarnings(), merge=True)
    await cut_off.apply(
        [ForeignSession("a", "Root", id="a"), *(ForeignEvent("a", event) for event in user_messages("one"))]
    )
    await cut_off.flush()
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


async def test_changes_made_here_since_an_import_stay(store: Store) -> None:
    whole = lines_of("a", "one", memory="m", insight="i", status="ARCHIVED") + lines_of("b", "eins", parentId="a")
    await bring(store, "a", whole)
    await store.sessions.set_status(SPACE, "a", SessionStatus.ACTIVE)
    await store.sessions.put_slot(SPACE, SlotWrite("a", SlotName.MEMORY, "new"))
    await store.sessions.clear_insight(SPACE, "a", None)
    await store.tree.move(SPACE, "b", None)
    before = await contents(store)
    await bring(store, "a", whole)
    assert await contents(store) == before


async def test_a_log_archived_by_its_source_is_continued_and_archived_again(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", status="ARCHIVED", memory="m"))
    again = await bring(store, "a", lines_of("a", "one", status="ARCHIVED", memory="m"), dry=True)
    assert (again.refused, again.known) == ({}, 1)
    more = lines_of("a", "one", "two", status="ARCHIVED", memory="m") + lines_of("b", "eins", parentId="a")
    done = await bring(store, "a", more)
    assert (done.refused, done.events) == ({}, 2)
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None and meta.status is SessionStatus.ARCHIVED
    assert await texts(store, "a") == ["one", "two"]


async def test_a_fork_replaces_its_inherited_label_by_its_own(store: Store) -> None:
    start: list[Step] = [
        ForeignSession("a", "first", id="a"),
        *(ForeignEvent("a", event) for event in user_messages("one")),
    ]
    start.append(ForeignSession("f", None, id="f", parent="a", source="a", at_seq=1, counted=False))
    await import_steps(store, start)
    await import_steps(store, [*start, ForeignEvent("f", user_messages("two")[0]), ForeignLabel("f", "own")])
    meta = await store.sessions.get(SPACE, "f")
    assert meta is not None and meta.label == "own"
