"""Access control: whom a credential names, and when it stops being valid.

A revoked key is refused, and its sockets are closed, within five seconds: keys are cached for two seconds, and those of
open sockets are looked up every two seconds.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

from server.auth.caller import Caller, bearer, credential_headers
from server.auth.loopback import is_loopback_name, is_loopback_only
from server.auth.tokens import jwt_verifier
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
TTL_SECONDS = 2.0
MAX_CACHED = 10_000
USE_MS = 60_000
"""Shortest time between two writes of a key's last use."""
MAX_WAIT_SECONDS = 60.0
"""Longest wait for an expiry before the clock, which may have been set meanwhile, is read again."""
REVOKED = "has been revoked"
logger = logging.getLogger("sapwood.access")


class TtlCache(Generic[K, V]):
    """Caches look-ups for TTL_SECONDS from their start. Concurrent requests for a key share one look-up."""

    def __init__(self, look_up: Callable[[K], Awaitable[V]]) -> None:
        self._look_up = look_up
        self._entries: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, key: K) -> V:
        """The value, at most TTL_SECONDS old. Raises what the look-up raises; errors are not cached."""
        loop = asyncio.get_running_loop()
        entry = self._entries.get(key)
        if entry is None or loop.time() - entry[0] > TTL_SECONDS or _has_failed(entry[1]):
            if len(self._entries) >= MAX_CACHED:
                self._entries.clear()
            entry = self._entries[key] = (loop.time(), asyncio.create_task(self._start(key)))
        task = entry[1]
        return task.result() if task.done() else await asyncio.shield(task)

    async def _start(self, key: K) -> V:
        return await self._look_up(key)


def _has_failed(task: asyncio.Task[V]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


class Access:
    """Decides who is calling. Must be `running` while it is used."""

    def __init__(self, database: Database, settings: Settings) -> None:
        """Raises StartupError for JWT settings that don't go together."""
        self._database = database
        self._jwts = jwt_verifier(settings)
        self._host = settings.host
        self._local = is_loopback_only(settings.host)
        self._insecure = settings.insecure
        self._keys: TtlCache[str, AccessKey | None] = TtlCache(self._find)
        self._exist: TtlCache[None, bool] = TtlCache(lambda _: access_keys.exist(database))
        self._waiting: dict[Caller, set[asyncio.Event]] = {}
        self._uses: dict[str, Instant] = {}
        self._written: dict[str, Instant] = {}

    async def of_request(self, headers: Headers) -> Caller:
        """The caller of a request or event stream. Raises what `caller` raises."""
        given = credential_headers(headers)
        return await self.caller(bearer(given), given.get("host"))

    async def of_socket(self, headers: Headers, payload: Mapping[str, object] | None) -> Caller:
        """The caller of a socket. A credential in connection_init's payload overrides one in the handshake's headers.

        Raises what `caller` raises.
        """
        given = credential_headers(headers)
        return await self.caller(bearer(given, payload), given.get("host"))

    async def caller(self, token: str | None, host: str | None = None) -> Caller:
        """The caller that a bearer token names; without one, the open caller if there is no access control.

        `host` is the Host header. Raises Unauthenticated, Forbidden, or Unavailable when a look-up fails.
        """
        if token is None:
            return await self._open(host)
        if token.startswith(access_key.PREFIX):
            return await self._by_key(token)
        if self._jwts is None:
            raise errors.Unauthenticated("the bearer token is not an API key, and JWTs are not accepted here")
        return await self._jwts.caller(token)

    async def _open(self, host: str | None) -> Caller:
        reachable = self._local or self._insecure
        if self._jwts is not None or not reachable or await self._exist.get(None):
            raise errors.Unauthenticated(
                "a credential is needed: send 'Authorization: Bearer' with an API key or a JWT"
            )
        # A page whose own name was made to resolve to this machine would look like a local client (DNS rebinding).
        if not self._insecure and host is not None and host != self._host and not is_loopback_name(host):
            raise errors.Forbidden(f"Host: {host[:80]!r} does not name this machine, and only it has open access")
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
        """Waits until a caller's credential expires or is revoked, and returns the reason."""
        revoked = asyncio.Event()
        group = self._waiting.setdefault(caller, set())
        group.add(revoked)
        try:
            while not revoked.is_set():
                left = caller.seconds_left
                if left is not None and left <= 0:
                    return "the credential has expired"
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if left is None else min(left, MAX_WAIT_SECONDS)):
                        await revoked.wait()
            return "a credential is needed now" if caller.open else f"the API key {REVOKED}"
        finally:
            group.discard(revoked)
            if not group:
                del self._waiting[caller]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends open sockets of revoked keys, and records the last use of keys, for the time of this context."""
        polling = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await polling
            with contextlib.suppress(errors.SapwoodError):
                await self._record_uses(dict(self._uses))

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(TTL_SECONDS)
            try:
                await self._check_open()
            except errors.Unavailable:
                # Sockets stay open while the database is away; nothing is sent over them meanwhile.
                continue
            except Exception:
                logger.exception("the keys of open sockets could not be checked")

    async def _check_open(self) -> None:
        ids = {caller.key_id for caller in self._waiting if caller.key_id is not None}
        found = await access_keys.find(self._database, ids) if ids else {}
        closed = any(caller.open for caller in self._waiting) and await access_keys.exist(self._database)
        for caller, group in self._waiting.items():
            key = found.get(caller.key_id or "")
            gone = caller.key_id in ids and (key is None or key.revoked_at is not None)
            if gone or (caller.open and closed):
                for revoked in group:
                    revoked.set()
        time = now()
        await self._record_uses({id: at for id, at in self._uses.items() if time - self._written.get(id, 0) >= USE_MS})

    async def _record_uses(self, uses: dict[str, Instant]) -> None:
        if uses:
            await access_keys.note_uses(self._database, uses)
            self._written.update(uses)
            for id, at in uses.items():
                if self._uses.get(id) == at:
                    del self._uses[id]
