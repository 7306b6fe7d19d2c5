"""Access control: who a credential stands for, and when it no longer holds.

A revoked key is refused, and its sockets are told, within five seconds: what is known of a key stands for two, and so
long are the pauses in which the keys of open sockets are looked up again.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

from server.auth.caller import Caller, bearer, telling
from server.auth.loopback import names_this_machine, reaches_this_machine_alone
from server.auth.tokens import tokens_of
from server.settings import Settings
from storage import access_key, access_keys, errors
from storage.access_key import AccessKey, AccessRole
from storage.database import Database
from storage.events import Instant
from storage.log.append import now

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

OPEN_SPACE = "default"
FRESH_SECONDS = 2.0
REMEMBERED = 10_000
USE_MS = 60_000
"""A key's last use is written at most so often."""
LONGEST_WAIT_SECONDS = 60.0
"""For an expiry: after that the clock, which may have been set, is looked at again."""
REVOKED = "has been revoked"
logger = logging.getLogger("sapwood.access")


class TtlCache(Generic[K, V]):
    """Answers that stand for two seconds from when they were asked for. Whoever asks meanwhile waits for the same."""

    def __init__(self, look_up: Callable[[K], Awaitable[V]]) -> None:
        self._look_up = look_up
        self._found: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, key: K) -> V:
        """The answer, not older than two seconds. Raises what looking it up raises."""
        loop = asyncio.get_running_loop()
        found = self._found.get(key)
        if found is None or loop.time() - found[0] > FRESH_SECONDS or _has_failed(found[1]):
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            found = self._found[key] = (loop.time(), asyncio.create_task(self._begin(key)))
        task = found[1]
        return task.result() if task.done() else await asyncio.shield(task)

    async def _begin(self, key: K) -> V:
        return await self._look_up(key)


def _has_failed(task: asyncio.Task[V]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


class Access:
    """Decides who is calling. To be `running` while it is used."""

    def __init__(self, database: Database, settings: Settings) -> None:
        """Raises StartupError for settings of JWTs that don't go together."""
        self._database = database
        self._tokens = tokens_of(settings)
        self._host = settings.host
        self._local = reaches_this_machine_alone(settings.host)
        self._insecure = settings.insecure
        self._keys: TtlCache[str, AccessKey | None] = TtlCache(self._find)
        self._exist: TtlCache[None, bool] = TtlCache(lambda _: access_keys.exist(database))
        self._watched: dict[Caller, set[asyncio.Event]] = {}
        self._uses: dict[str, Instant] = {}
        self._written: dict[str, Instant] = {}

    async def of_request(self, headers: Headers) -> Caller:
        """The caller of a request or event stream. Raises what `caller` does."""
        told = telling(headers)
        return await self.caller(bearer(told), told.get("host"))

    async def of_socket(self, headers: Headers, payload: Mapping[str, object] | None) -> Caller:
        """The caller of a socket: its handshake's headers, and the payload of its connection_init, which goes first."""
        told = telling(headers)
        return await self.caller(bearer(told, payload), told.get("host"))

    async def caller(self, token: str | None, host: str | None = None) -> Caller:
        """Who a bearer token stands for; without one, the open caller where there is no access control.

        `host` is the Host header. Raises Unauthenticated, Forbidden, or Unavailable when that can't be looked up.
        """
        if token is None:
            return await self._open(host)
        if token.startswith(access_key.PREFIX):
            return await self._by_key(token)
        if self._tokens is None:
            raise errors.Unauthenticated("the bearer token is no API key, and no JWT is accepted here")
        return await self._tokens.caller(token)

    async def _open(self, host: str | None) -> Caller:
        reachable = self._local or self._insecure
        if self._tokens is not None or not reachable or await self._exist.get(None):
            raise errors.Unauthenticated("a credential is needed: send 'Authorization: Bearer' and an API key or a JWT")
        # A page whose own name was made to point at this machine may ask as if it came from here.
        if not self._insecure and host is not None and host != self._host and not names_this_machine(host):
            raise errors.Forbidden(f"Host: {host[:80]!r} is not this machine, which alone has open access")
        return Caller(OPEN_SPACE, AccessRole.ADMIN, open=True)

    async def _by_key(self, token: str) -> Caller:
        parts = access_key.split(token)
        key = None if parts is None else await self._keys.get(parts[0])
        if key is None or parts is None or not key.opened_by(parts[1]):
            raise errors.Unauthenticated("the API key is unknown")
        time = now()
        if not key.holds_at(time):
            raise errors.Unauthenticated(f"the API key {key.id} {'has expired' if key.revoked_at is None else REVOKED}")
        self._uses[key.id] = time
        return Caller(key.space, key.role, key.expires_at, key.id)

    async def _find(self, id: str) -> AccessKey | None:
        return (await access_keys.find(self._database, [id])).get(id)

    async def ended(self, caller: Caller) -> str:
        """Returns, once a caller's credential no longer holds, why: for whoever keeps something open for it."""
        gone = asyncio.Event()
        group = self._watched.setdefault(caller, set())
        group.add(gone)
        try:
            while not gone.is_set():
                left = caller.seconds_left
                if left is not None and left <= 0:
                    return "the credential has expired"
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if left is None else min(left, LONGEST_WAIT_SECONDS)):
                        await gone.wait()
            return "a credential is needed now" if caller.open else f"the API key {REVOKED}"
        finally:
            group.discard(gone)
            if not group:
                del self._watched[caller]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks after open sockets and notes uses of keys meanwhile."""
        looking = asyncio.create_task(self._look_for_ever())
        try:
            yield
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking
            with contextlib.suppress(errors.SapwoodError):
                await self._note_uses(dict(self._uses))

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(FRESH_SECONDS)
            try:
                await self._look()
            except errors.Unavailable:
                # Sockets outlive a database that is away for a while, and nothing goes out over them meanwhile.
                continue
            except Exception:
                logger.exception("open sockets could not be held against their keys")

    async def _look(self) -> None:
        ids = {caller.key_id for caller in self._watched if caller.key_id is not None}
        found = await access_keys.find(self._database, ids) if ids else {}
        closed = any(caller.open for caller in self._watched) and await access_keys.exist(self._database)
        for caller, group in self._watched.items():
            key = found.get(caller.key_id or "")
            revoked = caller.key_id in ids and (key is None or key.revoked_at is not None)
            if revoked or (caller.open and closed):
                for gone in group:
                    gone.set()
        time = now()
        await self._note_uses({id: at for id, at in self._uses.items() if time - self._written.get(id, 0) >= USE_MS})

    async def _note_uses(self, uses: dict[str, Instant]) -> None:
        if uses:
            await access_keys.note_uses(self._database, uses)
            self._written.update(uses)
            for id, at in uses.items():
                if self._uses.get(id) == at:
                    del self._uses[id]
