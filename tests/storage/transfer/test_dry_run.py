"""A dry run reports what the import would do, and writes nothing."""

import pytest

from storage.session import SessionStatus
from storage.store import Store
from tests.storage.large_logs import suited
from tests.storage.spaces import SPACE, bring, contents, nodes_of
from tests.storage.transfer.formats.logs import DATA
from tests.storage.transfer.imports import LINES, LOGS, format_of, lines_of

COUNTS = ("sessions", "forks", "nodes", "known", "events", "warnings", "ids", "refused")


@pytest.mark.parametrize("name", LOGS)
async def test_a_dry_run_counts_like_a_real_import_and_writes_nothing(store: Store, name: str) -> None:
    content = suited(store, name)
    dry = await bring(store, name, content, dry=True)
    assert await nodes_of(store) == []
    real = await bring(store, name, content)
    assert [getattr(dry, count) for count in COUNTS] == [getattr(real, count) for count in COUNTS]


@pytest.mark.parametrize("name", LINES)
async def test_a_dry_run_continues_stored_sessions(store: Store, name: str) -> None:
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    await bring(store, name, b"".join(lines[: len(lines) // 2 + 1]), format=format_of(name))
    before = await contents(store)
    dry = await bring(store, name, dry=True)
    assert await contents(store) == before
    real = await bring(store, name)
    assert [getattr(dry, count) for count in COUNTS] == [getattr(real, count) for count in COUNTS]


async def test_a_dry_run_knows_the_stored_forks(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one", "two"))
    for last in ("three", "four"):
        await bring(store, "a", lines_of("a", "one", last))
    for last in ("three", "five"):
        dry = await bring(store, "a", lines_of("a", "one", last), dry=True)
        real = await bring(store, "a", lines_of("a", "one", last))
        assert [getattr(dry, count) for count in COUNTS] == [getattr(real, count) for count in COUNTS]


async def test_a_dry_run_refuses_what_an_archived_session_refuses(store: Store) -> None:
    await bring(store, "a", lines_of("a", "one"))
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    dry = await bring(store, "a", lines_of("a", "one", "two"), dry=True)
    real = await bring(store, "a", lines_of("a", "one", "two"))
    assert dry.refused == real.refused
    assert list(real.refused) == list(real.ids)
