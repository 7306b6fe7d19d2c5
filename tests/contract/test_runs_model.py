"""Whatever is appended, forked and deleted: rows and whole runs are those that a fold of the whole log gives."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage import errors
from storage.events import Event, TurnStart
from storage.lifecycle import Fork, NewSession
from storage.session import SessionMeta
from storage.store import Store
from storage.views.run_rows import RunRow, rebuild
from storage.views.runs import runs
from tests.views.test_runs_folding import DRAFTS

CHOICES = st.integers(0, 1_000)
COMMANDS = st.sampled_from(["append"] * 6 + ["fork", "fork", "consume", "delete"])
SOME_DRAFTS = st.lists(DRAFTS, min_size=1, max_size=8)


class Play:
    """Does commands to the sessions of a space, whose first one starts with two open turns."""

    def __init__(self, store: Store, space: str) -> None:
        self.store = store
        self.space = space
        self.names = (f"s{number}" for number in itertools.count())
        self.sessions: list[str] = []

    async def begin(self) -> None:
        id = next(self.names)
        await self.store.tree.create(self.space, NewSession(id=id))
        await self.store.sessions.append(self.space, id, [TurnStart(turn_id="t1"), TurnStart(turn_id="t3")])
        self.sessions.append(id)

    async def do(self, command: str, choice: int, drafts: list[Event]) -> None:
        id = self.sessions[choice % len(self.sessions)]
        match command:
            case "append":
                await self.append(id, drafts, None if choice % 3 else f"{choice % 12}")
            case "fork":
                meta = await self.meta(id)
                fork, prompt = next(self.names), "go on" if choice % 2 else None
                at_seq = meta.head - choice % min(12, meta.head + 1)
                wanted = Fork(id, at_seq=at_seq, id=fork, as_root=True, prompt=prompt)
                await self.store.tree.fork(self.space, wanted)
                self.sessions.append(fork)
            case "consume":
                await self.store.sessions.consume_insight(self.space, id, None, None, None)
            case "delete" if len(self.sessions) > 1:
                await self.store.tree.delete(self.space, id)
                self.sessions.remove(id)

    async def append(self, id: str, drafts: list[Event], key: str | None) -> None:
        """One append of the drafts, or, where one is refused, one for each that is not."""
        try:
            await self.store.sessions.append(self.space, id, drafts, key=key)
        except errors.SapwoodError:
            for draft in drafts if len(drafts) > 1 else []:
                await self.append(id, [draft], None)

    async def meta(self, id: str) -> SessionMeta:
        meta = await self.store.sessions.get(self.space, id)
        assert meta is not None
        return meta

    async def rows(self, id: str) -> dict[str, RunRow]:
        return await self.store.database.read(lambda queries: queries.run_rows(self.space, id, None))

    async def compare(self) -> None:
        for id in self.sessions:
            meta = await self.meta(id)
            events = (await self.store.sessions.events(meta, first=1_000)).events
            assert len(events) == meta.head
            assert await self.rows(id) == rebuild(events, meta)
            expected = runs(events, id, meta.own_start)[::-1]
            assert await self.store.runs.of_session(meta, 200, None) == expected
            assert [await self.store.runs.one(meta, run.turn_id) for run in expected] == expected
            paged = [await self.store.runs.of_session(meta, 1, run.start_seq + 1) for run in expected]
            assert paged == [[run] for run in expected]
        told = await self.store.database.read(lambda queries: queries.run_sessions(self.space))
        assert told <= set(self.sessions)


def test_rows_and_runs_are_what_a_fold_of_the_log_gives(opening: Callable[[], Awaitable[Store]]) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(opening())
        spaces = (f"space-{number}" for number in itertools.count())

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(st.lists(st.tuples(COMMANDS, CHOICES, SOME_DRAFTS), min_size=1, max_size=16))
        def check(commands: list[tuple[str, int, list[Event]]]) -> None:
            async def play() -> None:
                playing = Play(store, next(spaces))
                await playing.begin()
                for command in commands:
                    await playing.do(*command)
                await playing.compare()

            runner.run(play())

        try:
            check()
        finally:
            runner.run(store.close())
