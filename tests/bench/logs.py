"""The cost of long logs: forks, appends and pages at their end."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from storage.events import UserMessage
from storage.lifecycle import Fork, NewSession
from storage.session import SessionMeta
from storage.store import Store
from tests.bench.backends import Backend
from tests.bench.table import Row, in_turn, note, report

SPACE = "default"
LONG = 100_000
SHORT = 200


async def session(store: Store, id: str, events: int, a_commit: int) -> SessionMeta:
    """Creates a session of `events` events in commits of `a_commit`."""
    await store.tree.create(SPACE, NewSession(id=id))
    for start in range(0, events, 100 * a_commit):
        count = min(100 * a_commit, events - start)
        drafts = [UserMessage(content=f"event {start + index}") for index in range(count)]
        parts = [drafts[index : index + a_commit] for index in range(0, count, a_commit)]
        await asyncio.gather(*(store.sessions.append(SPACE, id, part) for part in parts))
    found = await store.sessions.get(SPACE, id)
    assert found is not None and found.head == events
    return found


def timed(work: Callable[[], Awaitable[Any]], times: int) -> Callable[[], Awaitable[float]]:
    """A measure: the seconds that `times` runs of the work take in sequence."""

    async def run() -> float:
        began = time.perf_counter()
        for _ in range(times):
            await work()
        return time.perf_counter() - began

    return run


async def measure(backend: Backend) -> None:
    """Reports the rows of one store."""
    async with backend.opened() as store:
        note(f"[{backend.kind}] writing {LONG:,} events in commits of 10")
        await session(store, "forked", LONG + 10, 10)

        def forking(at_seq: int) -> Callable[[], Awaitable[float]]:
            return timed(lambda: store.tree.fork(SPACE, Fork("forked", at_seq=at_seq, as_root=True)), 30)

        ratio, long, short = await in_turn(forking(LONG), forking(10))
        detail = f"{long / 30 * 1000:.2f} ms against {short / 30 * 1000:.2f} ms"
        report(Row(f"[{backend.kind}] forking at event 100,000 against at event 10", ratio, 1.5, False, detail))
        ratio, long, short = await in_turn(forking(LONG + 5), forking(5))
        detail = f"{long / 30 * 1000:.2f} ms against {short / 30 * 1000:.2f} ms"
        report(Row(f"[{backend.kind}] the same inside of a commit", ratio, 1.5, False, detail))
        if backend.kind == "sqlite":
            await ends(store)


async def ends(store: Store) -> None:
    """Compares appends and last pages of a long log with those of a short one."""
    note(f"[sqlite] writing {LONG:,} events in commits of one")
    await session(store, "long", LONG, 1)

    def appending(id: str) -> Callable[[], Awaitable[float]]:
        return timed(lambda: store.sessions.append(SPACE, id, [UserMessage(content="one more")]), 100)

    def paging(id: str) -> Callable[[], Awaitable[float]]:
        async def page() -> None:
            meta = await store.sessions.get(SPACE, id)
            assert meta is not None
            await store.sessions.events(meta, last=100)

        return timed(page, 60)

    # Pages first: appending makes the short log grow.
    await session(store, "short", SHORT, 1)
    ratio, long, short = await in_turn(paging("long"), paging("short"))
    detail = f"{long / 60 * 1000:.2f} ms against {short / 60 * 1000:.2f} ms"
    report(Row("[sqlite] page of 100 at the end of 100,000 events against of 200", ratio, 1.3, False, detail))
    ratio, long, short = await in_turn(appending("long"), appending("short"))
    detail = f"{long / 100 * 1000:.2f} ms against {short / 100 * 1000:.2f} ms"
    report(Row("[sqlite] append to a session of 100,000 events against of 200", ratio, 1.3, False, detail))
