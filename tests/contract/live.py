"""Shorthand for opening live feeds in one space."""

import random
from collections.abc import AsyncGenerator, Collection, Mapping

from storage.events import Event
from storage.live.forest_changes import ForestDelta
from storage.live.slot_changes import SlotChange
from storage.session import SessionStatus, SlotName
from storage.session_tree import Forest
from storage.store import Store
from tests.contract.shorthand import (
    SPACE,
    append,
    texts,
)


async def session_events(store: Store, id: str, from_seq: int | None = None) -> AsyncGenerator[Event, None]:
    return await store.live.session_events(SPACE, id, from_seq)


async def all_events(
    store: Store, root_id: str | None = None, positions: Mapping[str, int] | None = None
) -> AsyncGenerator[Event, None]:
    return await store.live.space_events(SPACE, root_id, (positions or {}).items())


async def all_slots(
    store: Store,
    session_id: str | None = None,
    root_id: str | None = None,
    names: Collection[SlotName] | None = None,
) -> AsyncGenerator[SlotChange, None]:
    return await store.live.slot_changes(SPACE, session_id, root_id, names)


async def whole_forest(
    store: Store, root_id: str | None = None, max_depth: int | None = None, status: SessionStatus | None = None
) -> AsyncGenerator[Forest | ForestDelta, None]:
    return await store.live.forest_changes(SPACE, root_id, max_depth, status)


async def write(store: Store, id: str, appends: int, chance: random.Random) -> None:
    for _ in range(appends):
        await append(store, id, *texts(chance.randint(1, 3)))
