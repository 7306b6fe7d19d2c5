"""Running `sapwood import --follow` and waiting for what it imports."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage.events import UserMessage
from storage.store import Store
from tests.server.process import SAPWOOD, at


def header(id: str) -> str:
    return json.dumps({"type": "session", "format": "sapwood", "version": 1, "id": id}) + "\n"


def message(seq: int, content: str) -> str:
    return json.dumps({"seq": seq, "type": "user/message", "content": content}) + "\n"


def add(path: Path, content: str) -> None:
    with path.open("a") as file:
        file.write(content)


class Following:
    """A `sapwood import --follow` process, which a test ends as a person would."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, dict[str, Any], str]:
        """Ends the process. Returns its exit code, its summary as JSON, and what it has printed meanwhile."""
        self.process.send_signal(how)
        summary, news = self.process.communicate()
        return self.process.returncode, json.loads(summary), news


@contextmanager
def following(location: Path | str, *paths: str | Path) -> Iterator[Following]:
    command: list[str | Path] = [SAPWOOD, "import", "--follow", "--json", *at(location), *paths]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield Following(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Polls the store until the condition holds."""
    while not await condition():  # noqa: ASYNC110  another process changes it
        await asyncio.sleep(0.02)


async def texts(store: Store, id: str) -> list[str]:
    meta = await store.sessions.get("default", id)
    if meta is None:
        return []
    page = await store.sessions.events(meta, first=1_000)
    return [event.content if isinstance(event, UserMessage) else event.type for event in page.events]


async def wait_for(store: Store, id: str, *expected: str) -> None:
    """Waits until a session has these messages."""

    async def has() -> bool:
        return await texts(store, id) == list(expected)

    await until(has)
