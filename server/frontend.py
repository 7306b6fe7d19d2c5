"""The example page, served at / where it has been built."""

from pathlib import Path

from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

BUILT = Path(__file__).parent.parent / "frontend-example" / "dist"
"""Where `npm run build` puts the page, in a checkout."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Page(StaticFiles):
    """The files of a built page. Those under assets/ have their content in their names and never change."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        for_ever = path.startswith("assets/") and response.status_code < 400
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if for_ever else "no-cache"
        response.headers.update(HEADERS)
        return response


def is_built(folder: Path | None) -> bool:
    """Whether there is a page in a folder, by default where a checkout builds it."""
    return (_place(folder) / "index.html").is_file()


def routes(folder: Path | None) -> list[BaseRoute]:
    """Where the page is served; nowhere if it is not built."""
    if not is_built(folder):
        return []
    page = Page(_place(folder))
    return [Route(path, page) for path in ("/", "/icon.svg", "/assets/{name}")]


def _place(folder: Path | None) -> Path:
    return BUILT if folder is None else folder
