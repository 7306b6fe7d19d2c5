"""GraphQL over HTTP and WebSocket at one address."""

from collections.abc import Mapping
from json import JSONDecodeError
from typing import Any

from cross_web import HTTPException
from graphql import GraphQLError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler
from strawberry.subscriptions.protocols.graphql_transport_ws.types import Message

from schema.build import Schema
from schema.context import Context
from server import body
from storage import errors
from storage.store import Store

MAX_SUBSCRIPTIONS = 100


class TextFrames(ASGIWebSocketAdapter):
    """Sends messages as text frames, which browsers' clients insist on."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        try:
            await self.ws.send_text(body.encode(message).decode())
        except WebSocketDisconnect as error:
            raise WebSocketDisconnected from error


class Operations(BaseGraphQLTransportWSHandler[Context, None]):
    """Strawberry's handler, but that an operation that can't be run is refused alone.

    Strawberry closes the socket then, which clients take as fatal to all their other operations.
    """

    @staticmethod
    def _get_pre_execution_close_reason(error: GraphQLError) -> str | None:
        return None

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

    def __init__(self, schema: Schema, store: Store) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL,),
            max_subscriptions_per_connection=MAX_SUBSCRIPTIONS,
        )
        self._store = store

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        return Context(self._store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        try:
            response = await self.run(Request(scope, receive))
        except HTTPException as error:
            refusal = {"message": error.reason, "extensions": {"code": errors.BadInput.code}}
            response = JSONResponse({"errors": [refusal]}, error.status_code)
        await response(scope, receive, send)

    def decode_json(self, data: str | bytes) -> Any:
        value = body.decode(data)
        if not isinstance(value, dict):
            raise JSONDecodeError("not a JSON object", "", 0)
        return value

    def encode_json(self, data: Any) -> bytes:
        return body.encode(data)
