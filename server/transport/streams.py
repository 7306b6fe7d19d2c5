"""Operations as server-sent events: the distinct connections mode of graphql-sse.

https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
"""

import asyncio
import contextlib
from typing import Any

from starlette.types import Receive, Scope, Send
from strawberry.types.graphql import OperationType

from server.auth.access import Access
from server.transport import body
from server.transport.answer import Answer, failure
from server.transport.connections import connection_of
from server.transport.negotiation import EVENTS
from server.transport.operations import Operation, Operations

PING_SECONDS = 12
PING = b":\n\n"
COMPLETE = b"event: complete\ndata:\n\n"
HEADERS = [
    (b"content-type", f"{EVENTS}; charset=utf-8".encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # keeps nginx from buffering events
]


class EventStreams:
    """Serves event streams. At shutdown they end without `complete`, so that clients reconnect."""

    def __init__(self, operations: Operations, access: Access) -> None:
        self._operations = operations
        self._access = access

    async def serve(self, scope: Scope, receive: Receive, send: Send, operation: Operation) -> None:
        """Sends the operation's answers.

        Ends when the operation completes or the client disconnects; a subscription also when the caller's credential
        expires or is revoked, and at shutdown.
        """
        shutting_down: asyncio.Event = connection_of(scope).shutting_down
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await _send(send, PING)
        sending = asyncio.create_task(self._send_answers(send, operation))
        ends: list[asyncio.Task[Any]] = [asyncio.create_task(_disconnected(receive))]
        if operation.kind is OperationType.SUBSCRIPTION:
            ends.append(asyncio.create_task(shutting_down.wait()))
            ends.append(asyncio.create_task(self._access.ended(operation.caller)))
        try:
            # Both tasks may send: each message is written whole.
            while not (await asyncio.wait([sending, *ends], timeout=PING_SECONDS, return_when="FIRST_COMPLETED"))[0]:
                await _send(send, PING)
        finally:
            if operation.kind is OperationType.MUTATION:
                await asyncio.wait([sending])
            for task in (sending, *ends):
                task.cancel()
            await asyncio.wait([sending, *ends])
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b""})

    async def _send_answers(self, send: Send, operation: Operation) -> None:
        answers = self._operations.answers(operation)
        async with contextlib.aclosing(answers):
            try:
                async for answer in answers:
                    await _send(send, _event(answer))
            except Exception as error:
                await _send(send, _event(failure(error)))
        await _send(send, COMPLETE)


async def _send(send: Send, content: bytes) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": True})


def _event(answer: Answer) -> bytes:
    return b"event: next\ndata: %s\n\n" % body.encode(answer.body)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
