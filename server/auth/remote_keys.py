"""The public keys of an identity provider, fetched from its JWKS address (RFC 7517)."""

import asyncio
import logging

from jwt import PyJWK, PyJWKClient, PyJWTError

from storage import errors

FRESH_SECONDS = 300.0
PAUSE_SECONDS = 10.0
"""Shortest time between two fetches, however many tokens name unknown keys."""
FETCH_SECONDS = 5.0
logger = logging.getLogger("sapwood.access")


class RemoteKeys:
    """Keys by id (`kid`). Known keys stay in use while the address can't be reached."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = PyJWKClient(url, cache_jwk_set=False, timeout=FETCH_SECONDS)
        self._keys: dict[str, PyJWK] = {}
        self._asked: float | None = None
        self._failed = False
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, id: str) -> PyJWK:
        """The key of this id. Raises Unauthenticated if there is none, Unavailable while the keys can't be fetched."""
        found = self._keys.get(id)
        fresh = PAUSE_SECONDS if found is None else FRESH_SECONDS
        due = self._asked is None or asyncio.get_running_loop().time() - self._asked > fresh
        if due or (found is None and self._fetching is not None):
            await self._fetch_once()
            found = self._keys.get(id)
        if found is not None:
            return found
        if self._failed:
            raise errors.Unavailable(f"the JWT issuer's keys can't be fetched from {self.url}; try again")
        raise errors.Unauthenticated(f"the JWT is signed with a key (kid {id[:80]!r}) that its issuer does not publish")

    async def _fetch_once(self) -> None:
        """Fetches the keys, or waits for the fetch under way."""
        if self._fetching is None:
            self._asked = asyncio.get_running_loop().time()
            self._fetching = asyncio.create_task(self._fetch())
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        try:
            found = await asyncio.to_thread(self._client.get_signing_keys)
        except (PyJWTError, ValueError) as error:
            self._failed = True
            logger.warning("the JWKS at %s can't be used: %s", self.url, error)
        else:
            self._failed = False
            self._keys = {key.key_id: key for key in found if key.key_id is not None}
        finally:
            self._fetching = None
