"""Importing logs into SQLite, against inserting the same commit documents with the bare driver."""

import asyncio
import multiprocessing
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from server.commands.imports.command import relax_garbage_collection
from server.commands.imports.inputs import inputs
from server.commands.imports.report import Report
from server.commands.imports.run import import_all
from storage.sqlite import schema
from storage.sqlite.connection import connect
from storage.sqlite.database import FILE, open_file
from storage.store import Store
from storage.transfer.importing import Target
from storage.transfer.parsing.memory import return_large_blocks
from storage.transfer.parsing.parser import Parser
from tests.bench.backends import Backend
from tests.bench.table import Row, in_turn, note, report
from tests.storage.transfer.formats.logs import DATA

LOGS = {
    "claude-code/session-624a4a58.jsonl": b"624a4a58",
    "codex/rollout-2026-05-11T11-26-55-019e1625.jsonl": b"019e1625",
    "pi-mono/before-compaction.jsonl": b"ffae836b",
}
"""Real logs, and the part of each id that differs in each copy."""
PARENT = re.compile(rb',"branchedFrom":"[^"]*"')
COPIES = 16


async def measure(backend: Backend) -> None:
    """Reports the row of SQLite."""
    if backend.kind != "sqlite":
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = list(_copies(folder))
        note(f"[sqlite] importing {sum(path.stat().st_size for path in paths) // 1_000_000} MB")
        runs = iter(range(1_000))

        async def ours() -> float:
            return await _apart(imported, paths, folder / f"ours-{next(runs)}")

        async def bare() -> float:
            return await _apart(inserted, folder / "ours-0" / FILE, folder / f"bare-{next(runs)}.db")

        ratio, first, second = await in_turn(ours, bare)
        detail = f"{first:,.0f} events/s against {second:,.0f}"
        what = "import of Claude Code, Codex and pi logs against bare inserts of its commits"
        report(Row(f"[sqlite] {what}", ratio, 0.3, True, detail))


async def _apart(work: Callable[..., float], *given: Any) -> float:
    """Measures the work in a new process, as a command would run it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, work, *given)


def _copies(folder: Path) -> Iterator[Path]:
    for number in range(COPIES):
        for name, id in LOGS.items():
            path = folder / f"{number}-{Path(name).name}"
            # A log whose parent is in none of the files would be read twice.
            content = PARENT.sub(b"", (DATA / name).read_bytes(), count=1)
            path.write_bytes(content.replace(id, b"%08d" % number))
            yield path


def imported(paths: list[Path], data_dir: Path) -> float:
    """Events per second of importing all files into a new store, as the command does it with its modules loaded."""
    report = Report(as_json=True)
    relax_garbage_collection()
    return_large_blocks()
    began = time.perf_counter()
    given = inputs(list(map(str, paths)))

    async def run(parser: Parser) -> float:
        store = Store(await open_file(data_dir))
        try:
            await import_all(Target(store, "default"), given, None, report, parser)
            return time.perf_counter() - began
        finally:
            await store.close()

    with Parser() as parser:
        duration = asyncio.run(run(parser))
    return sum(outcome.result.events for outcome in report.outcomes) / duration


def inserted(source: Path, target: Path) -> float:
    """Events per second of inserting the same documents and marks into a store's tables, a transaction per commit."""
    with closing(sqlite3.connect(source)) as made, closing(connect(target)) as fresh:
        schema.prepare(fresh, str(target))
        *columns, _ = [column[1] for column in made.execute("PRAGMA table_info(commits)")]
        commits = [(row, orjson.loads(doc)) for *row, doc in made.execute("SELECT * FROM commits ORDER BY key")]
        marks = {document["id"]: _marks(made, document) for _, document in commits}
        insert = f"INSERT INTO commits VALUES ({', '.join('?' * len(columns))}, ?)"
        began = time.perf_counter()
        for row, document in commits:
            fresh.execute("BEGIN IMMEDIATE")
            fresh.execute(insert, [*row, orjson.dumps(document).decode()])
            fresh.executemany("INSERT INTO starts VALUES (?, ?, ?, ?)", marks[document["id"]])
            fresh.execute("COMMIT")
        duration = time.perf_counter() - began
        return sum(len(document["events"]) for _, document in commits) / duration


def _marks(made: sqlite3.Connection, commit: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Index keys of the turns and steps that a commit starts."""
    sql = "SELECT kind, mark, log, seq FROM starts WHERE log = ? AND seq BETWEEN ? AND ?"
    return made.execute(sql, (commit["log"], commit["first"], commit["last"])).fetchall()
