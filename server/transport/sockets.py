"""Operations over a WebSocket in graphql-transport-ws, with the close codes of the reference server, graphql-ws."""

import asyncio
import contextlib
import logging
from collections import Counter
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send
from strawberry.types.graphql import OperationType

from server.auth.access import Access
from server.auth.caller import Caller
from server.auth.rate import RateLimited, SocketCounts
from server.transport import messages
from server.transport.answer import Refused, failure, refusal
from server.transport.connections import connection_of
from server.transport.messages import Close
from server.transport.operations import Operation, Operations
from server.transport.request import Request
from storage import errors

INIT_SECONDS = 3
MAX_SUBSCRIPTIONS = 100
MAX_ONCE = 100
"""Queries and mutations under way at once on one socket."""
MAX_REASON = 123
"""Bytes of a close reason (RFC 6455, section 5.5)."""
TRY_AGAIN_LATER = 1013
FORBIDDEN = 4403
logger = logging.getLogger("sapwood.sockets")


@dataclass(slots=True, eq=False)
class Running:
    """An operation under way on a socket. `counts`: it counts towards the limits of the socket."""

    id: str
    operation: Operation
    task: asyncio.Task[None] | None = None
    counts: bool = True


class Socket:
    """One socket. An operation that fails ends with an `error` message; the others go on."""

    caller: Caller

    def __init__(
        self,
        operations: Operations,
        access: Access,
        counts: SocketCounts | None,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._operations = operations
        self._access = access
        self._counts = counts
        self._counted = False
        self._scope = scope
        self._receive = receive
        self._asgi_send = send
        self._running: dict[str, Running] = {}
        self._under_way: Counter[bool] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._credential_watch: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Serves the socket until either side closes it."""
        await self._receive()
        try:
            await self._accept()
            await self._listen()
        except Close as end:
            await self.close(end.code, end.reason)
        except OSError:
            pass  # the client has gone
        except Exception as error:
            failure(error)
            await self.close(4500, "Internal server error")
        finally:
            self._count_out()
            if self._credential_watch is not None:
                self._credential_watch.cancel()
            await self._end_all()

    async def _watch_credential(self) -> None:
        """Closes the socket, and ends its operations, when the caller's credential expires or is revoked."""
        reason = await self._access.ended(self.caller)
        await self.close(FORBIDDEN, reason)
        await self._end_all()

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket, unless it is closed."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(OSError):
                await self._asgi_send({"type": "websocket.close", "code": code, "reason": _short(reason)})

    async def _accept(self) -> None:
        offered = messages.PROTOCOL in self._scope["subprotocols"]
        with contextlib.suppress(OSError):
            await self._asgi_send(
                {"type": "websocket.accept", "subprotocol": messages.PROTOCOL if offered else None, "headers": []}
            )
        if not offered:
            raise Close(4406, "Subprotocol not acceptable")
        connection_of(self._scope).stall_reason = self._stall_reason

    async def _listen(self) -> None:
        """Handles the client's messages. Returns when the socket is closed, raises Close to close it."""
        acknowledged = False
        try:
            async with asyncio.timeout(INIT_SECONDS) as init_timeout:
                while (text := await self._text()) is not None:
                    match messages.read(text):
                        case messages.Init() if acknowledged:
                            raise Close(4429, "Too many initialisation requests")
                        case messages.Init(payload):
                            init_timeout.reschedule(None)
                            await self._init(payload)
                            acknowledged = True
                        case messages.Ping(payload):
                            await self._send(messages.pong(payload))
                        case messages.Subscribe() if not acknowledged:
                            raise Close(4401, "Unauthorized")
                        case messages.Subscribe(id) if id in self._running:
                            raise Close(4409, f"Subscriber for {id} already exists")
                        case messages.Subscribe(id, request):
                            await self._subscribe(id, request)
                        case messages.Complete(id):
                            self._complete(id)
        except TimeoutError:
            if not init_timeout.expired():
                raise
            raise Close(4408, "Connection initialisation timeout") from None

    async def _text(self) -> str | bytes | None:
        """The next message; None once the socket is closed."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._closed = True
        if self._closed:
            return None
        text: str | bytes = message["text"] if message.get("text") is not None else message["bytes"]
        return text

    async def _init(self, payload: dict[str, object] | None) -> None:
        try:
            self.caller = await self._access.of_socket(self._scope["headers"], payload)
        except errors.Unavailable as error:
            raise Close(TRY_AGAIN_LATER, error.message) from error
        except errors.SapwoodError as error:
            logger.info("%s at connection_init: %s", error.code, error.message)
            raise Close(FORBIDDEN, "Forbidden") from error
        self._count_in()
        await self._send(messages.ACK)
        self._credential_watch = asyncio.create_task(self._watch_credential())

    def _count_in(self) -> None:
        """Counts the socket for its caller's key. Raises Close if the key holds as many as it may."""
        if self._counts is None or self.caller.key_id is None:
            return
        try:
            self._counts.enter(self.caller.key_id)
        except RateLimited as error:
            logger.info("%s at connection_init: %s", error.code, error.message)
            raise Close(4429, error.message) from error
        self._counted = True

    def _count_out(self) -> None:
        if self._counted and self._counts is not None and self.caller.key_id is not None:
            self._counts.leave(self.caller.key_id)

    async def _subscribe(self, id: str, request: Request) -> None:
        try:
            operation = self._operations.identify(request, self.caller)
            self._check_room(operation)
        except Refused as refused:
            await self._send(messages.error(id, refused.answer.body))
            return
        running = Running(id, operation)
        self._running[id] = running
        self._under_way[_is_subscription(operation)] += 1
        running.task = asyncio.create_task(self._run(running))
        self._tasks.add(running.task)
        # Not in `_run`, of which nothing runs if the client ends the operation at once.
        running.task.add_done_callback(lambda task: self._finished(running, task))

    def _finished(self, running: Running, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._make_room(running)

    def _make_room(self, running: Running) -> None:
        if running.counts:
            running.counts = False
            self._under_way[_is_subscription(running.operation)] -= 1

    def _check_room(self, operation: Operation) -> None:
        is_subscription = _is_subscription(operation)
        limit, what = (MAX_SUBSCRIPTIONS, "subscriptions") if is_subscription else (MAX_ONCE, "queries and mutations")
        if self._under_way[is_subscription] >= limit:
            error = RateLimited(f"a socket holds at most {limit} {what}: end one, or open another socket")
            logger.info("%s: %s", error.code, error.message)
            raise Refused(refusal(error))

    def _complete(self, id: str) -> None:
        """Ends an operation at the client's request. Its id is free at once."""
        running = self._running.pop(id, None)
        if running is not None:
            self._stop(running)

    def _stop(self, running: Running) -> None:
        # A mutation that has started finishes, even if its answer has no recipient, and counts until then.
        if running.operation.kind is not OperationType.MUTATION and running.task is not None:
            running.task.cancel()
            self._make_room(running)

    async def _run(self, running: Running) -> None:
        """Sends an operation's answers."""
        try:
            answers = self._operations.answers(running.operation)
            async with contextlib.aclosing(answers):
                async for answer in answers:
                    if answer.refused:
                        await self._end(running, messages.error(running.id, answer.body))
                        return
                    await self._send_result(running, messages.next_result(running.id, answer.body))
            await self._end(running, messages.complete(running.id))
        except OSError:
            return  # the client has gone
        except Exception as error:
            await self._end(running, messages.error(running.id, failure(error).body))
        finally:
            self._forget(running)

    async def _send_result(self, running: Running, text: str) -> None:
        if self._running.get(running.id) is running:
            await self._send(text)

    async def _end(self, running: Running, text: str) -> None:
        """Sends an operation's last message. Its id is free before the client can know."""
        if self._forget(running):
            await self._send(text)

    def _forget(self, running: Running) -> bool:
        """Frees the operation's id. False if the client has ended the operation."""
        wanted = self._running.get(running.id) is running
        if wanted:
            del self._running[running.id]
        return wanted

    async def _send(self, text: str) -> None:
        if not self._closed:
            await self._asgi_send({"type": "websocket.send", "text": text})

    def _stall_reason(self) -> tuple[int, str]:
        """The close code and reason for a client that stopped reading: where to resume each of its subscriptions."""
        positions = [
            f"{running.id}={running.operation.context.resume_seq}"
            for running in self._running.values()
            if running.operation.context.resume_seq is not None
        ]
        resume = f"; resume from {', '.join(positions)}" if positions else ""
        return TRY_AGAIN_LATER, _short(f"nothing was read{resume}")

    async def _end_all(self) -> None:
        """Ends all operations, and waits for mutations to finish."""
        running = list(self._running.values())
        self._running.clear()
        for each in running:
            self._stop(each)
        if self._tasks:
            await asyncio.wait(self._tasks)


def _is_subscription(operation: Operation) -> bool:
    return operation.kind is OperationType.SUBSCRIPTION


def _short(reason: str) -> str:
    return reason.encode()[:MAX_REASON].decode(errors="ignore")
