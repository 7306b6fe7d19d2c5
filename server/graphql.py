"""GraphQL over HTTP and WebSocket at one address."""

import asyncio
import contextlib
from collections.abc import Mapping
from json import JSONDecodeError
from typing import Any, cast

from cross_web import HTTPException
from graphql import GraphQLError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.exceptions import ConnectionRejectionError
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler
from strawberry.subscriptions.protocols.graphql_transport_ws.types import ConnectionInitMessage, Message
from strawberry.types.unset import UNSET, UnsetType

from schema.build import Schema
from schema.context import Context
from server import body
from server.access import Access
from server.caller import Caller, bearer
from server.refusal import refusal
from storage import errors
from storage.access_key import AccessRole
from storage.store import Store

MAX_SUBSCRIPTIONS = 100
MAX_REASON = 100
"""Characters of why a socket is closed; the protocol takes 123 bytes."""
FORBIDDEN = 4403
TRY_AGAIN_LATER = 1013


class TextFrames(ASGIWebSocketAdapter):
    """Sends messages as text frames, which browsers' clients insist on."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        try:
            await self.ws.send_text(body.encode(message).decode())
        except WebSocketDisconnect as error:
            raise WebSocketDisconnected from error


class SocketContext(Context):
    """A socket's context. Who calls is known once the connection is initialised, and nothing runs before."""

    def __init__(self, store: Store, socket: WebSocket) -> None:
        super().__init__(store, "", AccessRole.VIEWER)
        self.socket = socket
        self.connection_params: dict[str, object] = {}
        self.caller: Caller | None = None


class Operations(BaseGraphQLTransportWSHandler[Context, None]):
    """Strawberry's handler, but that an operation that can't be run is refused alone.

    Strawberry closes the socket then, which clients take as fatal to all their other operations.
    """

    @staticmethod
    def _get_pre_execution_close_reason(error: GraphQLError) -> str | None:
        return None

    _guarding: asyncio.Task[None] | None = None
    _ended = False

    async def handle_message(self, message: Message) -> None:
        """What comes after the socket was closed for its credential is not heard."""
        if not self._ended:
            await super().handle_message(message)

    async def handle_connection_init(self, message: ConnectionInitMessage) -> None:
        """Lets in whom the credential lets in, for as long as it holds."""
        try:
            await super().handle_connection_init(message)
        except errors.Unavailable as error:
            await self.websocket.close(TRY_AGAIN_LATER, error.message[:MAX_REASON])
        context = self.context
        if self.connection_acknowledged and isinstance(context, SocketContext) and context.caller is not None:
            self._guarding = asyncio.create_task(self._end_with(context.caller))

    async def _end_with(self, caller: Caller) -> None:
        """Closes the socket once its caller's credential no longer holds."""
        assert isinstance(self.view, Endpoint)
        reason = await self.view.access.ended(caller)
        self._ended = True
        for id in list(self.operations):
            await self.cleanup_operation(id)
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            await self.websocket.close(FORBIDDEN, reason[:MAX_REASON])

    async def shutdown(self) -> None:
        """Ends what belongs to the socket."""
        if self._guarding is not None:
            self._guarding.cancel()
        await super().shutdown()

    async def handle_task_exception(self, error: Exception) -> None:
        """A client that has gone is no mistake of the server's."""
        if not isinstance(error, WebSocketDisconnected):
            await super().handle_task_exception(error)

    async def send_message(self, message: Message) -> None:
        if message["type"] == "error":
            for error in message["payload"]:
                # Strawberry's own refusal of one subscription too many is the only one that comes without a code.
                error.setdefault("extensions", {"code": "RATE_LIMITED"})
        await super().send_message(message)


class Endpoint(GraphQL[Context, None]):
    """Strawberry's ASGI view with our context and JSON."""

    websocket_adapter_class = TextFrames
    graphql_transport_ws_handler_class = Operations

    def __init__(self, schema: Schema, store: Store, access: Access) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            max_subscriptions_per_connection=MAX_SUBSCRIPTIONS,
            allowed_origins=("*",),  # `server.origins` has looked at them
        )
        self._store = store
        self.access = access

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        if isinstance(request, WebSocket):
            return SocketContext(self._store, request)
        caller = await self.access.caller(bearer(request.headers), request.headers.get("host"))
        return Context(self._store, caller.space, caller.role)

    async def on_ws_connect(self, context: Context) -> UnsetType | dict[str, object] | None:
        """Finds out who calls. Raises ConnectionRejectionError for whom no credential lets in, or Unavailable."""
        assert isinstance(context, SocketContext)
        headers = context.socket.headers
        try:
            token = bearer(headers, context.connection_params)
            context.caller = caller = await self.access.caller(token, headers.get("host"))
        except (errors.Unauthenticated, errors.Forbidden) as error:
            raise ConnectionRejectionError from error
        context.space, context.role = caller.space, caller.role
        return cast(UnsetType, UNSET)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        try:
            response = await self.run(Request(scope, receive))
        except HTTPException as error:
            refused = {"message": error.reason, "extensions": {"code": errors.BadInput.code}}
            response = JSONResponse({"errors": [refused]}, error.status_code)
        except errors.SapwoodError as error:
            response = refusal(error)
        await response(scope, receive, send)

    def decode_json(self, data: str | bytes) -> Any:
        value = body.decode(data)
        if not isinstance(value, dict):
            raise JSONDecodeError("not a JSON object", "", 0)
        return value

    def encode_json(self, data: Any) -> bytes:
        return body.encode(data)
