"""What the store refuses costs no more than itself: it is cut, stored in another form, or reported."""

import json
from typing import Any

import pytest

from storage.events import (
    CustomEvent,
    SurfaceOp,
    SurfaceOpKind,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.session import SessionStatus
from storage.store import Store
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, Step
from storage.transfer.importing.log import MAX_EVENT_BYTES
from tests.storage.spaces import SPACE, bring, log_of
from tests.storage.transfer.imports import import_steps, lines_of, texts, user_messages


async def test_a_refused_event_is_stored_in_another_form(store: Store) -> None:
    events = [TurnStart(turn_id="t"), *user_messages("one"), TurnEnd(turn_id="never"), *user_messages("two")]
    steps: list[Step] = [ForeignSession("a", None, id="a"), *(ForeignEvent("a", event) for event in events)]
    done = await import_steps(store, steps)
    assert done.warnings == ["1 turn/end event refused by the log and stored in another form"]
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    kept = (await log_of(store, meta))[2]
    assert isinstance(kept, CustomEvent)
    assert (kept.name, json.loads(kept.data)["turnId"]) == ("turn/end", "never")
    again = await import_steps(store, steps)
    assert (again.sessions, again.known, again.events) == (0, 1, 0)


async def test_an_event_refused_in_two_forms_is_recognized_again(store: Store) -> None:
    """A replacement in a turn that was never started is refused, also as a message, and stored as a custom event."""
    op = SurfaceOp(op=SurfaceOpKind.REPLACE, start=0, end=0)
    summary = UserMessage(content="summary", turn_id="never", surface_op=op)
    steps: list[Step] = [ForeignSession("a", None, id="a")]
    steps += [ForeignEvent("a", event) for event in (*user_messages("one"), summary, *user_messages("two"))]
    done = await import_steps(store, steps)
    assert done.warnings == ["2 user/message events refused by the log and stored in another form"]
    assert await texts(store, "a") == ["one", "custom", "two"]
    again = await import_steps(store, steps)
    assert (again.sessions, again.known, again.events, again.warnings) == (0, 1, 0, [])


@pytest.mark.parametrize(
    "data",
    [
        {f"path/{number}": {"a": number} for number in range(400_000)},
        list(range(1_500_000)),
        [[[list(range(10))] * 10] * 10] * 6_000,
        {"deep": [{"text": "🌳" * 3_000_000}, {"text": '"' * 3_000_000}]},
    ],
    ids=["fields", "numbers", "lists", "texts"],
)
async def test_json_that_is_too_large_is_cut(store: Store, data: Any) -> None:
    events = [CustomEvent(name="snapshot", data=json.dumps(data)), *user_messages("after")]
    steps: list[Step] = [ForeignSession("a", None, id="a"), *(ForeignEvent("a", event) for event in events)]
    done = await import_steps(store, steps)
    assert done.warnings == [f"1 event over {MAX_EVENT_BYTES} bytes cut to fit"]
    meta = await store.sessions.get(SPACE, "a")
    assert meta is not None
    cut, after = await log_of(store, meta)
    assert isinstance(cut, CustomEvent) and after.type == "user/message"
    assert "cut, it had" in cut.data
    assert len(cut.data.encode()) > MAX_EVENT_BYTES // 20
    assert (await import_steps(store, steps)).events == 0


async def test_a_record_that_was_broken_and_is_whole_now_is_imported(store: Store) -> None:
    whole = lines_of("a", "one", "two", "three")
    lines = whole.splitlines(keepends=True)
    await bring(store, "a", b"".join([*lines[:2], lines[2][:20] + b"\n", lines[3]]))
    assert await texts(store, "a") == ["one", "custom", "three"]
    done = await bring(store, "a", whole)
    assert done.warnings == ["1 session differed from the stored one and became a fork of it"]
    assert await texts(store, "a.2") == ["one", "two", "three"]


async def test_an_event_that_is_too_large_is_cut_and_recognized_again(store: Store) -> None:
    steps: list[Step] = [
        ForeignSession("a", None, id="a"),
        *(ForeignEvent("a", event) for event in user_messages("x" * 9_000_000, "after")),
    ]
    done = await import_steps(store, steps)
    assert done.warnings == [f"1 event over {MAX_EVENT_BYTES} bytes cut to fit"]
    [cut, after] = await texts(store, "a")
    assert cut.endswith("… (cut, it had 9000000 characters)")
    assert len(cut) > 4_000_000
    assert after == "after"
    assert (await import_steps(store, steps)).events == 0


async def test_a_session_that_is_refused_costs_only_itself(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one"))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    done = await bring(store, "ab", lines_of("a", "one", "two") + lines_of("b", "eins"))
    assert list(done.refused) == ["a"]
    assert "archived" in done.refused["a"].lower()
    assert await texts(store, "a") == ["one"]
    assert await texts(store, "b") == ["eins"]
