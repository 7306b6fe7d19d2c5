"""GraphQL over HTTP (https://graphql.github.io/graphql-over-http/draft/): POST for all operations, GET for queries.

Every refusal is JSON with a code.
"""

import asyncio
import contextlib
import json
import logging
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send
from strawberry.types.graphql import OperationType

from server.auth.access import Access
from server.transport import body
from server.transport.answer import Answer, Refused, failure, refusal
from server.transport.negotiation import EVENTS, JSON, RESPONSE, media_type
from server.transport.operations import Operation, Operations
from server.transport.refusal import CHALLENGE, STATUSES
from server.transport.request import Request
from server.transport.streams import EventStreams
from storage import errors

MAX_BODY = 12 * 1024 * 1024
UNWATCHED_SECONDS = 0.05
"""Queries that take less than this run without a task that watches for a disconnect."""
LINGER_SECONDS = 1
"""How long the rest of a refused body is read after the answer."""
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
logger = logging.getLogger("sapwood.http")


class Problem(Exception):
    """The request can't be read as GraphQL: its HTTP status, error and headers."""

    def __init__(self, status: int, error: errors.SapwoodError, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers


class ClientGone(Exception):
    """The client has disconnected before it was answered."""


class CancelOnDisconnect:
    """A context that is cancelled, and raises ClientGone, when the client disconnects.

    The request's body must have been read. Watching starts after UNWATCHED_SECONDS, which few queries outlast.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watcher: asyncio.Task[None] | None = None
        self._gone = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(UNWATCHED_SECONDS, self._start_watching)
        return self

    def _start_watching(self) -> None:
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._gone:
            self._task.uncancel()
            if kind is asyncio.CancelledError:
                raise ClientGone from error


class Http:
    """Answers requests, those for event streams too."""

    def __init__(self, operations: Operations, access: Access) -> None:
        self._operations = operations
        self._access = access
        self._streams = EventStreams(operations, access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        media = media_type(headers.get(b"accept", b"").decode("latin-1"))
        extra: Headers = ()
        try:
            try:
                operation = await self._operation(scope, headers, receive, media)
                if media == EVENTS:
                    await self._streams.serve(scope, receive, send, operation)
                    return
                answer = await self._answer(operation, receive)
                status = _status(answer, media) if answer.refused else 200
            except Refused as refused:
                answer = refused.answer
                status = _status(answer, media)
                extra = _retry_after(answer)
            except errors.SapwoodError as error:
                answer = refusal(error)
                status = STATUSES.get(error.code, 400)
                extra = _challenge() if isinstance(error, errors.Unauthenticated) else ()
            except Problem as problem:
                logger.info("%s, status %d: %s", problem.error.code, problem.status, problem.error.message)
                answer, status, extra = refusal(problem.error), problem.status, problem.headers
            content = body.encode(answer.body)
        except ClientGone:
            return
        except asyncio.CancelledError:  # by uvicorn, at the end of the grace period
            shutdown = errors.Unavailable("the server is shutting down; try again")
            content, status = body.encode(refusal(shutdown).body), STATUSES[shutdown.code]
        except Exception as error:
            content, status = body.encode(failure(error).body), 500
        await _respond(send, status, RESPONSE if media == RESPONSE else JSON, content, extra)
        if status == 413:
            await _linger(receive)
            await send({"type": "http.response.body", "body": b""})

    async def _operation(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, media: str | None
    ) -> Operation:
        """The operation that the request names. Raises Problem, Refused, or an error of access control."""
        method = scope["method"]
        if method not in ("POST", "GET"):
            other = errors.BadInput(f"{method} is not supported: use POST or GET")
            raise Problem(405, other, (b"allow", b"GET, POST"))
        if media is None:
            raise Problem(406, errors.BadInput(f"Accept: can be {JSON}, {RESPONSE} or {EVENTS}"))
        caller = await self._access.of_request(scope["headers"])
        if method == "POST":
            _check_content(headers)
            given = _decoded(await _read(headers, receive), "the body")
        else:
            given = _parameters(scope["query_string"])
        try:
            request = Request.of(given)
        except errors.BadInput as error:
            raise Problem(400, error) from error
        operation = self._operations.identify(request, caller)
        if method == "GET" and operation.kind is OperationType.MUTATION:
            raise Problem(405, errors.BadInput("a mutation can't be sent by GET: use POST"), (b"allow", b"POST"))
        if operation.kind is OperationType.SUBSCRIPTION and media != EVENTS:
            ways = f"use a WebSocket (graphql-transport-ws), or a request with Accept: {EVENTS}"
            raise Problem(400, errors.BadInput(f"subscriptions are not answered here: {ways}"))
        return operation

    async def _answer(self, operation: Operation, receive: Receive) -> Answer:
        if operation.kind is OperationType.MUTATION:
            return await self._operations.answer(operation)
        with CancelOnDisconnect(receive):
            return await self._operations.answer(operation)


def _status(answer: Answer, media: str | None) -> int:
    # A faulty document is 200 for clients that want plain JSON, as the specification asks.
    return STATUSES.get(answer.code, 200 if media == JSON else 400)


def _challenge() -> Headers:
    name, value = CHALLENGE
    return ((name.encode(), value.encode()),)


def _retry_after(answer: Answer) -> Headers:
    """The Retry-After header of a refusal that waiting can help."""
    seconds = answer.body["errors"][0]["extensions"].get("retryAfter")
    return () if seconds is None else ((b"retry-after", b"%d" % seconds),)


def _check_content(headers: dict[bytes, bytes]) -> None:
    """Raises Problem for a body that is not JSON in UTF-8. This also stops forms of other sites."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json":
        name, *parameters = (piece.strip() for piece in kind.decode("latin-1").lower().split(";"))
        sets = [value.strip('" ') for key, _, value in (part.partition("=") for part in parameters) if key == "charset"]
        if name != "application/json" or any(value not in ("utf-8", "utf8") for value in sets):
            raise Problem(415, errors.BadInput("Content-Type: must be application/json, in UTF-8"))
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Problem(415, errors.BadInput("Content-Encoding: must be identity"))


async def _read(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """The body. Raises Problem once it is too large, and leaves the rest unread; ClientGone on a disconnect."""
    _check_size(int(headers.get(b"content-length", b"0")))
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if not (parts or more):
            return part
        size += len(part)
        _check_size(size)
        parts.append(part)
        if not more:
            return b"".join(parts)


def _check_size(size: int) -> None:
    if size > MAX_BODY:
        error = errors.PayloadTooLarge(f"the body has more than {MAX_BODY} bytes")
        raise Problem(413, error, (b"connection", b"close"))


def _decoded(text: str | bytes, name: str) -> Any:
    try:
        return body.decode(text)
    except json.JSONDecodeError as error:
        raise Problem(400, errors.BadInput(f"{name}: {error.msg}")) from error


def _parameters(query_string: bytes) -> dict[str, Any]:
    """The parameters of a GET."""
    try:
        given: dict[str, Any] = dict(parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict"))
    except ValueError as error:
        raise Problem(400, errors.BadInput("the address: its parameters must be UTF-8")) from error
    for name in ("variables", "extensions"):
        if name in given:
            given[name] = _decoded(given[name], name)
    return given


async def _respond(send: Send, status: int, media: str, content: bytes, extra: Headers) -> None:
    headers = [
        (b"content-type", b"%s; charset=utf-8" % media.encode()),
        (b"content-length", b"%d" % len(content)),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": status == 413})


async def _linger(receive: Receive) -> None:
    """Reads on after a refused body for a moment: closing at once could reset the connection and lose the answer."""
    left = 4 * MAX_BODY
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while left > 0 and (message := await receive()).get("more_body", False):
                left -= len(message.get("body", b""))
