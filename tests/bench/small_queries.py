"""Small queries per second, against Strawberry's own ASGI class with the same schema and store."""

import sys
from functools import partial

from storage.events import UserMessage
from storage.lifecycle import NewSession
from tests.bench.backends import Backend, serving
from tests.bench.load import Body, body, rate
from tests.bench.table import Row, in_turn, report

SPACE = "default"
ID = "small"
QUERY = body(
    "query($id: ID!) { session(id: $id) { id label status head turnCount updatedAt events(first: 10) { nextSeq "
    "events { __typename id seq type timestamp ... on UserMessage { content } } } } }",
    id=ID,
)


async def measure(backend: Backend) -> None:
    """Reports the rows of SQLite."""
    if backend.kind != "sqlite":
        return
    async with backend.opened() as store:
        await store.tree.create(SPACE, NewSession(id=ID))
        await store.sessions.append(SPACE, ID, [UserMessage(content=f"message {seq}") for seq in range(10)])
    command = [sys.executable, "-m", "tests.bench.stock_server", str(backend.folder)]
    async with backend.served() as ours, serving(command) as stock:
        for connections, requests in ((1, 400), (4, 200)):
            asking: list[Body] = [lambda _: QUERY] * connections
            ratio, first, second = await in_turn(
                partial(rate, ours, asking, requests), partial(rate, stock, asking, requests)
            )
            detail = f"{first:,.0f} requests/s against {second:,.0f}"
            what = f"a session with ten events, {connections} connection{'s' if connections > 1 else ''}, against stock"
            report(Row(f"[sqlite] {what}", ratio, 2, True, detail))
