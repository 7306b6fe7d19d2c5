"""Digests over HTTP, against reading the same documents with the bare driver and serializing them."""

import asyncio
import sqlite3
import time

import orjson

from storage.events import UserMessage
from storage.lifecycle import NewSession
from storage.session import SlotName
from storage.slots import SlotWrite
from storage.store import Store
from tests.bench.backends import Backend
from tests.bench.load import Connection, body
from tests.bench.table import Row, in_turn, note, report

SPACE = "default"
SESSIONS = 5_000
SLOT = "content version updatedAt atSeq"
QUERY = body(
    f"{{digests(first:{SESSIONS}){{asOf nodes{{id label status turnCount head lastEventAt updatedAt "
    f"memory{{{SLOT}}} insight{{{SLOT}}}}}}}}}"
)


async def fill(store: Store) -> None:
    """Creates sessions, each with an event, a memory and an insight."""
    note(f"writing {SESSIONS:,} sessions with memory and insight")
    for start in range(0, SESSIONS, 100):
        ids = [f"digest-{number:05}" for number in range(start, start + 100)]
        await asyncio.gather(*(store.tree.create(SPACE, NewSession(id=id, label=f"Session {id}")) for id in ids))
        await asyncio.gather(*(store.sessions.append(SPACE, id, [UserMessage(content="hello")]) for id in ids))
        for name, content in ((SlotName.MEMORY, "what was learned " * 10), (SlotName.INSIGHT, "what to do next " * 5)):
            await asyncio.gather(*(store.sessions.put_slot(SPACE, SlotWrite(id, name, content)) for id in ids))


async def measure(backend: Backend) -> None:
    """Reports the row of one store."""
    async with backend.opened() as store:
        await fill(store)
    async with backend.served() as port:
        connection = Connection(port)

        async def ours() -> float:
            began = time.perf_counter()
            answer = await connection.post(QUERY)
            duration = time.perf_counter() - began
            assert len(orjson.loads(answer)["data"]["digests"]["nodes"]) == SESSIONS
            return duration

        bare = bare_sqlite if backend.kind == "sqlite" else bare_mongodb

        async def theirs() -> float:
            return await bare(backend)

        ratio, long, short = await in_turn(ours, theirs)
        connection.close()
    detail = f"{long * 1000:.0f} ms against {short * 1000:.0f} ms"
    what = f"[{backend.kind}] digests of 5,000 sessions through HTTP against bare finds and a dump"
    report(Row(what, ratio, 8 if backend.kind == "sqlite" else 2, False, detail))


async def bare_sqlite(backend: Backend) -> float:
    """Seconds to read the documents of both tables with sqlite3 and serialize them."""
    connection = sqlite3.connect(backend.folder / "sapwood.db")
    began = time.perf_counter()
    found = [
        [orjson.loads(doc) for (doc,) in connection.execute(f"SELECT doc FROM {table} WHERE space = ?", (SPACE,))]
        for table in ("sessions", "slots")
    ]
    orjson.dumps(found)
    duration = time.perf_counter() - began
    connection.close()
    assert len(found[0]) >= SESSIONS
    return duration


async def bare_mongodb(backend: Backend) -> float:
    """Seconds to read the documents of both collections with Motor and serialize them."""
    async with backend.bare_database() as database:
        began = time.perf_counter()
        found = [await database[name].find({"space": SPACE}).to_list(None) for name in ("sessions", "slots")]
        orjson.dumps(found, default=str)
        assert len(found[0]) >= SESSIONS
        return time.perf_counter() - began
