"""GraphQL at one address: requests, event streams and sockets."""

from starlette.types import Receive, Scope, Send

from schema.build import Schema
from server.auth.access import Access
from server.auth.rate import SocketCounts, TokenBuckets
from server.settings import Settings
from server.telemetry.observer import Observer
from server.transport.http import Http
from server.transport.operations import Operations
from server.transport.sockets import Sockets
from server.transport.streams import EventStreams
from server.trusted_documents import TrustedDocuments
from storage.store import Store


class Endpoint:
    """All transports over one set of operations."""

    def __init__(
        self,
        schema: Schema,
        store: Store,
        access: Access,
        settings: Settings,
        documents: TrustedDocuments,
        observer: Observer,
    ) -> None:
        buckets = None if settings.rate is None else TokenBuckets(settings.rate, settings.rate_burst)
        self.operations = Operations(schema, store, settings.deadline, documents, observer, buckets)
        self.http = Http(self.operations, access, EventStreams(self.operations, access))
        counts = None if settings.sockets_per_key is None else SocketCounts(settings.sockets_per_key)
        self.sockets = Sockets(self.operations, access, counts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.http if scope["type"] == "http" else self.sockets)(scope, receive, send)
