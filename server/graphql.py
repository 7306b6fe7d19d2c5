"""GraphQL at one address: requests, event streams and sockets."""

from starlette.types import Receive, Scope, Send

from schema.build import Schema
from server.access import Access
from server.documents import TrustedDocuments
from server.http import Http
from server.observing import Observer
from server.operations import Operations
from server.rate import SocketCounts, TokenBuckets
from server.settings import Settings
from server.sockets import Sockets
from server.streams import EventStreams
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
