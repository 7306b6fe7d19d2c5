"""The cost of the last page of a conversation, in a long log and in a short one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from storage.events import (
    AssistantMessage,
    CardEvent,
    Event,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.lifecycle import NewSession
from storage.store import Store
from tests.bench.backends import Backend
from tests.bench.logs import SPACE, timed
from tests.bench.table import Row, in_turn, note, report

LONG = 100_000
SHORT = 1_000
PAGES = 20


def plain(turn: int) -> list[Event]:
    """The ten events of a turn, five of which are entries."""
    return [
        TurnStart(turn_id=f"turn-{turn}"),
        UserMessage(content=f"question {turn}"),
        StepStart(step_id="step"),
        ToolCall(call_id="call", name="search", args=f'{{"turn":{turn}}}'),
        ToolResult(call_id="call", result=f'"found {turn}"'),
        CardEvent(card_type="Table", payload=f"title: result {turn}"),
        AssistantMessage(content=f"answer {turn}"),
        StepEnd(step_id="step"),
        UserMessage(content="thanks"),
        TurnEnd(turn_id=f"turn-{turn}"),
    ]


def with_ids(turn: int) -> list[Event]:
    """The ten events of a turn, three of which are versions of the log's twenty cards."""
    cards = [
        CardEvent(card_type="Table", payload=f"id: card-{card}\ntitle: version {turn}")
        for card in (turn % 10, 10 + turn % 7, 17 + turn % 3)
    ]
    return [event for event in plain(turn) if not isinstance(event, CardEvent | StepStart | StepEnd)] + cards


async def write(store: Store, id: str, turns: int, events: Callable[[int], Sequence[Event]]) -> None:
    """Creates a session of `turns` turns, one commit each."""
    await store.tree.create(SPACE, NewSession(id=id))
    for start in range(0, turns, 100):
        parts = [events(turn) for turn in range(start, min(start + 100, turns))]
        await asyncio.gather(*(store.sessions.append(SPACE, id, part) for part in parts))


async def measure(backend: Backend) -> None:
    """Reports the rows of SQLite. No page profits from an earlier one."""
    if backend.kind != "sqlite":
        return
    async with backend.opened() as store:
        for name, events in (("a conversation", plain), ("one with cards of twenty ids", with_ids)):
            note(f"[{backend.kind}] writing {name} of {LONG:,} events in commits of 10")
            kind = events.__name__
            await write(store, f"{kind}-long", LONG // 10, events)
            await write(store, f"{kind}-short", SHORT // 10, events)
            long, short = paging(store, f"{kind}-long"), paging(store, f"{kind}-short")
            ratio, slow, fast = await in_turn(long, short)
            detail = f"{slow / PAGES * 1000:.2f} ms against {fast / PAGES * 1000:.2f} ms"
            what = f"[{backend.kind}] last 200 entries of {name}, {LONG:,} events against {SHORT:,}"
            report(Row(what, ratio, 2, False, detail))


def paging(store: Store, id: str) -> Callable[[], Awaitable[float]]:
    """A measure: the seconds that reading the last page `PAGES` times takes."""

    async def page() -> None:
        meta = await store.sessions.get(SPACE, id)
        assert meta is not None
        found = await store.conversations.page(meta, last=200)
        assert len(found.entries) == 200

    return timed(page, PAGES)
