"""GraphQL at one address: requests, event streams and sockets."""

from starlette.types import Receive, Scope, Send

from schema.build import Schema
from server.access import Access
from server.http import Http
from server.operations import Operations
from server.settings import Settings
from server.sockets import Sockets
from server.streams import EventStreams
from storage.store import Store


class Endpoint:
    """All transports over one set of operations."""

    def __init__(self, schema: Schema, store: Store, access: Access, settings: Settings) -> None:
        self.operations = Operations(schema, store, settings.deadline)
        self.http = Http(self.operations, access, EventStreams(self.operations, access))
        self.sockets = Sockets(self.operations, access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.http if scope["type"] == "http" else self.sockets)(scope, receive, send)
