"""Pages of other origins: refused unless allowed, and served as CORS has it where they are."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from strawberry.http.websocket_origin import is_same_origin, normalize_allowed_origins, normalize_origin

from server.transport.refusal import refusal
from storage import errors

ANY = "*"
PREFLIGHT_SECONDS = 600


def allowed_by(setting: str) -> frozenset[str]:
    """The origins that a setting allows, told apart by commas. Raises StartupError for what is no origin."""
    given = [origin.strip() for origin in setting.split(",") if origin.strip()]
    try:
        return normalize_allowed_origins(given)
    except ValueError as error:
        raise errors.StartupError(f"SAPWOOD_ALLOWED_ORIGINS: {error}") from error


def middleware(allowed: frozenset[str]) -> list[Middleware]:
    """What guards an application where these origins are allowed."""
    found = [Middleware(Origins, allowed=sorted(allowed))]
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


class Origins:
    """Refuses what a browser sends for a page of an origin that is neither the server's own nor allowed.

    Without an Origin header it comes from no page, or is a plain navigation, which can only read.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
    if scope["type"] == "websocket":
        # Before it is accepted, closing a socket answers its handshake with 403.
        await WebSocketClose()(scope, receive, send)
        return
    error = errors.Forbidden(f"Origin: pages of {origin[:200]!r} are not allowed; SAPWOOD_ALLOWED_ORIGINS lists who is")
    await refusal(error)(scope, receive, send)
