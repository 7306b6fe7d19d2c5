"""A GraphQL client over persistent connections, cheap enough not to distort what is measured."""

import asyncio
import time
from collections.abc import Callable

import orjson

Body = Callable[[int], bytes]


def body(query: str, **variables: object) -> bytes:
    """The JSON body of a request."""
    return orjson.dumps({"query": query, "variables": variables})


class Connection:
    """One HTTP/1.1 connection to the endpoint, opened by the first request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, content: bytes) -> bytes:
        """Sends a request and returns the response's body. Raises RuntimeError if the response contains errors."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=64 * 1024 * 1024)
        reader, writer = self._streams
        writer.write(
            b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(content)
            + content
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        if b'"errors"' in answer[-4000:] or not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer[:500].decode())
        return answer

    def close(self) -> None:
        """Closes the connection."""
        if self._streams is not None:
            self._streams[1].close()


async def rate(port: int, bodies: list[Body], requests: int) -> float:
    """Requests per second of one client per body, each of which sends `requests` requests in sequence."""

    async def client(make: Body) -> None:
        connection = Connection(port)
        for number in range(requests):
            await connection.post(make(number))
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*map(client, bodies))
    return len(bodies) * requests / (time.perf_counter() - began)
