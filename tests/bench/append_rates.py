"""Appends through HTTP against what the same server or database does without them."""

import asyncio
import time
import uuid
from functools import partial

from tests.bench.load import Body, Connection, body, rate
from tests.bench.places import Place
from tests.bench.table import Row, in_turn, tell

CLIENTS = 20
APPEND = "mutation($input:AppendEventsInput!){appendEvents(input:$input){firstSeq head}}"
CREATE = "mutation($id:ID!){createSession(input:{id:$id}){session{id}}}"
VIEWER = body("{viewer{space}}")


async def sessions(port: int) -> list[str]:
    """Fresh sessions, one a client."""
    names = [f"append-{uuid.uuid4().hex[:8]}-{number}" for number in range(CLIENTS)]
    connection = Connection(port)
    for name in names:
        await connection.post(body(CREATE, id=name))
    connection.close()
    return names


def appends(names: list[str], events: int) -> list[Body]:
    """A client a session that appends so many events a time."""
    batch = [{"userMessage": {"content": f"event {number} of a batch"}} for number in range(events)]
    contents = [body(APPEND, input={"sessionId": name, "events": batch}) for name in names]
    return [lambda _, content=content: content for content in contents]  # type: ignore[misc]


async def measure(place: Place) -> None:
    """Prints the rows of one store."""
    async with place.served() as port:
        names = await sessions(port)
        one = partial(rate, port, appends(names, 1), 60)
        if place.kind == "sqlite":
            viewers: list[Body] = [lambda _: VIEWER] * CLIENTS
            ratio, ours, theirs = await in_turn(one, partial(rate, port, viewers, 60))
            detail = f"{ours:,.0f} appends/s, {theirs:,.0f} viewers/s"
            what = "one-event appends of 20 clients through HTTP against {viewer{space}}"
        else:
            ratio, ours, theirs = await in_turn(one, partial(bare_transactions, place))
            detail = f"{ours:,.0f} appends/s, {theirs:,.0f} bare transactions/s"
            what = "one-event appends of 20 clients through HTTP against the bare driver"
        tell(Row(f"[{place.kind}] {what}", ratio, 0.6, True, detail))

        async def fifty() -> float:
            return 50 * await rate(port, appends(names, 50), 6)

        ratio, ours, theirs = await in_turn(fifty, one, rounds=3)
        detail = f"{ours:,.0f} events/s against {theirs:,.0f}"
        tell(Row(f"[{place.kind}] events a second in appends of 50 against one-event appends", ratio, 10, True, detail))


async def bare_transactions(place: Place) -> float:
    """Transactions a second of 20 tasks that insert one document and change another, with the bare driver."""
    async with place.bare_database() as database:
        await database.bench_commits.create_index([("log", 1), ("first", 1)], unique=True)
        run = uuid.uuid4().hex
        await database.bench_sessions.insert_many([{"_id": f"{run}/{task}", "head": 0} for task in range(CLIENTS)])

        async def task(number: int) -> None:
            for head in range(60):
                async with await database.client.start_session() as session, session.start_transaction():
                    await database.bench_commits.insert_one(
                        {
                            "_id": uuid.uuid4().hex,
                            "log": f"{run}/{number}",
                            "first": head,
                            "events": [{"type": "user/message", "content": "event 0 of a batch"}],
                        },
                        session=session,
                    )
                    await database.bench_sessions.update_one(
                        {"_id": f"{run}/{number}", "head": head},
                        {"$set": {"head": head + 1}, "$currentDate": {"updatedAt": True}},
                        session=session,
                    )

        began = time.perf_counter()
        await asyncio.gather(*map(task, range(CLIENTS)))
        return CLIENTS * 60 / (time.perf_counter() - began)
