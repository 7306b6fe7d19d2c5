"""The one writer of the file: a thread that commits together what is waiting, each work in its own savepoint."""

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from storage import errors
from storage.database import Commit, Transaction, Wake
from storage.sqlite.connection import connect, drive, translated
from storage.sqlite.transaction import SqliteTransaction

MAX_BATCH = 128
"""From how many works on a batch waits for no more."""
HANDED_OVER = 8
"""From how many works on the writer starts although the loop has more to come: it syncs while the loop goes on."""
KEPT_CHANGES = 50_000
"""How many wake-up rows stay in the file for processes that are behind."""

Listener = Callable[[Sequence[Wake], Sequence[Commit]], None]


@dataclass(slots=True)
class _Job:
    work: Callable[[Transaction], Awaitable[Any]]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Takes work from the event loop and answers after COMMIT. `listener` hears of what was committed, in order."""

    def __init__(self, path: Path, listener: Listener) -> None:
        self._path = path
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._gathered: list[_Job] = []
        self._connection = connect(path)
        self._batches = 0
        self._thread = threading.Thread(target=self._run, name="sapwood-writer", daemon=True)
        self._thread.start()

    async def submit(self, work: Callable[[Transaction], Awaitable[Any]]) -> Any:
        """The result of the work, once it is on disk."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._gathered:
            # What else this turn of the loop brings is handed over with it, for one commit.
            self._loop.call_soon(self._hand_over)
        self._gathered.append(_Job(work, future))
        if len(self._gathered) >= HANDED_OVER:
            self._hand_over()
        return await future

    def _hand_over(self) -> None:
        if self._gathered:
            self._jobs.put(self._gathered)
            self._gathered = []

    async def close(self) -> None:
        """Finishes what is waiting, then closes the file."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def _run(self) -> None:
        stop = False
        while not stop:
            batch: list[_Job] = []
            arrived = self._jobs.get()
            while arrived is not None:
                batch.extend(arrived)
                if len(batch) >= MAX_BATCH:
                    break
                try:
                    arrived = self._jobs.get_nowait()
                except Empty:
                    break
            stop = arrived is None
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[_Job]) -> None:
        wakes: list[Wake] = []
        commits: list[Commit] = []
        try:
            with translated(self._path):
                self._connection.execute("BEGIN IMMEDIATE")
                now = self._tick()
                for job in batch:
                    self._attempt(job, now, wakes, commits)
                self._prune()
                self._connection.execute("COMMIT")
        except errors.Unavailable as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            wakes, commits = [], []
            for job in batch:
                job.result, job.error = None, error
        # The loop is gone only when the server is; nobody is left to be told then.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answer, batch, wakes, commits)

    def _tick(self) -> int:
        sql = "UPDATE meta SET value = max(value, ?) WHERE name = 'clock' RETURNING value"
        now: int = self._connection.execute(sql, (time.time_ns() // 1_000_000,)).fetchone()[0]
        return now

    def _attempt(self, job: _Job, now: int, wakes: list[Wake], commits: list[Commit]) -> None:
        if job.future.cancelled():
            return
        self._connection.execute("SAVEPOINT work")
        transaction = SqliteTransaction(self._connection, now)
        try:
            job.result = drive(job.work(transaction))  # type: ignore[arg-type]  # an async function's awaitable is its coroutine
        except sqlite3.Error:
            raise
        except BaseException as error:
            job.error = error
            self._connection.execute("ROLLBACK TO work")
        else:
            wakes.extend(transaction.wakes)
            commits.extend(transaction.commits_made)
        self._connection.execute("RELEASE work")

    def _prune(self) -> None:
        self._batches += 1
        if self._batches % 1_000 == 0:
            sql = "DELETE FROM changes WHERE number <= (SELECT max(number) FROM changes) - ?"
            self._connection.execute(sql, (KEPT_CHANGES,))

    def _answer(self, batch: list[_Job], wakes: list[Wake], commits: list[Commit]) -> None:
        if wakes:
            self._listener(wakes, commits)
        for job in batch:
            if job.future.cancelled():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
