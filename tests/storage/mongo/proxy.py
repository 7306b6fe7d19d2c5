"""A proxy before the MongoDB server that cuts connections where a test asks for it."""

import asyncio
import contextlib
from urllib.parse import urlsplit

COMMIT = b"commitTransaction"


class Proxy:
    """Forwards everything. `cuts` are for the next commits: cut the connection "before" or "after" sending one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = parts
        self._target = (parts.hostname or "", parts.port or 0)
        self.cuts: list[str] = []
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._server.close()
        await asyncio.sleep(0)
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def url(self) -> str:
        """The URL of the database, through this proxy."""
        port = self._server.sockets[0].getsockname()[1]
        return self._url._replace(netloc=f"127.0.0.1:{port}", query="directConnection=true").geturl()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server.is_serving():
            self._serving.add(asyncio.create_task(self._serve(reader, writer)))
        else:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back = None
        try:
            answers, requests = await asyncio.open_connection(*self._target)
            back = asyncio.create_task(self._pass(answers, writer))
            while True:
                header = await reader.readexactly(4)
                message = header + await reader.readexactly(int.from_bytes(header, "little") - 4)
                cut = self.cuts.pop(0) if COMMIT in message and self.cuts else None
                if cut == "before":
                    return
                if cut == "after":
                    back.cancel()
                    await asyncio.wait([back])
                requests.write(message)
                await requests.drain()
                if cut == "after":
                    await answers.read(1)
                    return
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            if back is not None:
                back.cancel()
                requests.transport.abort()
            writer.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.transport.abort()
