"""GraphiQL, a page to try operations in: served whole from here, and allowed to talk to this server alone."""

from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

FOLDER = Path(__file__).parent / "static" / "graphiql"
# Squiggles below mistakes are images in the style sheet (data:). 'self' covers sockets only in newer browsers.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'{socket}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class GraphiQL:
    """Answers a browser that opens the endpoint with the page, and leaves all else to the endpoint."""

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = _page(Headers(scope=scope)) if _is_opened(scope) else self._endpoint
        await app(scope, receive, send)


def _is_opened(scope: Scope) -> bool:
    """Whether a browser asks for a page, and not for a query's answer."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or b"query=" in scope["query_string"]:
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


def _page(headers: Headers) -> FileResponse:
    return FileResponse(
        FOLDER / "index.html", headers={**_guards(headers), "cache-control": "no-cache", "vary": "accept"}
    )


def _guards(headers: Headers) -> dict[str, str]:
    """What keeps the page to this server, and out of the frames of others."""
    host = headers.get("host", "")
    plain = bool(host) and all(letter.isascii() and (letter.isalnum() or letter in ".-:[]") for letter in host)
    policy = POLICY.format(socket=f" ws://{host} wss://{host}" if plain else "")
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


class Files(StaticFiles):
    """What the page loads, and the page once more, guarded as at the endpoint."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_guards(Headers(scope=scope)))
        return response


def files() -> BaseRoute:
    """What the page loads."""
    return Mount("/graphiql", Files(directory=FOLDER))
