"""Shutdown: sockets are closed so that clients reconnect, and resume without loss or repeats."""

import asyncio
import json

from tests.server.client import IN_TIME, Client, Ended, Socket, begin, subscribe_message
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, log, texts, user
from tests.server.process import Server
from tests.server.transport.test_disconnects import DEAR, LONG, WIDTH, under_way, wide

SPACE = "subscription($positions: [SessionPosition!]) { spaceEvents(positions: $positions) { sessionId seq } }"
FOREST = "subscription { forestChanges { ... on ForestSnapshot { forest { nodeCount } } } }"
SLOTS = "subscription { slotChanges { sessionId } }"


async def test_sockets_close_with_1012_and_resume_on_the_next_server(serve: Serve, name: str) -> None:
    """No operation completes, the exit code is 0, and clients resume where they were."""
    server = serve()
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        await append(client, name, *texts(5))
        async with Socket.open(server.socket) as socket:
            events = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
            space = await socket.subscribe(SPACE, positions=[{"sessionId": name, "fromSeq": 2}])
            forest = await socket.subscribe(FOREST)
            slots = await socket.subscribe(SLOTS)
            assert len(await events.take(5)) == 5
            assert len(await space.take(3)) == 3
            await forest.next()
            assert await asyncio.to_thread(server.end) == 0
            for stream in (events, space, forest, slots):
                try:
                    message = await stream.message()
                except Ended as ended:
                    assert ended.code == 1012
                else:
                    raise AssertionError(f"delivered before shutdown: {message}")
            assert socket.connection.close_code == 1012
    await _goes_on(serve(), name)


async def _goes_on(server: Server, name: str) -> None:
    """A client that resumes at 5 gets exactly the log from there on."""
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        await append(client, name, *texts(2, 5))
        stream = await socket.subscribe(FOLLOW, id=name, **{"from": 5})
        await append(client, name, *texts(2, 7))
        found = [result["sessionEvents"] for result in await stream.take(4)]
        assert found == (await log(client, name))[5:]


async def test_answered_requests_are_done_and_no_others(serve: Serve, name: str) -> None:
    """Appends run during shutdown; those answered are stored after the next start."""
    server = serve()
    answered: list[int] = []

    async def write(client: Client, writer: int) -> None:
        for index in range(10_000):
            done = await append(client, name, user(f"{writer}/{index}"))
            answered.append(done["firstSeq"])

    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        writing = [asyncio.create_task(write(client, writer)) for writer in range(4)]
        async with asyncio.timeout(IN_TIME):
            while len(answered) < 20:
                await asyncio.wait(writing, timeout=0.01)
        assert await asyncio.to_thread(server.end) == 0
        ends = await asyncio.gather(*writing, return_exceptions=True)
        assert all(isinstance(end, Exception) for end in ends)
    again = serve()
    async with Client(lambda: again.graphql) as client:
        events = await log(client, name)
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert set(answered) <= set(range(len(events)))
    assert len(set(answered)) == len(answered)
    assert len(events) <= len(answered) + 4


async def test_a_client_that_does_not_read_does_not_delay_shutdown(serve: Serve, name: str) -> None:
    """Its connection can't be closed cleanly; the process still ends within the grace period."""
    server = serve()
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        connection = await begin(server.socket, max_queue=1)
        connection.transport.pause_reading()
        await connection.send(json.dumps(subscribe_message("1", FOLLOW, {"id": name, "from": 0})))
        async with Socket.open(server.socket) as socket:
            healthy = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
            for _ in range(4):
                await append(client, name, *(user("x" * 100_000) for _ in range(50)))
            await healthy.take(200)
            assert await asyncio.to_thread(server.end) == 0
            try:
                await healthy.message()
            except Ended as ended:
                assert ended.code == 1012
            else:
                raise AssertionError("delivered before shutdown")
        connection.transport.abort()
        await connection.wait_closed()


async def test_operations_under_way_are_answered_within_the_grace_period(serve: Serve, name: str) -> None:
    server = serve("--grace", "120", *DEAR)
    async with Client(lambda: server.graphql) as client:
        await wide(client, name)
        asking = asyncio.create_task(client.run(LONG, id=name))
        await under_way(server, 1)
        assert await asyncio.to_thread(server.end) == 0
        assert len((await asking)["topologyNode"]["children"]) == WIDTH


async def test_operations_that_outlast_the_grace_period_are_unavailable(serve: Serve, name: str) -> None:
    server = serve("--grace", "0", *DEAR)
    async with Client(lambda: server.graphql) as client:
        await wide(client, name)
        asking = asyncio.create_task(client.refusal(LONG, id=name))
        await under_way(server, 1)
        assert await asyncio.to_thread(server.end) == 0
        assert (await asking).code == "UNAVAILABLE"
    assert "Traceback" not in server.output
