"""Importing a format's logs into SQLite against the bare driver that inserts the same commit documents."""

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from storage.importing import Target
from storage.importing.stream import import_stream
from storage.sqlite.database import FILE, open_file
from storage.store import Store
from tests.bench.places import Place
from tests.bench.table import Row, in_turn, tell
from tests.formats.logs import DATA

LOG = DATA / "codex/rollout-2026-05-11T11-26-55-019e1625.jsonl"
ID = b"019e1625"
FILES = 20


async def measure(place: Place) -> None:
    """Prints the row, for SQLite."""
    if place.kind != "sqlite":
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(FILES):
            (folder / f"{number}.jsonl").write_bytes(LOG.read_bytes().replace(ID, b"%08d" % number))
        runs = iter(range(1_000))

        async def ours() -> float:
            return await imported(folder, folder / f"ours-{next(runs)}")

        async def bare() -> float:
            return inserted(folder / "ours-0" / FILE, folder / f"bare-{next(runs)}.db")

        ratio, first, second = await in_turn(ours, bare)
        detail = f"{first:,.0f} events/s against {second:,.0f}"
        tell(Row("[sqlite] import of Codex rollouts against bare inserts of its commits", ratio, 0.3, True, detail))


async def imported(folder: Path, data_dir: Path) -> float:
    """Events a second of an import of all files into a fresh store."""
    store = Store(await open_file(data_dir))
    try:
        began = time.perf_counter()
        events = 0
        for path in folder.glob("*.jsonl"):
            with path.open("rb") as stream:
                _, done = await import_stream(Target(store, "default"), path.name, stream)
            events += done.events
        return events / (time.perf_counter() - began)
    finally:
        await store.close()


def inserted(source: Path, target: Path) -> float:
    """Events a second of the same rows, each inserted in a transaction of its own with the store's durability."""
    with closing(sqlite3.connect(source)) as made, closing(sqlite3.connect(target, isolation_level=None)) as fresh:
        fresh.execute("PRAGMA journal_mode = WAL")
        fresh.execute("PRAGMA synchronous = FULL")
        for (statement,) in _statements(made):
            fresh.execute(statement)
        rows = made.execute("SELECT * FROM commits").fetchall()
        names = [column[1] for column in made.execute("PRAGMA table_info(commits)")]
        events = sum(row[names.index("last")] - row[names.index("first")] + 1 for row in rows)
        insert = f"INSERT INTO commits VALUES ({', '.join('?' * len(names))})"
        began = time.perf_counter()
        for row in rows:
            fresh.execute("BEGIN IMMEDIATE")
            fresh.execute(insert, row)
            fresh.execute("COMMIT")
        return float(events / (time.perf_counter() - began))


def _statements(made: sqlite3.Connection) -> Iterator[tuple[str]]:
    """What makes the table and its indexes."""
    sql = "SELECT sql FROM sqlite_master WHERE tbl_name = 'commits' AND type IN ('table', 'index') AND sql IS NOT NULL"
    yield from made.execute(f"{sql} ORDER BY type DESC")
