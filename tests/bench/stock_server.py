"""For comparison: the same schema and store behind Strawberry's own ASGI class with its document caches."""

import asyncio
import sys
from pathlib import Path

import strawberry
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types

from schema import conversation, event
from schema.build import MUTATIONS, QUERIES
from schema.context import Context
from schema.scalars import SCALARS
from schema.subscription import Subscription
from server.commands.serve import listen
from storage.sqlite.database import open_file
from storage.store import Store


class Stock(GraphQL[Context, None]):
    """Strawberry's ASGI class with our context."""

    def __init__(self, schema: strawberry.Schema, store: Store) -> None:
        super().__init__(schema, graphql_ide=None)
        self._store = store

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        return Context(self._store)


async def main(folder: Path) -> None:
    """Serves the store in a folder and prints the address."""
    parsed, validated = ParserCache(), ValidationCache()  # shared by all requests, as intended
    schema = strawberry.Schema(
        query=merge_types("Query", QUERIES),
        mutation=merge_types("Mutation", MUTATIONS),
        subscription=Subscription,
        types=[*event.TYPES.values(), *conversation.TYPES],
        config=StrawberryConfig(scalar_map=SCALARS),
        extensions=[lambda: parsed, lambda: validated],
    )
    store = Store(await open_file(folder))
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(Stock(schema, store), log_level="warning", access_log=False, lifespan="off")
    print(f"stock server on http://127.0.0.1:{listener.getsockname()[1]}/graphql", flush=True)
    try:
        await uvicorn.Server(config).serve([listener])
    finally:
        await store.close()


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
