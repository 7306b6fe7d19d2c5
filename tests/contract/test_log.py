"""Appends: atomic, at the actual head, and stored exactly."""

import asyncio

import orjson
import pytest

from storage import errors, events
from storage.events import (
    AssistantMessage,
    CardEvent,
    CustomEvent,
    Event,
    RunFeedback,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOp,
    SurfaceOpKind,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.lifecycle import NewSession
from storage.log import append as log
from storage.log.append import Appended
from storage.log.commit import MAX_COMMIT_BYTES, recorded
from storage.log.state import LARGEST_FLOAT
from storage.session import SessionStatus
from storage.session_storage import Append
from storage.store import Store, UnitOfWork
from tests.conftest import OpenStore
from tests.contract.shorthand import (
    SPACE,
    append,
    contents,
    conversation,
    create,
    refused,
    seqs,
    session,
    texts,
    user,
    whole_log,
)

TURN = TurnStart(turn_id="t")


async def test_seqs_count_from_zero_without_gaps(store: Store) -> None:
    made = await create(store, "a")
    for first, size in ((0, 1), (1, 3), (4, 2)):
        appended = await append(store, "a", *texts(size, first))
        assert (appended.first_seq, appended.head, appended.duplicate) == (first, first + size, False)
        assert appended.session == await session(store, "a")
    found = await whole_log(store, "a")
    assert seqs(found) == list(range(6))
    assert contents(found) == [f"message {seq}" for seq in range(6)]
    assert [event.id for event in found] == [f"{made.log}/{seq}" for seq in range(6)]
    assert {event.session_id for event in found} == {"a"}


async def test_the_answer_has_the_events_as_they_are_read_later(store: Store) -> None:
    await create(store, "a")
    appended = await append(store, "a", *conversation(2))
    assert appended.events == await whole_log(store, "a")


async def test_every_event_type_comes_back_as_it_was_sent(store: Store) -> None:
    await create(store, "a")
    given: list[Event] = [
        TurnStart(turn_id="t", query="q", agent_flow="CHAT", timestamp=-5),
        StepStart(step_id="s", agent_name="planner", model_input='[{"role": "user"}]'),
        SystemMessage(content="rules", source_event_seqs=[]),
        events.UserMessage(content="u", blocks='[{"type": "image_url"}]', source_event_seqs=[0, 1]),
        AssistantMessage(content="", reasoning="r", blocks="null", interrupted=True),
        events.AssistantChunk(delta="d", kind=events.ChunkKind.REASONING),
        ToolCall(call_id="c", name="n", args='"not {json"'),
        ToolResult(
            call_id="c",
            result="[1.0]",
            error="e",
            blocks="[]",
            duration_ms=0.1,
            truncated=True,
            output_length=2**31 - 1,
            retrieval=events.Retrieval(layer="L0+L1", l0_match_count=0, l1_match_count=7, details="{}"),
        ),
        CardEvent(card_type="Form", payload="type: Form\n"),
        SurfaceHide(from_seq=1, to_seq=3, reason="why"),
        CustomEvent(name="n", data="0"),
        StepEnd(step_id="s", model_output="{}", thought="t", token_count=1.5, duration_ms=1e-300, error="e"),
        TurnEnd(turn_id="t", status=events.RunStatus.FAILED, error="e", self_evaluation="5"),
        RunFeedback(turn_id="t", feedback="good", self_evaluation="[]"),
    ]
    appended = await append(store, "a", *given)
    found = await whole_log(store, "a")
    assert recorded(appended.commit, [event.model_copy(update={"turn_id": "t"}) for event in given]) == [
        event.model_copy(update={"step_id": draft.step_id}) for event, draft in zip(found, given, strict=True)
    ]
    assert len({event.type for event in given}) == len(events.WIRE_TYPES) - 1
    placed = {"timestamp": None, "turn_id": None, "step_id": None, "id": "", "session_id": "", "seq": -1}
    assert [event.model_copy(update=placed) for event in found] == [event.model_copy(update=placed) for event in given]
    assert found[0].timestamp == -5
    assert {event.turn_id for event in found} == {"t"}
    assert [event.step_id for event in found] == [None, *["s"] * 11, None, None]


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1, "a": {"$set": {"$where": 0}}, "a.b": 2, "": null, "\\u0000": "\\u0000"}',
        "[-9223372036854775808, 18446744073709551615, 9007199254740993]",
        "[1.0, 1e-7, 1.7976931348623157e308, -0.0, 0.1]",
        '{"a": 1, "a": 2}',
        '"\\ud83c\\udf33 \\u2028"',
        "[" * 500 + "]" * 500,
        " null ",
    ],
)
async def test_json_comes_back_exactly(store: Store, text: str) -> None:
    await create(store, "a")
    await append(store, "a", CustomEvent(name="n", data=text), ToolCall(call_id="c", name="n", args=text))
    custom, call = await whole_log(store, "a")
    assert isinstance(custom, CustomEvent)
    assert isinstance(call, ToolCall)
    assert (custom.data, call.args) == (text, text)


async def test_texts_keep_nul_and_lose_lone_surrogates(store: Store) -> None:
    await create(store, "a")
    kept = "\x00 \\u0000 🌳 \r\n\u2028 $set a.b"
    await append(store, "a", user(kept), user("a\ud800b\udc00"), CardEvent(card_type="\ud800", payload="\udfff"))
    first, second, card = await whole_log(store, "a")
    assert contents([first, second]) == [kept, "a\ufffdb\ufffd"]
    assert isinstance(card, CardEvent)
    assert (card.card_type, card.payload) == ("\ufffd", "\ufffd")


async def test_an_append_is_atomic(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    bad: tuple[tuple[Event, str], ...] = (
        (ToolCall(call_id="c", name="n", args="1", turn_id="never"), r"events\[3\]\.toolCall\.turnId"),
        (TurnEnd(turn_id="never"), r"events\[3\]\.turnEnd\.turnId"),
        (TurnStart(), r"events\[3\]\.turnStart\.turnId"),
        (StepStart(), r"events\[3\]\.stepStart\.stepId"),
        (StepEnd(step_id="never"), r"events\[3\]\.stepEnd\.stepId"),
        (SurfaceHide(from_seq=2, to_seq=1), r"events\[3\]\.surfaceHide"),
        (SurfaceHide(from_seq=0, to_seq=6), r"events\[3\]\.surfaceHide\.toSeq"),
        (RunFeedback(turn_id="never"), r"events\[3\]\.runFeedback\.turnId"),
        (user("x", surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE)), r"events\[3\]\.userMessage\.surfaceOp"),
        (user("x", surface_op=SurfaceOp(start=0, end=0)), r"events\[3\]\.userMessage\.surfaceOp"),
    )
    for event, path in bad:
        await refused(store, errors.BadInput, *texts(3), event, user("after"), match=path)
    assert (await append(store, "a", user("next"))).first_seq == 2


async def test_an_append_without_events_is_refused(store: Store) -> None:
    await create(store, "a")
    await refused(store, errors.BadInput, match="1 to 1000")


async def test_an_append_has_at_most_1000_events(store: Store) -> None:
    await create(store, "a")
    assert (await append(store, "a", *texts(1_000))).head == 1_000
    await refused(store, errors.PayloadTooLarge, *texts(1_001), match="1000")
    assert seqs(await whole_log(store, "a")) == list(range(1_000))


async def test_an_append_has_at_most_8_mebibytes_as_stored(store: Store) -> None:
    await create(store, "a")
    overhead = len(orjson.dumps([events.dump(user("")), events.dump(user("x"))]))
    text = "ä" * ((MAX_COMMIT_BYTES - overhead) // 2) + "x" * ((MAX_COMMIT_BYTES - overhead) % 2)
    await refused(store, errors.PayloadTooLarge, user(text + "y"), user("x"), match=str(MAX_COMMIT_BYTES))
    assert (await append(store, "a", user(text), user("x"))).head == 2
    assert contents(await whole_log(store, "a")) == [text, "x"]


async def test_another_head_than_the_expected_one_is_a_conflict(store: Store) -> None:
    await create(store, "a")
    assert (await append(store, "a", *texts(2), expected_head=0)).head == 2
    for wrong in (0, 1, 3, -1):
        with pytest.raises(errors.Conflict) as conflict:
            await append(store, "a", user("x"), expected_head=wrong)
        assert conflict.value.details == {"head": 2}
    assert (await append(store, "a", user("x"), expected_head=2)).head == 3


async def test_50_concurrent_appends_are_all_stored(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    results = await asyncio.gather(*(append(stores[n % 2], "a", user(str(n))) for n in range(50)))
    assert sorted(result.first_seq for result in results) == list(range(50))
    found = await whole_log(stores[0], "a")
    assert seqs(found) == list(range(50))
    assert all(contents([found[result.first_seq]]) == [str(n)] for n, result in enumerate(results))
    assert (await session(stores[1], "a")).totals.types == {"user/message": 50}


async def test_one_of_50_concurrent_appends_with_one_expected_head_wins(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await create(stores[0], "a")
    tries = [append(stores[n % 2], "a", user(str(n)), expected_head=0) for n in range(50)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    [winner] = [result for result in results if isinstance(result, Appended)]
    conflicts = [result.details for result in results if isinstance(result, errors.Conflict)]
    assert conflicts == [{"head": 1}] * 49
    assert await whole_log(stores[0], "a") == winner.events


async def test_many_concurrent_first_appends_are_all_stored(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    ids = [f"s{n}" for n in range(20)]

    async def begin(store: Store, id: str) -> None:
        await create(store, id)
        await append(store, id, user(id))

    await asyncio.gather(*(begin(stores[n % 2], id) for n, id in enumerate(ids)))
    for id in ids:
        assert contents(await whole_log(stores[1], id)) == [id]


async def test_order_is_by_seq_and_not_by_timestamp(store: Store) -> None:
    await create(store, "a")
    for n in range(10):
        await append(store, "a", user(str(n), timestamp=1_000_000 - n))
    found = await whole_log(store, "a")
    assert contents(found) == [str(n) for n in range(10)]
    assert [event.timestamp for event in found] == [1_000_000 - n for n in range(10)]
    totals = (await session(store, "a")).totals
    assert (totals.first_at, totals.last_at) == (1_000_000, 999_991)


async def test_a_server_clock_that_steps_back_causes_no_conflict(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await create(store, "a")
    now = log.now()
    for n in range(4):
        monkeypatch.setattr(log, "now", lambda n=n: now - 60_000 * n)
        assert (await append(store, "a", user(str(n)), expected_head=n)).first_seq == n
    found = await whole_log(store, "a")
    assert contents(found) == ["0", "1", "2", "3"]
    assert [event.timestamp for event in found] == [now - 60_000 * n for n in range(4)]


async def test_an_event_without_a_timestamp_has_the_time_of_its_commit(store: Store) -> None:
    await create(store, "a")
    before = log.now()
    await append(store, "a", user("x"), user("y", timestamp=7))
    first, second = await whole_log(store, "a")
    assert first.timestamp is not None
    assert before <= first.timestamp <= log.now()
    assert second.timestamp == 7


async def test_totals_count_the_events_of_the_log(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(3))
    await append(store, "a", *texts(2))
    found = await session(store, "a")
    assert found.totals.types == {
        "turn/start": 3,
        "turn/end": 3,
        "step/start": 3,
        "step/end": 3,
        "tool/call": 3,
        "tool/result": 3,
        "custom": 3,
        "user/message": 5,
    }
    assert (found.turn_count, found.totals.tokens, found.inherited.types) == (3, 4.5, {})


async def test_totals_saturate(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN)
    for n in range(3):
        await append(store, "a", StepStart(step_id=str(n)), StepEnd(step_id=str(n), token_count=1.7e308))
    assert (await session(store, "a")).totals.tokens == LARGEST_FLOAT
    assert (await append(store, "a", user("x"))).session.totals.tokens == LARGEST_FLOAT


async def test_a_refused_append_does_not_affect_concurrent_ones(store: Store) -> None:
    ids = [f"s{n}" for n in range(30)]

    async def make(unit: UnitOfWork) -> None:
        for id in ids:
            await unit.tree.create(SPACE, NewSession(id=id))

    await store.transaction(make)
    drafts = [user("x", turn_id="never") if n % 3 == 0 else user("x") for n in range(30)]
    results = await asyncio.gather(
        *(append(store, id, draft) for id, draft in zip(ids, drafts, strict=True)), return_exceptions=True
    )
    assert [isinstance(result, errors.BadInput) for result in results] == [n % 3 == 0 for n in range(30)]
    heads = [meta.head for meta in await store.sessions.get_many(SPACE, ids) if meta is not None]
    assert heads == [0 if n % 3 == 0 else 1 for n in range(30)]


async def test_archiving_and_appending_exclude_each_other(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    for round in range(5):
        id = f"s{round}"
        await create(stores[0], id)
        results = await asyncio.gather(
            *(append(stores[n % 2], id, user(str(n))) for n in range(5)),
            stores[1].sessions.set_status(SPACE, id, SessionStatus.ARCHIVED),
            *(append(stores[n % 2], id, user(str(n))) for n in range(5, 10)),
            return_exceptions=True,
        )
        landed = [result for result in results if isinstance(result, Appended)]
        assert sum(isinstance(result, errors.Archived) for result in results) == 10 - len(landed)
        found = await session(stores[0], id)
        assert (found.status, found.head) == (SessionStatus.ARCHIVED, len(landed))
        assert seqs(await whole_log(stores[0], id)) == list(range(len(landed)))


async def test_appends_of_a_batch_are_independent_and_in_order(store: Store) -> None:
    for id in ("a", "b"):
        await create(store, id)
    wanted = [
        Append("a", [user("0")], expected_head=0, key="key"),
        Append("b", texts(2)),
        Append("a", [user("1"), user("x", turn_id="never")]),
        Append("unknown", [user("x")]),
        Append("a", [user("1")], expected_head=1),
        Append("a", [user("x")], expected_head=1),
        Append("a", [user("0")], key="key"),
        Append("a", []),
        Append("a", [user("2")], expected_head=2),
    ]
    results = await store.sessions.append_batch(SPACE, wanted)
    heads = [result.head if isinstance(result, Appended) else type(result) for result in results]
    bad, unknown, conflict = errors.BadInput, errors.NotFound, errors.Conflict
    assert heads == [1, 2, bad, unknown, 2, conflict, 1, bad, 3]
    assert contents(await whole_log(store, "a")) == ["0", "1", "2"]
    assert contents(await whole_log(store, "b")) == ["message 0", "message 1"]


async def test_a_batch_has_at_most_100_appends(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.PayloadTooLarge, match=r"inputs.*100"):
        await store.sessions.append_batch(SPACE, [Append("a", [user("x")])] * 101)
    assert len(await store.sessions.append_batch(SPACE, [Append("a", [user("x")])] * 100)) == 100
    assert (await session(store, "a")).head == 100
