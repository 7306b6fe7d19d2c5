"""Which turn and step an event belongs to, and which events a turn still accepts."""

import pytest

from storage import errors
from storage.events import (
    CustomEvent,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.log.state import OpenTurn
from storage.store import Store
from tests.contract.shorthand import (
    append,
    create,
    refused,
    session,
    texts,
    user,
    whole_log,
)

TURN, END = TurnStart(turn_id="t"), TurnEnd(turn_id="t")
STEP, STEP_END = StepStart(step_id="s"), StepEnd(step_id="s")


async def test_events_belong_to_the_open_turn_and_step(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("before"), TURN, user("in turn"), STEP)
    await append(store, "a", user("in step"), ToolCall(call_id="c", name="n", args="1"))
    await append(store, "a", STEP_END, user("after step"), END, user("after turn"))
    places = [(event.turn_id, event.step_id) for event in await whole_log(store, "a")]
    outside, turn, step = (None, None), ("t", None), ("t", "s")
    assert places == [outside, turn, turn, step, step, step, step, turn, turn, outside]


async def test_events_belong_to_no_turn_or_step_if_several_are_open(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t1"), TurnStart(turn_id="t2"))
    await append(store, "a", StepStart(step_id="s1", turn_id="t1"), StepStart(step_id="s2", turn_id="t1"))
    await append(store, "a", user("none"), user("turn", turn_id="t1"), user("step", turn_id="t1", step_id="s2"))
    await append(store, "a", user("the turn of its step", step_id="s1"), user("t2", turn_id="t2"))
    places = [(event.turn_id, event.step_id) for event in (await whole_log(store, "a"))[4:]]
    assert places == [(None, None), ("t1", None), ("t1", "s2"), ("t1", "s1"), ("t2", None)]


async def test_an_event_of_a_turn_never_started_is_refused(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("x"))
    for draft in (user("x", turn_id="t"), ToolResult(call_id="c", turn_id="t"), RunFeedback(turn_id="t"), END):
        await refused(store, errors.BadInput, draft, match="turnId")
    await refused(store, errors.BadInput, user("x", turn_id="t"), TURN, match=r"events\[0\]")


async def test_an_ended_turn_accepts_only_results_and_feedback(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, ToolCall(call_id="c", name="n", args="1"))
    await append(store, "a", END)
    for draft in (
        user("x", turn_id="t"),
        ToolCall(call_id="d", name="n", args="1", turn_id="t"),
        StepStart(step_id="s", turn_id="t"),
        StepEnd(step_id="s", turn_id="t"),
        CustomEvent(name="n", data="1", turn_id="t"),
        END,
    ):
        await refused(store, errors.TurnEnded, draft, match="turnId")
    await append(store, "a", ToolResult(call_id="c", turn_id="t"), RunFeedback(turn_id="t", feedback="good"))
    assert [event.turn_id for event in (await whole_log(store, "a"))[-2:]] == ["t", "t"]


async def test_a_turn_that_ends_in_an_append_has_ended_for_the_rest_of_it(store: Store) -> None:
    await create(store, "a")
    await refused(store, errors.TurnEnded, TURN, END, user("x", turn_id="t"), match=r"events\[2\]")
    await append(store, "a", TURN, END, ToolResult(call_id="c", turn_id="t"))


async def test_a_turn_id_cannot_be_reused(store: Store) -> None:
    await create(store, "a")
    await refused(store, errors.BadInput, TURN, TURN, match=r"events\[1\].*turnId")
    await append(store, "a", TURN)
    await refused(store, errors.BadInput, TURN, match="turnId")
    await append(store, "a", END)
    await refused(store, errors.BadInput, TURN, match="turnId")
    await append(store, "a", *texts(1_000))
    await refused(store, errors.BadInput, TURN, match="turnId")


async def test_a_step_id_cannot_be_reused_in_its_turn(store: Store) -> None:
    await create(store, "a")
    await refused(store, errors.BadInput, TURN, STEP, STEP_END, STEP, match=r"events\[3\].*stepId")
    await append(store, "a", TURN, STEP)
    await refused(store, errors.BadInput, STEP, match="stepId")
    await append(store, "a", STEP_END)
    await refused(store, errors.BadInput, STEP, match="stepId")
    await append(store, "a", END, TurnStart(turn_id="t2"), STEP, TurnEnd(turn_id="t2"))
    await append(store, "a", STEP, STEP_END)
    await refused(store, errors.BadInput, STEP, match="stepId")


async def test_only_an_open_step_can_end(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, STEP, STEP_END)
    await refused(store, errors.BadInput, STEP_END, match="stepId")
    await append(store, "a", StepStart(step_id="s2"))
    await refused(store, errors.BadInput, StepEnd(step_id="other"), match="stepId")
    await append(store, "a", END)
    await refused(store, errors.BadInput, StepEnd(step_id="s2"), match="stepId")


@pytest.mark.parametrize("status", [RunStatus.PENDING, RunStatus.RUNNING])
async def test_a_turn_does_not_end_as_pending_or_running(store: Store, status: RunStatus) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t"))
    match = rf"events\[0\]\.turnEnd\.status: .* {status.value}"
    await refused(store, errors.BadInput, TurnEnd(turn_id="t", status=status), match=match)


async def test_the_end_of_a_turn_ends_its_steps(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="t1"), TurnStart(turn_id="t2"))
    for turn in ("t1", "t2"):
        await append(store, "a", *(StepStart(step_id=step, turn_id=turn) for step in ("s1", "s2")))
    assert (await session(store, "a")).open == tuple(OpenTurn(turn=turn, steps=("s1", "s2")) for turn in ("t1", "t2"))
    appended = await append(store, "a", TurnEnd(turn_id="t1"), StepEnd(step_id="s1"))
    assert appended.session.open == (OpenTurn(turn="t2", steps=("s2",)),)


async def test_a_step_started_before_a_turn_can_end_in_it(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", STEP, TURN)
    appended = await append(store, "a", STEP_END)
    assert appended.session.open == (OpenTurn(turn="t"),)


async def test_marks_of_any_turn_and_step_ids_are_distinct(store: Store) -> None:
    await create(store, "a")
    pairs = [("t", "s"), ("1/t/s", "s"), ("0//s", "s"), ("1", "t/s"), ("1/t", "s"), ("a", "b/c"), ("a/b", "c")]
    for turn, step in pairs:
        await append(store, "a", TurnStart(turn_id=turn), StepStart(step_id=step), TurnEnd(turn_id=turn))
    await append(store, "a", STEP)
    assert (await session(store, "a")).totals.types["step/start"] == len(pairs) + 1


async def test_a_turn_and_a_step_can_share_an_id(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="1/t/s"), TurnEnd(turn_id="1/t/s"))
    await append(store, "a", TURN, STEP, END)
    assert (await session(store, "a")).turn_count == 2


@pytest.mark.parametrize("id", ["a\x00b", "\x00", "🌳" * 256, "\ud800", "$where", "a.b", " "])
async def test_any_text_can_be_a_turn_or_step_id(store: Store, id: str) -> None:
    await create(store, "a")
    await append(store, "a", TurnStart(turn_id="a"), TurnEnd(turn_id="a"))
    turn, end = TurnStart(turn_id=id), TurnEnd(turn_id=id)
    await append(store, "a", turn, StepStart(step_id=id), StepEnd(step_id=id))
    await refused(store, errors.BadInput, StepStart(step_id=id), match="stepId")
    await append(store, "a", end)
    await refused(store, errors.BadInput, turn, match="turnId")
    await refused(store, errors.TurnEnded, end, match="turnId")
    await append(store, "a", ToolResult(call_id=id, turn_id=id))
    assert (await whole_log(store, "a"))[-1].turn_id == id.replace("\ud800", "\ufffd")


async def test_1000_turns_and_steps_can_be_open_at_once(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *(TurnStart(turn_id=f"t{n}") for n in range(600)))
    await append(store, "a", *(StepStart(step_id=f"s{n}", turn_id="t7") for n in range(400)))
    await refused(store, errors.BadInput, TURN, match="1000")
    await refused(store, errors.BadInput, StepStart(step_id="s", turn_id="t7"), match="1000")
    await append(store, "a", StepEnd(step_id="s3", turn_id="t7"), TURN)
    assert (await append(store, "a", TurnEnd(turn_id="t7"))).session.totals.types["turn/end"] == 1
    assert len((await session(store, "a")).open) == 600


async def test_1000_steps_can_be_open_outside_any_turn(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *(StepStart(step_id=f"s{n}") for n in range(1_000)))
    await refused(store, errors.BadInput, STEP, match="1000")
