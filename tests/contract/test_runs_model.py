"""Whatever is appended, forked and deleted, rows and whole runs equal a fold of the whole log."""

import asyncio
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage import errors
from storage.events import AssistantChunk, Event, RunFeedback, RunStatus, StepStart, TurnEnd, TurnStart, UserMessage
from storage.lifecycle import Fork, NewSession
from storage.log import run_index
from storage.readers import runs
from storage.session import SessionMeta
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.runs import assert_runs_match_log
from tests.storage.views.test_runs import call, result
from tests.storage.views.test_runs_folding import CALLS, DRAFTS, JSON, TEXT

CHOICES = st.integers(0, 1_000)
COMMANDS = st.sampled_from(["append"] * 6 + ["fork", "fork", "fork", "delete"])
STARTED = st.sampled_from(["t1", "t3"])
MOSTLY_TAKEN: st.SearchStrategy[Event] = st.one_of(
    st.builds(AssistantChunk, delta=st.just("x"), turn_id=st.none() | STARTED),
    st.builds(UserMessage, content=st.just("q")),
    st.builds(result, CALLS, turn_id=st.none() | STARTED),
    st.builds(RunFeedback, turn_id=STARTED, feedback=TEXT, self_evaluation=JSON),
    st.just(TurnEnd(turn_id="t1", status=RunStatus.FAILED, error="why")),
)
SOME_DRAFTS = st.lists(DRAFTS | MOSTLY_TAKEN, min_size=1, max_size=6)


OPENING = [
    TurnStart(turn_id="t1"),
    StepStart(step_id="s1", turn_id="t1"),
    call(turn_id="t1"),
    TurnStart(turn_id="t3"),
    UserMessage(content="q", turn_id="t3"),
    call(turn_id="t3"),
    TurnEnd(turn_id="t3"),
]


class Play:
    """Runs commands on the sessions of a space. The first session starts with an open and an ended turn."""

    def __init__(self, store: Store, space: str) -> None:
        self.store = store
        self.space = space
        self.names = (f"s{number}" for number in itertools.count())
        self.sessions: list[str] = []

    async def begin(self) -> None:
        id = next(self.names)
        await self.store.tree.create(self.space, NewSession(id=id))
        await self.store.sessions.append(self.space, id, OPENING)
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
            case "delete" if len(self.sessions) > 1:
                await self.store.tree.delete(self.space, id)
                self.sessions.remove(id)

    async def append(self, id: str, drafts: list[Event], key: str | None) -> None:
        """Appends the drafts together or, if that is refused, one by one without the refused ones."""
        try:
            await self.store.sessions.append(self.space, id, drafts, key=key)
        except errors.SapwoodError:
            for draft in drafts if len(drafts) > 1 else []:
                await self.append(id, [draft], None)

    async def meta(self, id: str) -> SessionMeta:
        meta = await self.store.sessions.get(self.space, id)
        assert meta is not None
        return meta

    async def compare(self) -> None:
        for id in self.sessions:
            await assert_runs_match_log(self.store, id, self.space)
        with_rows = await self.store.database.read(lambda queries: queries.run_sessions(self.space))
        assert with_rows <= set(self.sessions)


def test_rows_and_runs_equal_a_fold_of_the_log(opening: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # Reads one event at a time, so that the stopping point matters even in such short logs.
    monkeypatch.setattr(run_index, "PAGE", 1)
    monkeypatch.setattr(runs, "EVENTS_AT_ONCE", 1)
    with asyncio.Runner() as runner:
        store = runner.run(opening())
        spaces = (f"space-{number}" for number in itertools.count())

        @settings(suppress_health_check=list(HealthCheck), database=None)
        @given(st.lists(st.tuples(COMMANDS, CHOICES, SOME_DRAFTS), min_size=6, max_size=20))
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
