"""The MongoDB store: transactions that are started over on conflicts, and never committed twice."""

import asyncio
import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorClientSession, AsyncIOMotorDatabase
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import PyMongoError, ServerSelectionTimeoutError
from pymongo.read_concern import ReadConcern
from typing_extensions import override

from storage import errors
from storage.database import Database, Listener, Notification, Queries, Transaction, Work
from storage.mongo import changes, codec, failure
from storage.mongo.codec import Document
from storage.mongo.queries import MongoQueries
from storage.mongo.queues import Queues
from storage.mongo.transaction import MongoTransaction

T = TypeVar("T")

DURABLE = WriteConcern("majority", j=True, wtimeout=10_000)
MAJORITY = ReadConcern("majority")
SNAPSHOT = ReadConcern("snapshot")

WORK_SECONDS = 30.0
"""How long work waits and is started over before it fails."""
LONGEST_PAUSE_SECONDS = 0.2
SHARED = 100
"""Works that share one transaction. More gain little, and a conflict of one starts all of them over."""
SHARED_ATTEMPTS = 3
"""Conflicts after which works that share a transaction run in transactions of their own."""
DROPPED_AT_ONCE = 5_000
"""Commits that the collector deletes by one command."""


class MongoDatabase(Database):
    """A database opened by `open_url`."""

    def __init__(self, client: AsyncIOMotorClient[Document], database: str, name: str) -> None:
        self.name = name
        self._client = client
        self._database = client.get_database(
            database,
            codec_options=codec.OPTIONS,
            read_preference=ReadPreference.PRIMARY,
            write_concern=DURABLE,
            read_concern=MAJORITY,
        )
        self._queues = Queues()
        self._listeners: list[Listener] = []
        self._running: set[asyncio.Task[Any]] = set()
        self._closing = False

    @override
    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        with failure.translated():
            return await query(MongoQueries(self._database))

    @override
    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        result: T = await self._transact(work, queue)
        return result

    @override
    async def transact_each(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        results: list[Any | errors.SapwoodError] = []
        for start in range(0, len(works), SHARED):
            results += await self._transact_together(works[start : start + SHARED])
        return results

    async def _transact_together(self, works: Sequence[Work]) -> list[Any | errors.SapwoodError]:
        shared = _SharedWork(works)
        queue = {key for work in works for key in work.queue}
        try:
            while len(works) > 1:
                with contextlib.suppress(_WroteAndRaised):
                    results: list[Any] = await self._transact(shared.run, queue, shared=True)
                    return results
        except errors.SapwoodError as error:
            return [error] * len(works)
        except _CannotShare:
            pass
        return [await self._transact_alone(work) for work in works]

    async def _transact_alone(self, work: Work) -> Any | errors.SapwoodError:
        try:
            return await self._transact(work.run, work.queue)
        except errors.SapwoodError as error:
            return error

    async def _transact(
        self, work: Callable[[Transaction], Awaitable[Any]], queue: Collection[str], shared: bool = False
    ) -> Any:
        deadline = asyncio.get_running_loop().time() + WORK_SECONDS
        try:
            async with asyncio.timeout_at(deadline):
                entered = await self._queues.enter(queue)
        except TimeoutError as error:
            raise errors.Unavailable("other writes to the same session are taking too long; try again") from error
        if self._closing:
            self._queues.leave(entered)
            raise errors.Unavailable("this server is shutting down; try again")
        run = _Run(self, work, deadline, shared)
        task = asyncio.create_task(self._finish(run.run(), entered))
        self._running.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            run.abandoned = True
            raise

    async def _finish(self, run: Coroutine[Any, Any, T], entered: Collection[str]) -> T:
        try:
            return await run
        finally:
            self._queues.leave(entered)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()

    @override
    async def collect(self, log: str, cut: int) -> int:
        commits = self._database["commits"]
        total = 0
        with failure.translated():
            while True:
                where = {"log": log, "first": {"$gte": cut}}
                found = await commits.find(where, {"_id": 0, "first": 1}).limit(DROPPED_AT_ONCE).to_list(None)
                if not found:
                    return total
                seqs = [row["first"] for row in found]
                where = {"log": log, "first": {"$gte": min(seqs), "$lte": max(seqs)}}
                total += (await commits.delete_many(where)).deleted_count

    @override
    def changes(self) -> AsyncIterator[Sequence[Notification]]:
        return changes.follow(self._database)

    @override
    def watch(self, listener: Listener) -> None:
        self._listeners.append(listener)

    @override
    async def ping(self) -> None:
        await self.read(lambda queries: queries.as_of())

    @override
    async def close(self) -> None:
        self._closing = True
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.to_thread(self._client.close)

    @property
    def documents(self) -> AsyncIOMotorDatabase[Document]:
        """The collections."""
        return self._database

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[tuple[AsyncIOMotorClientSession, MongoTransaction]]:
        """A transaction; aborted at the end unless it was committed."""
        async with await self._client.start_session() as session:
            session.start_transaction(SNAPSHOT, DURABLE, ReadPreference.PRIMARY)
            try:
                yield session, MongoTransaction(self._database, session, uuid.uuid4().hex)
            finally:
                # Motor's own exit from a session aborts on the event loop's thread, which would block it.
                if session.in_transaction:  # type: ignore[truthy-function]  # a property; the stub says method
                    await session.abort_transaction()

    def announce(self, transaction: MongoTransaction) -> None:
        """Calls the listeners with what a committed transaction wrote."""
        if transaction.notifications:
            for listener in self._listeners:
                listener(transaction.notifications, transaction.commits_made)


class _CannotShare(Exception):
    """Works wrote nothing in a shared transaction, and have to run in transactions of their own."""


class _WroteAndRaised(Exception):
    """One of the works of a shared transaction wrote before it raised, so the transaction must not commit."""


class _SharedWork:
    """Several works as one. Those that raised after a write are left out of the next attempt."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = works
        self._left_out: dict[int, errors.SapwoodError] = {}

    async def run(self, transaction: Transaction) -> list[Any | errors.SapwoodError]:
        """The result of each work, or the SapwoodError that it raised. Raises _WroteAndRaised to be run again."""
        assert isinstance(transaction, MongoTransaction)
        results: list[Any | errors.SapwoodError] = []
        for index, work in enumerate(self._works):
            if index in self._left_out:
                results.append(self._left_out[index])
                continue
            before = transaction.writes
            try:
                results.append(await work.run(transaction))
            except errors.SapwoodError as error:
                if transaction.writes > before:
                    self._left_out[index] = error
                    raise _WroteAndRaised from error
                results.append(error)
        return results


class _Run:
    """Runs one work: attempts, until one is committed or raises.

    A commit that is not answered is sent again. An attempt that the server then knows nothing about is uncertain: it
    may have been committed before the server went away. Each later attempt first searches its own snapshot for
    evidence of the uncertain ones; if it finds any, that attempt's result is the work's. If an uncertain attempt is
    committed later still, it conflicts with the later one, which writes the same documents; that one is started over,
    and then finds the evidence.

    A `shared` work raises _CannotShare after a few conflicts, or when the database refuses one of its writes.
    """

    def __init__(
        self,
        database: MongoDatabase,
        work: Callable[[Transaction], Awaitable[Any]],
        deadline: float,
        shared: bool,
    ) -> None:
        self.abandoned = False
        self._database = database
        self._work = work
        self._deadline = deadline
        self._shared = shared
        self._uncertain: list[MongoTransaction] = []

    async def run(self) -> Any:
        attempts = 0
        while True:
            try:
                done = await self._attempt()
            except failure.DRIVER_ERRORS as error:
                attempts += 1
                if self._is_unshareable(error, attempts):
                    raise _CannotShare from error
                if not self._retries(error):
                    raise self._failure(error) from error
                await _pause(attempts)
            else:
                self._database.announce(done)
                return done.result

    def _is_unshareable(self, error: Exception, attempts: int) -> bool:
        if not self._shared or self._uncertain:
            return False
        if isinstance(error, PyMongoError):
            is_conflict = failure.is_conflict(error)
            return attempts >= SHARED_ATTEMPTS if is_conflict else not failure.is_unreachable(error)
        return True

    def _retries(self, error: Exception) -> bool:
        if not isinstance(error, PyMongoError) or self._late:
            return False
        if self._uncertain:
            return failure.is_conflict(error) or failure.is_unreachable(error)
        if isinstance(error, ServerSelectionTimeoutError) or self.abandoned:
            return False
        return failure.is_conflict(error)

    def _failure(self, error: Exception) -> errors.SapwoodError:
        if self._uncertain:
            return errors.Unavailable(
                "the connection to the database was lost during a commit, and whether it was written is not known; try "
                "again, with the same idempotencyKey if there was one"
            )
        return failure.translate(error)

    async def _attempt(self) -> MongoTransaction:
        """Returns the transaction that was committed, this one or an earlier one."""
        async with self._database.begin() as (session, transaction):
            for earlier in self._uncertain:
                if await transaction.finds(earlier):
                    return earlier
            transaction.result = await self._work(transaction)
            await transaction.seal()
            if self.abandoned:
                raise errors.Unavailable("the caller has gone; nothing was written")
            await self._commit(session, transaction)
        return transaction

    async def _commit(self, session: AsyncIOMotorClientSession, transaction: MongoTransaction) -> None:
        attempts = 0
        while True:
            try:
                await session.commit_transaction()
            except PyMongoError as error:
                attempts += 1
                # Until the commit reaches it, the server may keep the transaction open, and a new one would conflict.
                if error.has_error_label("UnknownTransactionCommitResult") and not self._late:
                    await _pause(attempts)
                    continue
                if transaction.writes:
                    self._uncertain.append(transaction)
                raise
            else:
                return

    @property
    def _late(self) -> bool:
        return asyncio.get_running_loop().time() > self._deadline


async def _pause(attempts: int) -> None:
    await asyncio.sleep(random.uniform(0, min(LONGEST_PAUSE_SECONDS, 0.004 * 2 ** min(attempts, 10))))
