"""The one writer of the file: a thread that commits together what is waiting.

Work that raises before it wrote anything, as nearly all refusals do, costs the rest of the batch nothing. So work gets
no savepoint of its own, which would double the statements of an append.
"""

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from storage import errors
from storage.database import Listener, Notification, Transaction, Work
from storage.log.commit import Commit
from storage.session import SessionMeta
from storage.sqlite.connection import connect, drive, translated
from storage.sqlite.transaction import SqliteTransaction

MAX_BATCH = 128
"""Jobs at which a batch is full."""
HANDED_OVER = 8
"""Jobs at which the writer starts before the loop's turn is over: it syncs to disk while the loop goes on."""
KNOWN_SESSIONS = 10_000
"""Sessions cached, so that an append need not read its session while no other process writes."""
RETAINED_CHANGES = 50_000
"""Rows of `changes` that stay in the file for processes that are behind."""


@dataclass(slots=True)
class _Job:
    work: Callable[[Transaction], Awaitable[Any]]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Takes work from the event loop and answers after COMMIT. `listener` gets what was committed, in order."""

    def __init__(self, path: Path, listener: Listener) -> None:
        self._path = path
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._gathered: list[_Job] = []
        self._connection = connect(path)
        self._known: dict[tuple[str, str], SessionMeta] = {}
        self._version = -1
        self._batches = 0
        self._thread = threading.Thread(target=self._run, name="sapwood-writer", daemon=True)
        self._thread.start()

    async def submit(self, work: Callable[[Transaction], Awaitable[Any]]) -> Any:
        """The result of the work, once it is on disk."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._gathered:
            # Handed over with whatever else is submitted in this turn of the loop, to share one commit.
            self._loop.call_soon(self._hand_over)
        self._gathered.append(_Job(work, future))
        if len(self._gathered) >= HANDED_OVER:
            self._hand_over()
        return await future

    async def submit_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        """The result of each work, or the SapwoodError that it raised, once all are on disk."""
        self._hand_over()
        jobs = [_Job(work.run, self._loop.create_future()) for work in works]
        for start in range(0, len(jobs), MAX_BATCH):
            self._jobs.put(jobs[start : start + MAX_BATCH])
        results = await asyncio.gather(*(job.future for job in jobs), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, errors.SapwoodError):
                raise result
        return results

    def _hand_over(self) -> None:
        if self._gathered:
            self._jobs.put(self._gathered)
            self._gathered = []

    async def close(self) -> None:
        """Finishes the work that is waiting, then closes the file."""
        self._hand_over()
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
        notifications: list[Notification] = []
        commits: list[Commit] = []
        left = [job for job in batch if not job.future.cancelled()]
        try:
            with translated(self._path):
                while not self._attempt_all(left, notifications, commits):
                    # A job failed after it had written: everything was undone, and the rest runs again without it.
                    left = [job for job in left if job.error is None]
        except errors.Unavailable as error:
            self._undo()
            notifications, commits = [], []
            for job in batch:
                job.result, job.error = None, error
        # The loop is closed only when the server is gone, and then nobody waits for an answer.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._answer, batch, notifications, commits)

    def _attempt_all(self, jobs: list[_Job], notifications: list[Notification], commits: list[Commit]) -> bool:
        """Commits what the jobs write. Returns False, with nothing written, when one has to be dropped first."""
        notifications.clear()
        commits.clear()
        self._connection.execute("BEGIN IMMEDIATE")
        now = self._tick()
        for job in jobs:
            transaction = SqliteTransaction(self._connection, now, self._known)
            try:
                job.result = drive(job.work(transaction))  # type: ignore[arg-type]  # an async function's awaitable is its coroutine
            except sqlite3.Error:
                raise
            except BaseException as error:
                job.error = error
                if transaction.written:
                    self._undo()
                    return False
            else:
                job.error = None
                self._remember(transaction.changed)
                notifications.extend(transaction.notifications)
                commits.extend(transaction.commits_made)
        self._prune()
        self._connection.execute("COMMIT")
        return True

    def _remember(self, changed: Mapping[tuple[str, str], SessionMeta | None]) -> None:
        if len(self._known) > KNOWN_SESSIONS:
            self._known.clear()
        for key, meta in changed.items():
            if meta is None:
                self._known.pop(key, None)
            else:
                self._known[key] = meta

    def _undo(self) -> None:
        self._known.clear()
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")

    def _tick(self) -> int:
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            # Another process has written: the cached sessions may be stale.
            self._known.clear()
            self._version = version
        sql = "UPDATE meta SET value = max(value, ?) WHERE name = 'clock' RETURNING value"
        now: int = self._connection.execute(sql, (time.time_ns() // 1_000_000,)).fetchone()[0]
        return now

    def _prune(self) -> None:
        self._batches += 1
        if self._batches % 1_000 == 0:
            sql = "DELETE FROM changes WHERE number <= (SELECT max(number) FROM changes) - ?"
            self._connection.execute(sql, (RETAINED_CHANGES,))

    def _answer(self, batch: list[_Job], notifications: list[Notification], commits: list[Commit]) -> None:
        if notifications:
            self._listener(notifications, commits)
        for job in batch:
            if job.future.cancelled():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
