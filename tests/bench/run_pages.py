"""The cost of a page of runs among many."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from storage.events import Event, RunStatus, StepStart, ToolCall, TurnEnd, TurnStart
from storage.lifecycle import NewSession
from storage.run_filter import RunFilter
from storage.store import Store
from tests.bench.backends import Backend
from tests.bench.table import Row, in_turn, note, report

MANY = 20_000
FEW = 200
SESSIONS = 20
A_COMMIT = 200
PAGES = 20
SELECTIONS = {
    "page of 50": RunFilter(),
    "the same of one status and tool": RunFilter(status=RunStatus.FAILED, tool_name="search"),
}


async def measure(backend: Backend) -> None:
    """Reports the rows of SQLite."""
    if backend.kind != "sqlite":
        return
    async with backend.opened() as store:
        note(f"[sqlite] writing {MANY:,} runs")
        await fill(store, "many", MANY)
        await fill(store, "few", FEW)
        for what, selection in SELECTIONS.items():
            ratio, many, few = await in_turn(paging(store, "many", selection), paging(store, "few", selection))
            detail = f"{many / PAGES * 1000:.2f} ms against {few / PAGES * 1000:.2f} ms"
            report(Row(f"[sqlite] runs, {what} over {MANY:,} against over {FEW}", ratio, 1.5, False, detail))


async def fill(store: Store, space: str, runs: int) -> None:
    """Writes `runs` runs into twenty sessions of a space. Half of them fail; each of two tools is called by half."""
    ids = [f"s{number}" for number in range(SESSIONS)]
    for id in ids:
        await store.tree.create(space, NewSession(id=id))

    async def write(first: int, id: str) -> None:
        events = [event for number in range(first, runs, SESSIONS) for event in turn(number)]
        for start in range(0, len(events), A_COMMIT):
            await store.sessions.append(space, id, events[start : start + A_COMMIT])

    await asyncio.gather(*(write(first, id) for first, id in enumerate(ids)))


def turn(number: int) -> list[Event]:
    """The events of one run."""
    id = f"turn-{number}"
    status = RunStatus.FAILED if number % 2 else RunStatus.SUCCESS
    return [
        TurnStart(turn_id=id, query=f"question {number}", timestamp=1_700_000_000_000 + number * 10),
        StepStart(step_id="step", agent_name="planner"),
        ToolCall(call_id="call", name="search" if number % 4 < 2 else "read", args="{}"),
        TurnEnd(turn_id=id, status=status),
    ]


def paging(store: Store, space: str, selection: RunFilter) -> Callable[[], Awaitable[float]]:
    """A measure: the seconds that reading the first page `PAGES` times takes."""

    async def run() -> float:
        began = time.perf_counter()
        for _ in range(PAGES):
            page = await store.runs.page(space, selection, 50, None)
            assert page is not None and len(page.rows) == 50
        return time.perf_counter() - began

    return run
