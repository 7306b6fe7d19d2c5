"""The live part of the demo: each round appends one turn, event by event, to a new session."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

from server.commands.terminal import opened
from server.settings import Settings
from storage import errors
from storage.events import AssistantChunk, Event
from storage.lifecycle import NewSession
from storage.store import Store
from storage.transfer.formats import registry

SAMPLES = Path(__file__).parent.parent / "samples"
LIVE = SAMPLES / "live.jsonl"
ROOT = "live-replay"
KEPT_ROUNDS = 3
EVENT_SECONDS = 0.4
CHUNK_SECONDS = 0.15
RETRY_SECONDS = 2.0
logger = logging.getLogger("sapwood.demo")


async def replay(settings: Settings, space: str) -> None:
    """Replays the turn until cancelled. Logs errors and tries again."""
    events = _events()
    async with opened(settings) as store:
        while True:
            try:
                await _round(store, space, events)
            except errors.SapwoodError as error:
                logger.warning("the live replay starts over: %s", error.message)
                await asyncio.sleep(RETRY_SECONDS)


def _events() -> list[Event]:
    """The events of the turn, without timestamps, so that they get those of the replay."""
    reading = registry.read_document(LIVE.name, LIVE.read_text("utf-8"))
    return [event.model_copy(update={"timestamp": None}) for event in reading.sessions[0].events]


async def _round(store: Store, space: str, events: Sequence[Event]) -> None:
    """Replays the turn into a new session under the root. Deletes all but the newest rounds."""
    if await store.sessions.get(space, ROOT) is None:
        with contextlib.suppress(errors.DuplicateId):
            await store.tree.create(space, NewSession(id=ROOT, label="Live replays"))
    rounds = (await store.tree.children(space, [ROOT]))[ROOT]
    for old in rounds[: max(0, len(rounds) - KEPT_ROUNDS + 1)]:
        # A round that someone has forked stays.
        with contextlib.suppress(errors.NotFound, errors.HasChildren):
            await store.tree.delete(space, old.id)
    session = await store.tree.create(space, NewSession(label="Live replay", parent_id=ROOT))
    for event in events:
        await store.sessions.append(space, session.id, [event])
        await asyncio.sleep(CHUNK_SECONDS if isinstance(event, AssistantChunk) else EVENT_SECONDS)
