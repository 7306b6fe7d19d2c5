"""Logs and steps for tests of imports."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from storage.events import (
    Event,
    UserMessage,
)
from storage.store import Store
from storage.transfer.formats.shared.foreign import ImportWarnings, Step
from storage.transfer.importing import Import, ImportResult, Target
from tests.storage.spaces import SPACE, log_of
from tests.storage.transfer.formats.logs import DATA, OASST

LOGS = sorted(
    str(path.relative_to(DATA)) for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj", ".yaml")
)
LINES = [name for name in LOGS if name.endswith(".jsonl") and name != OASST and "openhands" not in name]


def user_messages(*contents: str) -> list[Event]:
    """A user message for each content."""
    return [UserMessage(content=content) for content in contents]


def lines_of(id: str, *contents: str, **header: Any) -> bytes:
    """A file in our own format, with one session."""
    first = {"type": "session", "format": "sapwood", "version": 1, "id": id, **header}
    events = [{"seq": seq, "type": "user/message", "content": content} for seq, content in enumerate(contents)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in (first, *events))


def chat(*contents: str) -> bytes:
    """A list of messages as OpenAI has it."""
    return json.dumps([{"role": "user", "content": content} for content in contents]).encode()


async def import_steps(store: Store, steps: Iterable[Step], *, defer: bool = False, space: str = SPACE) -> ImportResult:
    run = Import(Target(store, space), "made", ImportWarnings(), merge=True, defer=defer)
    await run.apply(list(steps))
    return await run.finish()


async def texts(store: Store, id: str, space: str = SPACE) -> list[str]:
    meta = await store.sessions.get(space, id)
    assert meta is not None
    return [event.content if isinstance(event, UserMessage) else event.type for event in await log_of(store, meta)]


def format_of(name: str) -> str:
    folder = name.split("/", maxsplit=1)[0]
    return {"pi-mono": "pi"}.get(folder, folder)


def untimed(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events without timestamps, which are those of recording where the log has none."""
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in found]
