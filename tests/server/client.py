"""Requests over HTTP, and subscriptions by hand in graphql-transport-ws."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

IN_TIME = 300.0
"""Seconds to wait for anything before a test fails: more than a busy machine ever needs."""
PROTOCOL = "graphql-transport-ws"


class Refused(Exception):
    """An operation was answered with errors."""

    def __init__(self, errors: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(json.dumps(errors)[:2_000])
        self.errors = errors

    @property
    def code(self) -> str:
        """The first error's code."""
        code: str = self.errors[0]["extensions"]["code"]
        return code

    @property
    def message(self) -> str:
        """The first error's message."""
        message: str = self.errors[0]["message"]
        return message


def authorization(token: str | None) -> dict[str, str]:
    """The header that carries a credential, if there is one."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


class Client:
    """One HTTP client of one server, which may change its address when it is started again."""

    def __init__(self, address: Callable[[], str], token: str | None = None) -> None:
        self._address = address
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(IN_TIME), verify=False, limits=httpx.Limits(), headers=authorization(token)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def post(self, content: bytes | str) -> httpx.Response:
        """The answer to a request with this body."""
        headers = {"content-type": "application/json"}
        return await self._http.post(self._address(), content=content, headers=headers)

    async def answer(self, query: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The whole answer, errors included."""
        response = await self.post(json.dumps({"query": query, "variables": variables}))
        found: dict[str, Any] = json.loads(response.content)
        return found

    async def run(self, query: str, **variables: Any) -> Any:
        """The answer's data. Raises Refused if there are errors."""
        answer = await self.answer(query, variables)
        if "errors" in answer:
            raise Refused(answer["errors"])
        return answer["data"]

    async def refusal(self, query: str, **variables: Any) -> Refused:
        """The refusal of an operation that must be refused."""
        try:
            data = await self.run(query, **variables)
        except Refused as refused:
            return refused
        raise AssertionError(f"not refused: {data}")


class Ended(Exception):
    """The socket was closed while an operation went on."""

    def __init__(self, code: int) -> None:
        super().__init__(f"closed with {code}")
        self.code = code


class Stream:
    """One operation on a socket: its results, until it completes."""

    def __init__(self, socket: "Socket", id: str) -> None:
        self._socket = socket
        self.id = id
        self.messages: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()

    async def message(self) -> Mapping[str, Any]:
        """The next message for this operation. Raises Ended when the socket is closed instead."""
        async with asyncio.timeout(IN_TIME):
            message = await self.messages.get()
        if message["type"] == "closed":
            raise Ended(message["code"])
        return message

    async def next(self) -> Any:
        """The next result's data. Raises Refused for errors, StopAsyncIteration when the operation completes."""
        message = await self.message()
        match message["type"]:
            case "complete":
                raise StopAsyncIteration
            case "error":
                raise Refused(message["payload"])
        if "errors" in message["payload"]:
            raise Refused(message["payload"]["errors"])
        return message["payload"]["data"]

    async def take(self, count: int) -> list[Any]:
        """The next `count` results."""
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Any]:
        """The results until the operation completes."""
        found = []
        with contextlib.suppress(StopAsyncIteration):
            while True:
                found.append(await self.next())
        return found

    async def refusal(self) -> Refused:
        """The refusal that must arrive instead of a result."""
        message = await self.message()
        assert message["type"] == "error", message
        return Refused(message["payload"])

    async def stop(self) -> None:
        """Stops the operation."""
        await self._socket.send({"id": self.id, "type": "complete"})


class Socket:
    """One WebSocket. `other` collects messages that belong to no operation."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.other: list[Any] = []
        self._streams: dict[str, Stream] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, url: str, token: str | None = None) -> AsyncIterator[Self]:
        """A socket that the server has acknowledged."""
        connection = await begin(url, token)
        socket = cls(connection)
        try:
            yield socket
        finally:
            await connection.close()
            await socket._reading

    async def _read(self) -> None:
        try:
            async for frame in self.connection:
                assert isinstance(frame, str), "browsers' clients take text frames alone"
                message = json.loads(frame)
                stream = self._streams.get(message.get("id"))
                if stream is None:
                    self.other.append(message)
                else:
                    stream.messages.put_nowait(message)
        except ConnectionClosed:
            pass
        finally:
            for stream in self._streams.values():
                stream.messages.put_nowait({"type": "closed", "code": self.connection.close_code})

    async def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message."""
        await self.connection.send(json.dumps(message))

    async def subscribe(self, query: str, **variables: Any) -> Stream:
        """Starts an operation."""
        stream = Stream(self, uuid.uuid4().hex)
        self._streams[stream.id] = stream
        await self.send(subscribe_message(stream.id, query, variables))
        return stream


async def begin(url: str, token: str | None = None, **options: Any) -> ClientConnection:
    """A connection that the server has acknowledged. The credential is sent in connection_init."""
    options = {"compression": None, "max_size": None, "ping_interval": None, "open_timeout": IN_TIME, **options}
    connection = await connect(url, subprotocols=[PROTOCOL], proxy=None, **options)  # type: ignore[list-item]
    assert connection.subprotocol == PROTOCOL
    await connection.send(json.dumps({"type": "connection_init", "payload": authorization(token)}))
    async with asyncio.timeout(IN_TIME):
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}
    return connection


def subscribe_message(id: str, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The message that starts an operation."""
    return {"id": id, "type": "subscribe", "payload": {"query": query, "variables": dict(variables)}}
