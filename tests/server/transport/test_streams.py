"""Server-sent events, in the distinct connections mode of graphql-sse."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from tests.server.client import IN_TIME, Client
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, log, texts
from tests.server.process import Server
from tests.server.transport.test_sockets import has_subscriptions, subscriptions

EVENTS = {"accept": "text/event-stream"}


class Events:
    """One event stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, Any]:
        """The next event and its data. Raises StopAsyncIteration at the end of the stream."""
        event, data = "", ""
        async with asyncio.timeout(IN_TIME):
            while (line := await anext(self._lines)) or not event:
                name, _, value = line.partition(":")
                if name == "event":
                    event = value.strip()
                elif name == "data":
                    data = value.strip()
        return event, json.loads(data) if data else None

    async def take(self, count: int) -> list[Any]:
        """The data of the next results."""
        found = []
        for _ in range(count):
            event, data = await self.next()
            assert event == "next"
            found.append(data["data"])
        return found


@contextlib.asynccontextmanager
async def opened(
    server: Server, query: str, method: str = "POST", **variables: Any
) -> AsyncIterator[tuple[httpx.Response, Events]]:
    """An open stream."""
    given: Mapping[str, Any] = (
        {"json": {"query": query, "variables": variables}}
        if method == "POST"
        else {"params": {"query": query, "variables": json.dumps(variables)}}
    )
    async with (
        httpx.AsyncClient(timeout=IN_TIME, verify=False) as http,
        http.stream(method, server.graphql, headers=EVENTS, **given) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield response, Events(response)


def followed(
    server: Server, id: str, first: int, method: str = "POST"
) -> contextlib.AbstractAsyncContextManager[tuple[httpx.Response, Events]]:
    """An open stream of a session's events from a seq on."""
    return opened(server, FOLLOW, method, id=id, **{"from": first})


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_stream_sends_stored_events_then_live_ones(
    client: Client, shared: Server, name: str, method: str
) -> None:
    """The stream completes when the session is deleted."""
    await create(client, name)
    await append(client, name, *texts(3))
    async with followed(shared, name, 1, method) as (_, events):
        assert [data["sessionEvents"]["seq"] for data in await events.take(2)] == [1, 2]
        await append(client, name, *texts(2, 3))
        assert [data["sessionEvents"]["seq"] for data in await events.take(2)] == [3, 4]
        await client.run("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=name)
        assert await events.next() == ("complete", None)
        with pytest.raises(StopAsyncIteration):
            await events.next()


async def test_queries_mutations_and_refusals_are_sent_as_events_too(shared: Server, name: str) -> None:
    mutation = "mutation($id: ID!) { createSession(input: {id: $id}) { session { id } } }"
    async with opened(shared, mutation, id=name) as (_, events):
        assert await events.take(1) == [{"createSession": {"session": {"id": name}}}]
        assert await events.next() == ("complete", None)
    for query in ("{ nonsense }", "subscription { nonsense }", FOLLOW):
        async with opened(shared, query, id=f"{name}-no") as (_, events):
            event, data = await events.next()
            assert event == "next" and data["errors"][0]["extensions"]["code"] in ("BAD_INPUT", "NOT_FOUND")
            assert await events.next() == ("complete", None)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"method": "POST", "json": {"query": "{"}}, 400),
        ({"method": "POST", "json": {"query": "query A { __typename } query B { __typename }"}}, 400),
        ({"method": "POST", "json": []}, 400),
        ({"method": "GET", "params": {"query": "mutation { __typename }"}}, 405),
        ({"method": "GET"}, 400),
        ({"method": "PUT"}, 405),
        ({"method": "POST", "content": b"{}"}, 415),
    ],
)
async def test_a_request_without_an_operation_gets_no_stream(
    shared: Server, given: dict[str, Any], status: int
) -> None:
    async with httpx.AsyncClient(timeout=IN_TIME, verify=False) as http:
        answer = await http.request(url=shared.graphql, headers=EVENTS, **given)
    assert answer.status_code == status
    assert answer.json()["errors"][0]["extensions"]["code"] == "BAD_INPUT"


async def test_streams_of_disconnected_clients_end(client: Client, shared: Server, name: str) -> None:
    await create(client, name)
    before = await subscriptions(shared)
    async with contextlib.AsyncExitStack() as streams:
        for _ in range(20):
            await streams.enter_async_context(followed(shared, name, 0))
        await has_subscriptions(shared, before + 20)
    await has_subscriptions(shared, before)


async def test_at_shutdown_streams_end_without_complete_and_resume_on_the_next_server(serve: Serve, name: str) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        await append(client, name, *texts(2))
        async with followed(server, name, 0) as (_, events):
            assert len(await events.take(2)) == 2
            assert await asyncio.to_thread(server.end) == 0
            with pytest.raises(StopAsyncIteration):
                await events.next()
    again = serve()
    async with Client(lambda: again.graphql) as client:
        async with followed(again, name, 2) as (_, events):
            await append(client, name, *texts(2, 2))
            found = [data["sessionEvents"] for data in await events.take(2)]
        assert found == (await log(client, name))[2:]
