"""Third-party clients from npm: the audits of graphql-http, and the clients graphql-ws and graphql-sse."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.server.client import IN_TIME, Client
from tests.server.operations import FOLLOW, append, create, texts
from tests.server.process import Server

APPEND = """mutation($id: ID!) {
  appendEvents(input: {sessionId: $id, events: [{userMessage: {content: "x"}}]}) { head } }"""


async def test_all_audits_of_graphql_over_http_pass(node: Path, shared: Server) -> None:
    process = await asyncio.create_subprocess_exec(
        "node", "audits.mjs", shared.graphql, cwd=node, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert json.loads(output) == {"count": 61, "failed": []}


class NodeClient:
    """A client in a process of its own. Its messages are queued by operation."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._messages: dict[str, asyncio.Queue[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            self._messages[message.pop("id")].put_nowait(message)

    async def begin(self, id: str, query: str, variables: Mapping[str, Any] | None = None) -> None:
        """Starts an operation."""
        assert self._process.stdin is not None
        self._messages[id] = asyncio.Queue()
        line = json.dumps({"id": id, "query": query, "variables": variables})
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def next(self, id: str) -> Any:
        """The client's next message about an operation."""
        async with asyncio.timeout(IN_TIME):
            return await self._messages[id].get()

    async def end(self) -> None:
        """Ends the client cleanly."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading


@contextlib.asynccontextmanager
async def started(node: Path, transport: str, server: Server) -> AsyncIterator[NodeClient]:
    address = server.socket if transport == "ws" else server.graphql
    process = await asyncio.create_subprocess_exec(
        "node",
        "client.mjs",
        transport,
        address,
        cwd=node,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    client = NodeClient(process)
    yield client
    await client.end()


@pytest.mark.parametrize("transport", ["ws", "sse"])
async def test_a_client_follows_queries_and_is_refused(
    node: Path, shared: Server, client: Client, name: str, transport: str
) -> None:
    """A faulty operation does not affect the others; a deleted session's subscription completes."""
    await create(client, name)
    await append(client, name, *texts(3))
    async with started(node, transport, shared) as other:
        await other.begin("events", FOLLOW, {"id": name, "from": 0})
        for seq in range(3):
            message = await other.next("events")
            assert message["result"]["data"]["sessionEvents"]["content"] == f"message {seq}"
        for id, query in (("syntax", "subscription {"), ("field", "{ nonsense }"), ("unknown", FOLLOW)):
            await other.begin(id, query, {"id": f"{name}-no"} if id == "unknown" else None)
            message = await other.next(id)
            assert "error" in message or "errors" in message["result"], message
        await other.begin("mutation", APPEND, {"id": name})
        assert (await other.next("mutation"))["result"]["data"] == {"appendEvents": {"head": 4}}
        assert await other.next("mutation") == {"complete": True}
        assert (await other.next("events"))["result"]["data"]["sessionEvents"]["seq"] == 3
        await other.begin("query", "query($id: ID!) { session(id: $id) { head } }", {"id": name})
        assert (await other.next("query"))["result"]["data"] == {"session": {"head": 4}}
        assert await other.next("query") == {"complete": True}
        await client.run("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=name)
        assert await other.next("events") == {"complete": True}
