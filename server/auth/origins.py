"""Requests from pages of other origins: refused, or answered with CORS headers where the origin is allowed."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from strawberry.http.websocket_origin import is_same_origin, normalize_allowed_origins, normalize_origin

from server.transport.refusal import response
from storage import errors

ANY = "*"
PREFLIGHT_SECONDS = 600


def allowed_by(setting: str) -> frozenset[str]:
    """The origins in a setting, separated by commas. Raises StartupError for one that is not an origin."""
    given = [origin.strip() for origin in setting.split(",") if origin.strip()]
    try:
        return normalize_allowed_origins(given)
    except ValueError as error:
        raise errors.StartupError(f"SAPWOOD_ALLOWED_ORIGINS: {error}") from error


def middleware(allowed: frozenset[str]) -> list[Middleware]:
    """The middleware that enforces this list of allowed origins."""
    found = [Middleware(OriginCheck, allowed=sorted(allowed))]
    if allowed:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=sorted(allowed),
            allow_methods=("GET", "POST"),
            allow_headers=(ANY,),
            expose_headers=("WWW-Authenticate",),
            max_age=PREFLIGHT_SECONDS,
        )
        found.append(cors)
    return found


class OriginCheck:
    """Middleware that refuses what a browser sends from a page of an origin that is neither ours nor allowed.

    A request without an Origin header is not from a page, or is plain navigation, which can only read.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may pass, and refuses the rest with 403."""
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            origin = headers.get("origin")
            if origin is not None and not self._allows(origin, headers):
                await _refuse(origin, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _allows(self, origin: str, headers: Headers) -> bool:
        if ANY in self._allowed or normalize_origin(origin) in self._allowed:
            return True
        return headers.get("sec-fetch-site") == "same-origin" or is_same_origin(origin, headers.get("host"))


async def _refuse(origin: str, scope: Scope, receive: Receive, send: Send) -> None:
    error = errors.Forbidden(
        f"Origin: pages of {origin[:200]!r} are not allowed; SAPWOOD_ALLOWED_ORIGINS lists those that are"
    )
    await response(error)(scope, receive, send)
