"""Repair closes what a crash left open, wherever it happened."""

from collections.abc import Sequence

import pytest

from storage.events import (
    Event,
    RunStatus,
    StepEnd,
    StepStart,
    SurfaceHide,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from storage.log.commit import MAX_EVENTS
from storage.maintenance import INTERRUPTED, MaintenanceResult
from storage.store import Store
from storage.views.run_tools import Unanswered
from storage.views.surface import Surface
from tests.contract.shorthand import SPACE, append, create, fork, session, surface, texts, whole_log
from tests.storage.transfer.formats.logs import DEEPSEEK, TAU_BENCH
from tests.storage.views.real_logs import cuts, logs
from tests.storage.views.surface_logs import call, chunk, result, shown, user
from tests.storage.views.validity import check

TURN, OTHER = TurnStart(turn_id="t"), TurnStart(turn_id="u")


async def repaired(store: Store, id: str = "a") -> list[Event]:
    """The events that one repair wrote."""
    kept = await store.maintenance.repair(SPACE, id)
    return [] if kept.appended is None else kept.appended.events


def unanswered(log: Sequence[Event]) -> list[ToolCall]:
    """The unanswered calls of a log, by the rules of pairing alone."""
    waiting: Unanswered[ToolCall] = Unanswered()
    for event in log:
        match event:
            case TurnStart():
                waiting.turn_started()
            case ToolCall():
                waiting.add(event.call_id, event)
            case ToolResult() if not event.replaces:
                waiting.answer(event.call_id)
    return waiting.waiting()


async def assert_balanced(store: Store, id: str, log: Sequence[Event] | None = None) -> Surface:
    """Checks that no call, step or turn is open, the surface is valid, and another repair writes nothing."""
    meta = await session(store, id)
    assert meta.open == ()
    assert unanswered(log or await whole_log(store, id)) == []
    found = await surface(store, id)
    check(found)
    assert await store.maintenance.repair(SPACE, id) == MaintenanceResult(meta)
    assert await session(store, id) == meta
    return found


def as_draft(event: Event) -> Event:
    return event.model_copy(update={"seq": -1})


def plain(event: Event) -> tuple[object, ...]:
    match event:
        case ToolResult():
            return ("result", event.turn_id, event.step_id, event.call_id, event.error, event.result)
        case StepEnd():
            return ("step", event.turn_id, event.step_id)
        case TurnEnd():
            return ("turn", event.turn_id, event.status)
    return (event.type,)


async def test_a_repair_answers_calls_then_ends_steps_and_turns(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, StepStart(step_id="s"), user("q"), call("x"), call("y"), result("x"), chunk("par"))
    events = await repaired(store)
    assert [plain(event) for event in events] == [
        ("result", "t", "s", "y", INTERRUPTED, None),
        ("step", "t", "s"),
        ("turn", "t", RunStatus.FAILED),
    ]
    assert isinstance(events[-1], TurnEnd)
    assert events[-1].error
    assert shown(await assert_balanced(store, "a")) == [
        ("user", "q"),
        ("assistant", None, "x", "y"),
        ("x", "ok"),
        ("y", INTERRUPTED),
        ("assistant", "par"),
    ]


async def test_a_balanced_log_is_left_as_it_is(store: Store) -> None:
    await create(store, "a")
    assert await repaired(store) == []
    await append(store, "a", *texts(2), call("x"), result("x"), TURN, TurnEnd(turn_id="t"))
    assert await repaired(store) == []
    await assert_balanced(store, "a")


async def test_a_result_without_a_call_needs_no_repair(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", result("x"), call("y"), result("y"), result("y"))
    assert await repaired(store) == []


async def test_reused_ids_are_answered_one_by_one(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", call("x"), call("x"), TURN, call("x"), result("x"), OTHER, call("x"))
    events = await repaired(store)
    assert [plain(event)[:4] for event in events if isinstance(event, ToolResult)] == [
        ("result", None, None, "x"),
        ("result", None, None, "x"),
        ("result", None, None, "x"),
    ]
    assert [plain(event)[:2] for event in events if isinstance(event, TurnEnd)] == [("turn", "t"), ("turn", "u")]
    await assert_balanced(store, "a")


async def test_a_call_in_an_ended_turn_is_answered_in_that_turn(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, StepStart(step_id="s"), call("x"), TurnEnd(turn_id="t"), OTHER)
    assert [plain(event) for event in await repaired(store)] == [
        ("result", "t", "s", "x", INTERRUPTED, None),
        ("turn", "u", RunStatus.FAILED),
    ]
    await assert_balanced(store, "a")


async def test_open_steps_end_in_their_own_turn_or_outside_any(store: Store) -> None:
    """All steps have the same id, so each step/end must name its turn."""
    await create(store, "a")
    step = StepStart(step_id="s")
    await append(store, "a", step, TURN, step, OTHER, StepStart(step_id="s", turn_id="u"))
    events = await repaired(store)
    assert {plain(event) for event in events} == {
        ("step", None, "s"),
        ("step", "t", "s"),
        ("step", "u", "s"),
        ("turn", "t", RunStatus.FAILED),
        ("turn", "u", RunStatus.FAILED),
    }
    await assert_balanced(store, "a")


async def test_calls_gone_from_the_surface_are_still_answered(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("q"), call("x"), call("y"), result("x"), user("sum", 1, 1))
    assert len(await repaired(store)) == 1
    assert shown(await assert_balanced(store, "a")) == [("user", "q"), ("user", "sum")]
    await append(store, "a", call("z"), result("z"))
    head = (await session(store, "a")).head
    await append(store, "a", SurfaceHide(from_seq=head - 1, to_seq=head))
    # The log has the result, so there is nothing to repair; the surface supplies one, as for any hidden result.
    assert shown(await assert_balanced(store, "a"))[2:] == [("assistant", None, "z"), ("?", "z")]


async def test_repairing_a_fork_leaves_its_source_alone(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, StepStart(step_id="s"), call("x"), result("x"), TurnEnd(turn_id="t"))
    await fork(store, "a", id="b", at_seq=3)
    assert [plain(event) for event in await repaired(store, "b")] == [
        ("result", "t", "s", "x", INTERRUPTED, None),
        ("step", "t", "s"),
        ("turn", "t", RunStatus.FAILED),
    ]
    await assert_balanced(store, "b")
    assert await repaired(store, "a") == []


async def test_more_than_1000_open_calls_take_several_repairs(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, StepStart(step_id="s"))
    calls = [call(f"c{n % 700}") for n in range(1_500)]
    await append(store, "a", *calls[:MAX_EVENTS])
    await append(store, "a", *calls[MAX_EVENTS:])
    first, second = await repaired(store), await repaired(store)
    assert (len(first), len(second)) == (MAX_EVENTS, 502)
    assert [plain(event)[0] for event in second[-2:]] == ["step", "turn"]
    answered = [event.call_id for event in (*first, *second) if isinstance(event, ToolResult)]
    assert answered == [event.call_id for event in calls]
    found = await assert_balanced(store, "a")
    assert not any(message.repaired for message in found.messages())


@pytest.mark.parametrize("name", [*DEEPSEEK, TAU_BENCH])
async def test_a_real_log_cut_after_any_event_is_balanced_by_one_repair(store: Store, name: str) -> None:
    log = max((log for log in logs(name)[:8]), key=len)
    await create(store, "whole")
    for start in range(0, len(log), MAX_EVENTS):
        await append(store, "whole", *(as_draft(event) for event in log[start : start + MAX_EVENTS]))
    whole = await whole_log(store, "whole")
    for at_seq in cuts(log)[:: 4 if len(log) > MAX_EVENTS else 1]:
        cut = await fork(store, "whole", id=f"a{at_seq}", at_seq=at_seq)
        added = await repaired(store, cut.id)
        assert (await session(store, cut.id)).head == at_seq + len(added)
        found = await assert_balanced(store, cut.id, [*whole[:at_seq], *added])
        assert not any(message.supplied for message in found.messages())
    assert await whole_log(store, "whole") == whole
