"""Appends over HTTP, against requests that append nothing or writes with the bare driver."""

import asyncio
import time
import uuid
from functools import partial

from tests.bench.backends import Backend
from tests.bench.load import Body, Connection, body, rate
from tests.bench.table import Row, in_turn, report

CLIENTS = 20
APPEND = "mutation($input:AppendEventsInput!){appendEvents(input:$input){firstSeq head}}"
CREATE = "mutation($id:ID!){createSession(input:{id:$id}){session{id}}}"
VIEWER = body("{viewer{space}}")


async def sessions(port: int) -> list[str]:
    """Creates a session for each client."""
    names = [f"append-{uuid.uuid4().hex[:8]}-{number}" for number in range(CLIENTS)]
    connection = Connection(port)
    for name in names:
        await connection.post(body(CREATE, id=name))
    connection.close()
    return names


def appends(names: list[str], events: int) -> list[Body]:
    """One client per session, which appends `events` events with each request."""
    batch = [{"userMessage": {"content": f"event {number} of a batch"}} for number in range(events)]
    contents = [body(APPEND, input={"sessionId": name, "events": batch}) for name in names]
    return [always(content) for content in contents]


def always(content: bytes) -> Body:
    """A client that sends the same body each time."""
    return lambda _: content


async def measure(backend: Backend) -> None:
    """Reports the rows of one store."""
    async with backend.served() as port:
        names = await sessions(port)
        one = partial(rate, port, appends(names, 1), 60)
        if backend.kind == "sqlite":
            viewers = [always(VIEWER)] * CLIENTS
            ratio, ours, theirs = await in_turn(one, partial(rate, port, viewers, 60))
            detail = f"{ours:,.0f} appends/s, {theirs:,.0f} viewers/s"
            what = "one-event appends of 20 clients through HTTP against {viewer{space}}"
        else:
            ratio, ours, theirs = await in_turn(one, partial(bare_transactions, backend, names[0]))
            detail = f"{ours:,.0f} appends/s, {theirs:,.0f} bare transactions/s"
            what = "one-event appends of 20 clients through HTTP against the bare driver"
        report(Row(f"[{backend.kind}] {what}", ratio, 0.6, True, detail))

        async def fifty() -> float:
            return 50 * await rate(port, appends(names, 50), 6)

        ratio, ours, theirs = await in_turn(fifty, one, rounds=3)
        detail = f"{ours:,.0f} events/s against {theirs:,.0f}"
        report(
            Row(f"[{backend.kind}] events a second in appends of 50 against one-event appends", ratio, 10, True, detail)
        )


async def bare_transactions(backend: Backend, pattern: str) -> float:
    """Transactions per second of 20 tasks that do an append's two writes with the bare driver.

    They write copies of the documents of the session `pattern` under new keys, in the store's own collections and
    indexes: one write inserts a commit, the other updates a session.
    """
    async with backend.bare_database() as database:
        session_like = await database.sessions.find_one({"_id": f"default/{pattern}"})
        commit_like = await database.commits.find_one({"log": session_like["log"], "first": session_like["head"] - 1})
        run = uuid.uuid4().hex
        keys = [f"{run}/{task}" for task in range(CLIENTS)]
        await database.sessions.insert_many(
            [{**session_like, "_id": key, "space": run, "id": key, "log": key, "head": 0} for key in keys]
        )
        progress = {name: session_like[name] for name in ("totals", "open", "behind")}

        async def task(key: str) -> None:
            for head in range(60):
                commit = {**commit_like, "_id": uuid.uuid4().hex, "space": run, "session": key, "log": key}
                async with await database.client.start_session() as session, session.start_transaction():
                    await database.commits.insert_one({**commit, "first": head, "last": head}, session=session)
                    await database.sessions.update_one(
                        {"_id": key},
                        {
                            "$set": {"head": head + 1, **progress},
                            "$currentDate": {"updatedAt": True, "lastEventAt": True},
                        },
                        session=session,
                    )

        began = time.perf_counter()
        await asyncio.gather(*map(task, keys))
        duration = time.perf_counter() - began
        await database.commits.delete_many({"space": run})
        await database.sessions.delete_many({"space": run})
        return CLIENTS * 60 / duration
