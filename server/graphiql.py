"""GraphiQL, a page to try operations in. All its files are ours, and its CSP lets it talk to this server only."""

from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

FOLDER = Path(__file__).parent / "static" / "graphiql"
# The style sheet has data: images for error squiggles. 'self' covers WebSockets only in newer browsers.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'{socket}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class GraphiQL:
    """Middleware of the endpoint that answers browsers with the page."""

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the page to a browser that opens the address, and passes all else on to the endpoint."""
        app = _page(Headers(scope=scope)) if _is_opened(scope) else self._endpoint
        await app(scope, receive, send)


def _is_opened(scope: Scope) -> bool:
    """Whether a browser requests the page, and not a query's answer."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or b"query=" in scope["query_string"]:
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


def _page(headers: Headers) -> FileResponse:
    return FileResponse(
        FOLDER / "index.html", headers={**_guards(headers), "cache-control": "no-cache", "vary": "accept"}
    )


def _guards(headers: Headers) -> dict[str, str]:
    """Headers that let the page talk to this server only, and nobody frame it."""
    host = headers.get("host", "")
    safe = bool(host) and all(letter.isascii() and (letter.isalnum() or letter in ".-:[]") for letter in host)
    policy = POLICY.format(socket=f" ws://{host} wss://{host}" if safe else "")
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


class Files(StaticFiles):
    """The page and the files that it loads, with the same headers as at the endpoint."""

    @override
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_guards(Headers(scope=scope)))
        return response


def files() -> BaseRoute:
    """The route of the files that the page loads."""
    return Mount("/graphiql", Files(directory=FOLDER))
