"""Short names for common operations on a store, in one space."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import pytest

from storage import errors
from storage.events import (
    AssistantMessage,
    CustomEvent,
    Event,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.lifecycle import Fork, NewSession
from storage.log.append import Appended
from storage.session import Digest, SessionFilter, SessionMeta, SessionOrder, SlotName, Slots
from storage.session_tree import Forest
from storage.slots import InsightMode, SlotWrite, WrittenSlot
from storage.store import Store
from storage.topology import TopologyNode
from storage.views.surface import Surface

T = TypeVar("T")

SPACE = "space"
IN_TIME = 300.0
"""Seconds to wait for anything before a test fails: more than a busy machine ever needs."""


async def create(store: Store, id: str | None = None, parent_id: str | None = None, **given: Any) -> SessionMeta:
    return await store.tree.create(SPACE, NewSession(id=id, parent_id=parent_id, **given))


async def fork(store: Store, source_id: str, **wanted: Any) -> SessionMeta:
    return await store.tree.fork(SPACE, Fork(source_id=source_id, **wanted))


async def append(store: Store, id: str, *drafts: Event, **given: Any) -> Appended:
    return await store.sessions.append(SPACE, id, drafts, **given)


async def refused(store: Store, error: type[errors.SapwoodError], *drafts: Event, match: str | None = None) -> None:
    """Checks that an append is refused and writes nothing."""
    before, log_before = await session(store, "a"), await whole_log(store, "a")
    with pytest.raises(error, match=match):
        await append(store, "a", *drafts)
    assert await session(store, "a") == before
    assert await whole_log(store, "a") == log_before


async def session(store: Store, id: str) -> SessionMeta:
    found = await store.sessions.get(SPACE, id)
    assert found is not None, f"no session {id}"
    return found


async def node(store: Store, id: str) -> TopologyNode:
    found = await store.tree.node(SPACE, id)
    assert found is not None, f"no node {id}"
    return found


async def forest(store: Store, **wanted: Any) -> Forest:
    found = await store.tree.forest(SPACE, **wanted)
    assert found is not None
    return found


async def ids(store: Store, **selection: Any) -> set[str]:
    """Ids of the sessions that match the selection."""
    found = await store.sessions.page(SPACE, SessionFilter(**selection), SessionOrder.CREATED_ASC, 200, None)
    assert found is not None
    return {meta.id for meta in found.sessions}


async def digests(store: Store, **selection: Any) -> list[Digest]:
    found = await store.sessions.digests(SPACE, SessionFilter(**selection), 10_000, None)
    assert found is not None
    return found.digests


async def slots(store: Store, id: str) -> Slots:
    return (await store.sessions.slots(SPACE, [id]))[id]


async def put(store: Store, id: str, name: SlotName, content: str, **given: Any) -> WrittenSlot:
    return await store.sessions.put_slot(SPACE, SlotWrite(id, name, content, **given))


async def put_insight(store: Store, id: str, content: str, mode: InsightMode = InsightMode.REPLACE) -> WrittenSlot:
    return await put(store, id, SlotName.INSIGHT, content, mode=mode)


async def whole_log(store: Store, id: str) -> list[Event]:
    """All events of the visible log, read in pages."""
    meta = await session(store, id)
    events: list[Event] = []
    while len(events) < meta.head:
        found = await store.sessions.events(meta, from_seq=len(events), first=1_000)
        assert found.events, f"the log of {id} ends at {len(events)}, its head is {meta.head}"
        events += found.events
    return events


async def surface(store: Store, id: str, at_seq: int | None = None) -> Surface:
    return await store.messages.surface(await session(store, id), at_seq)


def user(content: str, **given: Any) -> UserMessage:
    return UserMessage(content=content, **given)


def texts(count: int, first: int = 0) -> list[UserMessage]:
    """Messages whose text is their seq, if the first one has seq `first`."""
    return [user(f"message {seq}") for seq in range(first, first + count)]


def contents(events: Sequence[Event]) -> list[str]:
    return [event.content for event in events if isinstance(event, UserMessage | AssistantMessage)]


def seqs(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events]


def conversation(turns: int) -> list[Event]:
    """Turns of one step each with a tool call: eight events per turn."""
    events: list[Event] = []
    for turn in range(turns):
        events += [
            TurnStart(turn_id=f"turn-{turn}", query=f"question {turn}"),
            user(f"question {turn}"),
            StepStart(step_id="step", agent_name="planner"),
            ToolCall(call_id="call", name="search", args=f'{{"turn": {turn}}}'),
            ToolResult(call_id="call", result=f'"found {turn}"'),
            StepEnd(step_id="step", token_count=turn + 0.5),
            CustomEvent(name="measure", data=f"{turn}"),
            TurnEnd(turn_id=f"turn-{turn}"),
        ]
    return events


async def append_in_parts(store: Store, id: str, events: Sequence[Event], chance: random.Random) -> list[int]:
    """Appends events in commits of random sizes, and returns the sizes."""
    sizes: list[int] = []
    while sum(sizes) < len(events):
        size = chance.choice([1, 1, 2, 3, 5, 8])
        part = events[sum(sizes) : sum(sizes) + size]
        await append(store, id, *part)
        sizes.append(len(part))
    return sizes


async def take(stream: AsyncIterator[T], count: int) -> list[T]:
    """The next items of a stream, each within the time limit."""
    taken: list[T] = []
    while len(taken) < count:
        async with asyncio.timeout(IN_TIME):
            taken.append(await anext(stream))
    return taken


async def rest(stream: AsyncIterator[T]) -> list[T]:
    """The remaining items of a stream, which must end within the time limit."""
    async with asyncio.timeout(IN_TIME):
        return [item async for item in stream]
