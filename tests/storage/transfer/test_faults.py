"""Logs with faults that people have reported come in whole."""

import json

import pytest

from storage.events import Event, ToolCall, ToolResult
from storage.store import Store
from storage.transfer.importing import ImportResult
from storage.views.runs import Run
from tests import paths
from tests.storage.spaces import SPACE, bring, log_of
from tests.storage.transfer.imports import LOGS

DAY = 86_400_000
"""In ms. The logs here are older than that."""


async def bring_fault(store: Store, name: str) -> ImportResult:
    return await bring(store, name, (paths.FAULTS / name).read_bytes())


async def whole_log(store: Store, id: str) -> list[Event]:
    meta = await store.sessions.get(SPACE, id)
    assert meta is not None
    return await log_of(store, meta)


async def runs_of(store: Store, id: str) -> list[Run]:
    meta = await store.sessions.get(SPACE, id)
    assert meta is not None
    return await store.runs.of_session(meta, 200, None)


def messages(log: list[Event]) -> list[str]:
    """The contents of messages, calls and results, in order."""
    found = []
    for event in log:
        match event:
            case ToolCall():
                found.append(f"call {event.args}")
            case ToolResult():
                found.append(f"result {event.result}")
            case _ if hasattr(event, "content"):
                found.append(event.content)
    return found


@pytest.mark.parametrize(
    ("name", "digits"), [("claude-big-integer", "18446744073709551616"), ("claude-big-float", "1e999")]
)
async def test_a_call_with_a_number_that_events_cannot_store_keeps_its_digits(
    store: Store, name: str, digits: str
) -> None:
    done = await bring_fault(store, f"{name}.jsonl")
    [id] = done.ids.values()
    assert messages(await whole_log(store, id)) == ["q", f'call {{"wei":"{digits}"}}', 'result "ok"', "done"]
    [warning] = [line for line in done.warnings if "numbers" in line]
    assert digits in warning


async def test_both_records_on_a_spliced_line_are_read(store: Store) -> None:
    done = await bring_fault(store, "claude-spliced-lines.jsonl")
    [id] = done.ids.values()
    assert messages(await whole_log(store, id)) == ["q1", "r1", "q2", "r2"]


@pytest.mark.parametrize(
    "name", ["chatgpt-untimed-end.json", "librechat-untimed-steps.json", "claude-untimed-first.jsonl"]
)
async def test_no_time_of_the_import_gets_into_a_timed_log(store: Store, name: str) -> None:
    done = await bring_fault(store, name)
    for id in done.ids.values():
        meta = await store.sessions.get(SPACE, id)
        assert meta is not None
        times = [event.timestamp for event in await whole_log(store, id)]
        assert [time for time in times if time is None or time > meta.created_at - DAY] == []
        await assert_times_in_order(store, id)


@pytest.mark.parametrize("name", LOGS)
async def test_no_step_of_a_real_log_outlasts_its_turn(store: Store, name: str) -> None:
    done = await bring(store, name)
    for id in done.ids.values():
        await assert_times_in_order(store, id)


async def assert_times_in_order(store: Store, id: str) -> None:
    meta = await store.sessions.get(SPACE, id)
    assert meta is not None
    if meta.totals.first_at is not None and meta.totals.last_at is not None:
        assert meta.totals.first_at <= meta.totals.last_at
    for run in await runs_of(store, id):
        for step in run.steps:
            if step.duration_ms is not None and run.duration_ms is not None:
                assert step.duration_ms <= run.duration_ms, (id, run.turn_id, step.step_id)


@pytest.mark.parametrize("count", [1, 400])
async def test_a_log_without_times_has_no_durations(store: Store, count: int) -> None:
    conversation = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}] * count
    done = await bring(store, "chat", json.dumps(conversation).encode())
    [id] = done.ids.values()
    for run in await runs_of(store, id):
        assert run.duration_ms is None
        assert [step.duration_ms for step in run.steps] == [None] * len(run.steps)
