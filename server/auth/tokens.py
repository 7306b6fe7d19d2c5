"""JWTs (RFC 7519) as credentials: two of their claims name the space and the role."""

from typing import Any
from urllib.parse import urlsplit

import jwt

from server.auth.caller import Caller
from server.auth.remote_keys import RemoteKeys
from server.settings import Settings
from storage import errors, text
from storage.access_key import AccessRole

WITH_SECRET = ["HS256", "HS384", "HS512"]
WITH_KEYS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
MIN_SECRET_BYTES = 32
LAST_SECOND = 253_402_300_799
"""Last second of the year 9999, the latest expiry: later ones would lose precision as floats."""


class JwtVerifier:
    """Verifies the JWTs of one issuer for one audience: their signature, issuer, audience and times."""

    def __init__(self, settings: Settings) -> None:
        """Raises StartupError for settings that don't go together."""
        self._secret = settings.jwt_secret
        self._keys = None if settings.jwt_jwks_url is None else RemoteKeys(_checked_url(settings.jwt_jwks_url))
        self._issuer = settings.jwt_issuer
        self._audience = settings.jwt_audience
        self._space_claim = settings.jwt_space_claim
        self._role_claim = settings.jwt_role_claim
        if self._secret is not None and self._keys is not None:
            raise errors.StartupError("SAPWOOD_JWT_SECRET and SAPWOOD_JWT_JWKS_URL are both set: set one of them")
        if self._secret is not None and len(self._secret.encode()) < MIN_SECRET_BYTES:
            raise errors.StartupError(
                f"SAPWOOD_JWT_SECRET has {len(self._secret.encode())} bytes: make it {MIN_SECRET_BYTES} or more"
            )
        if not self._issuer or not self._audience:
            raise errors.StartupError(
                "SAPWOOD_JWT_ISSUER and SAPWOOD_JWT_AUDIENCE must be set with a JWT secret or a JWKS address: without "
                "them, tokens made for other services would be accepted here"
            )

    async def caller(self, token: str) -> Caller:
        """The caller that a token names. Raises Unauthenticated, or Unavailable while its key can't be fetched."""
        try:
            claims = await self._verified(token)
        except jwt.PyJWTError as error:
            raise errors.Unauthenticated(f"the bearer token is not accepted as a JWT: {error}") from error
        return Caller(self._space(claims), self._role(claims), min(int(claims["exp"]), LAST_SECOND) * 1_000)

    async def _verified(self, token: str) -> dict[str, Any]:
        key: Any = self._secret
        if self._keys is not None:
            id = jwt.get_unverified_header(token).get("kid")
            if not isinstance(id, str):
                raise jwt.InvalidTokenError("its header names no key (kid)")
            key = await self._keys.key(id)
        return jwt.decode(
            token,
            key,
            algorithms=WITH_KEYS if self._secret is None else WITH_SECRET,
            issuer=self._issuer,
            audience=self._audience,
            # iat does not decide whether a token is valid, and the issuer's clock may be ahead of ours.
            options={"require": ["exp", "iss", "aud"], "verify_iat": False},
        )

    def _space(self, claims: dict[str, Any]) -> str:
        value = claims.get(self._space_claim)
        try:
            return text.space_name(value if isinstance(value, str) else "")
        except errors.BadInput as error:
            raise errors.Unauthenticated(f"the JWT's claim {self._space_claim!r} names no space") from error

    def _role(self, claims: dict[str, Any]) -> AccessRole:
        value = claims.get(self._role_claim)
        try:
            return AccessRole(value.upper() if isinstance(value, str) else "")
        except ValueError as error:
            roles = ", ".join(role.lower() for role in AccessRole)
            raise errors.Unauthenticated(f"the JWT's claim {self._role_claim!r} is not one of {roles}") from error


def jwt_verifier(settings: Settings) -> JwtVerifier | None:
    """The verifier that the settings ask for, or None. Raises StartupError for settings that don't go together."""
    wanted = (settings.jwt_secret, settings.jwt_jwks_url, settings.jwt_issuer, settings.jwt_audience)
    if not any(wanted):
        return None
    if settings.jwt_secret is None and settings.jwt_jwks_url is None:
        raise errors.StartupError(
            "a JWT issuer or audience is set, but no key to verify signatures: set SAPWOOD_JWT_JWKS_URL or "
            "SAPWOOD_JWT_SECRET"
        )
    return JwtVerifier(settings)


def _checked_url(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise errors.StartupError(f"SAPWOOD_JWT_JWKS_URL is {url!r}: use an https:// address")
    return url
