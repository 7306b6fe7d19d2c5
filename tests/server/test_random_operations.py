"""The server answers or refuses any operation."""

import asyncio
import json
from collections import Counter
from typing import Any

import httpx

from schema.build import build_schema
from tests.effort import LONG
from tests.server.client import IN_TIME, Client
from tests.server.conftest import Serve
from tests.server.operations import append, create, fork, texts
from tests.server.process import Server
from tests.server.random_operations import Operations

OPERATIONS = 2_000 if LONG else 800
AT_ONCE = 10
JSON = {"content-type": "application/json"}
SEED = 20_261_129
GROWTH = 128 * 1024 * 1024
"""Bytes that the second half may add: caches are full by then, and the data are small."""


async def test_random_operations_never_fail_in_the_server(serve: Serve) -> None:
    """No 5xx, no INTERNAL, no traceback; a code in each error; both answers and refusals; memory that does not grow."""
    server = serve()
    outcomes, sizes = await run(server, OPERATIONS, parts=2)
    assert "Traceback" not in server.output
    assert outcomes["answered"] > OPERATIONS // 4 and outcomes["BAD_INPUT"] > OPERATIONS // 20, outcomes
    assert len(outcomes) >= 6, outcomes
    assert sizes[-1] - sizes[0] < GROWTH


async def run(server: Server, count: int, parts: int) -> tuple[Counter[str], list[int]]:
    """The outcomes of random operations, and the memory of the server after each part of them."""
    outcomes: Counter[str] = Counter()
    sizes = []
    async with Client(lambda: server.graphql) as client:
        ids = [f"random-{number}" for number in range(12)]
        for index, id in enumerate(ids[:6]):
            await create(client, id, ids[index - 1] if index % 3 else None)
            await append(client, id, *texts(4))
        await fork(client, ids[0], ids[6], atSeq=2)
        operations = Operations(build_schema()._schema, ids, SEED)

        # A connection each: an idle one could be closed just as it is used again.
        async with httpx.AsyncClient(
            verify=False, timeout=IN_TIME, limits=httpx.Limits(max_keepalive_connections=0)
        ) as http:

            async def ask(request: dict[str, Any]) -> None:
                outcomes[
                    check(await http.post(server.graphql, content=json.dumps(request), headers=JSON), request)
                ] += 1

            for _ in range(parts):
                for _ in range(count // parts // AT_ONCE):
                    await asyncio.gather(*(ask(operations.request()) for _ in range(AT_ONCE)))
                sizes.append(server.process.memory_info().rss)
        assert await client.run("{ viewer { space } }") == {"viewer": {"space": "default"}}
    return outcomes, sizes


def check(answer: httpx.Response, request: object) -> str:
    """The outcome: a code, or `answered`."""
    assert answer.status_code < 500, (answer.text, request)
    body = json.loads(answer.content)
    codes = [error["extensions"]["code"] for error in body.get("errors", [])]
    assert "INTERNAL" not in codes, (answer.text, request)
    assert body.keys() & {"data", "errors"}
    return codes[0] if codes else "answered"
