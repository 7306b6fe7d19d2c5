"""The example page, served at / if it is built."""

from pathlib import Path

from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from typing_extensions import override

BUILT = Path(__file__).parent.parent / "frontend-example" / "dist"
"""Where `npm run build` puts the page in a checkout."""

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
    """The files of a built page. Names under assets/ contain a hash of the content, so those files never change."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    @override
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        immutable = path.startswith("assets/") and response.status_code < 400
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if immutable else "no-cache"
        response.headers.update(HEADERS)
        return response


def is_built(folder: Path | None) -> bool:
    """Whether the folder has a built page. None means the folder where a checkout builds it."""
    return (_built_in(folder) / "index.html").is_file()


def routes(folder: Path | None) -> list[BaseRoute]:
    """The routes of the page; none if it is not built."""
    if not is_built(folder):
        return []
    page = Page(_built_in(folder))
    return [Route(path, page) for path in ("/", "/icon.svg", "/assets/{name}")]


def _built_in(folder: Path | None) -> Path:
    return BUILT if folder is None else folder
