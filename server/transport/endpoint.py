"""GraphQL at one address: requests, event streams and sockets."""

from starlette.types import Receive, Scope, Send

from schema.build import Schema
from server.auth.access import Access
from server.auth.rate import SocketCounts, TokenBuckets
from server.settings import Settings
from server.telemetry.observer import Observer
from server.transport.http import Http
from server.transport.operations import Operations
from server.transport.sockets import Socket
from server.trusted_documents import TrustedDocuments
from storage.store import Store


class Endpoint:
    """The ASGI application at /graphql. It serves from the time that `open` gives it a store."""

    store: Store
    operations: Operations

    def __init__(self, schema: Schema, documents: TrustedDocuments, observer: Observer, settings: Settings) -> None:
        self._schema = schema
        self._documents = documents
        self._observer = observer
        self._settings = settings

    def open(self, store: Store, access: Access) -> None:
        """Serves all transports from this store, to callers that `access` lets in."""
        settings = self._settings
        buckets = None if settings.rate is None else TokenBuckets(settings.rate, settings.rate_burst)
        self.store = store
        self.operations = Operations(self._schema, store, settings.deadline, self._documents, self._observer, buckets)
        self._access = access
        self._http = Http(self.operations, access)
        self._counts = None if settings.sockets_per_key is None else SocketCounts(settings.sockets_per_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request or a socket."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await Socket(self.operations, self._access, self._counts, scope, receive, send).serve()
