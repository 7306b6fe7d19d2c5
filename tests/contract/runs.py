"""The runs of a session must equal a fold of its whole log, whatever was appended."""

from storage.events import Event
from storage.store import Store
from storage.views.run_rows import RunRow, rebuild
from storage.views.runs import runs
from tests.contract.shorthand import SPACE


async def rows_of(store: Store, id: str, space: str = SPACE) -> dict[str, RunRow]:
    """The rows of a session by turn."""
    return await store.database.read(lambda queries: queries.run_rows(space, id, None))


async def assert_runs_match_log(store: Store, id: str, space: str = SPACE) -> None:
    """Checks that rows, runs, pages of runs and single runs of a session of up to 200 turns match its log."""
    meta = await store.sessions.get(space, id)
    assert meta is not None
    events: list[Event] = []
    while len(events) < meta.head:
        events += (await store.sessions.events(meta, from_seq=len(events), first=1_000)).events
    assert await rows_of(store, id, space) == rebuild(events, meta)
    expected = runs(events, id, meta.own_start)[::-1]
    assert await store.runs.of_session(meta, 200, None) == expected
    assert [await store.runs.one(meta, run.turn_id) for run in expected] == expected
    paged = [await store.runs.of_session(meta, 1, run.start_seq + 1) for run in expected]
    assert paged == [[run] for run in expected]
