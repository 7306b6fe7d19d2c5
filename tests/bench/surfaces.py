"""The cost of surfaces: with chunks that a whole answer supersedes, and after one more event."""

import asyncio
import time
from collections.abc import Sequence

from storage.events import AssistantChunk, AssistantMessage, Event, UserMessage
from storage.lifecycle import NewSession
from storage.readers.surfaces import Surfaces
from storage.session import SessionMeta
from storage.store import Store
from tests.bench.backends import Backend
from tests.bench.table import Row, in_turn, note, report

SPACE = "default"
EVENTS = 20_000
EXCHANGES = 1_000
CHUNKS = 18
"""Per answer: with the question and the answer itself, 20 events."""


async def _session(store: Store, id: str, commits: Sequence[Sequence[Event]]) -> SessionMeta:
    await store.tree.create(SPACE, NewSession(id=id))
    for start in range(0, len(commits), 500):
        part = commits[start : start + 500]
        await asyncio.gather(*(store.sessions.append(SPACE, id, drafts) for drafts in part))
    return await _meta(store, id)


async def _meta(store: Store, id: str) -> SessionMeta:
    found = await store.sessions.get(SPACE, id)
    assert found is not None
    return found


def _exchange(number: int, chunks_a_commit: int) -> list[list[Event]]:
    """A question, its answer in chunks, `chunks_a_commit` per commit (0 writes none), and the whole answer."""
    pieces = [f"piece {index} of answer {number}, " for index in range(CHUNKS)]
    chunks: list[Event] = [AssistantChunk(delta=piece) for piece in pieces]
    starts = range(0, CHUNKS, chunks_a_commit) if chunks_a_commit else ()
    streamed = [chunks[start : start + chunks_a_commit] for start in starts]
    return [[UserMessage(content=f"question {number}")], *streamed, [AssistantMessage(content="".join(pieces))]]


async def measure(backend: Backend) -> None:
    """Reports the rows of one store."""
    async with backend.opened() as store:
        note(f"[{backend.kind}] writing {EVENTS:,} events, of which {EXCHANGES * CHUNKS:,} are chunks")
        # MongoDB takes about 200 commits per second to one session, so there each answer's chunks are one commit.
        streamed, plain = [
            await _session(
                store,
                f"surface-{a_commit}",
                [commit for number in range(EXCHANGES) for commit in _exchange(number, a_commit)],
            )
            for a_commit in (1 if backend.kind == "sqlite" else CHUNKS, 0)
        ]

        async def reading(meta: SessionMeta, kept: Surfaces) -> float:
            began = time.perf_counter()
            surface = await store.database.read(lambda queries: kept.read(queries, meta, keep=True))
            surface.openai_text()
            return time.perf_counter() - began

        ratio, first, second = await in_turn(lambda: reading(streamed, Surfaces()), lambda: reading(plain, Surfaces()))
        detail = f"{first * 1000:.0f} ms against {second * 1000:.0f} ms"
        report(
            Row(
                f"[{backend.kind}] surface of 20,000 events, 18,000 of them chunks, against without",
                ratio,
                2,
                False,
                detail,
            )
        )

        note(f"[{backend.kind}] writing {EVENTS:,} messages")
        texts: list[Event] = [UserMessage(content=f"message {number}") for number in range(EVENTS)]
        await _session(store, "refolded", [texts[start : start + 10] for start in range(0, EVENTS, 10)])
        kept = Surfaces()

        async def anew() -> float:
            nonlocal kept
            kept = Surfaces()
            return await reading(await _meta(store, "refolded"), kept)

        async def after_one_more() -> float:
            await store.sessions.append(SPACE, "refolded", [UserMessage(content="one more")])
            return await reading(await _meta(store, "refolded"), kept)

        ratio, second, first = await in_turn(after_one_more, anew)
        detail = f"{second * 1000:.1f} ms against {first * 1000:.0f} ms"
        report(
            Row(f"[{backend.kind}] folding 20,000 events after one more, against at first", ratio, 0.1, False, detail)
        )
