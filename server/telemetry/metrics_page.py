"""/metrics, and who may read it."""

import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from server.auth.loopback import is_loopback, names_this_machine
from server.settings import METRICS_WORDS
from server.telemetry.metrics import Metrics

OFF, LOOPBACK, OPEN = METRICS_WORDS
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that proxies add."""


class Scraping:
    """Answers scrapes. `access` is off, loopback, open, or the token that a scrape must bring."""

    def __init__(self, metrics: Metrics, access: str) -> None:
        self._metrics = metrics
        self._access = access

    async def answer(self, request: Request) -> Response:
        """The metrics, or why not."""
        refused = self._refusal(request)
        if refused is not None:
            return refused
        content, media_type = await self._metrics.exposed(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": media_type, "cache-control": "no-store"})

    def _refusal(self, request: Request) -> Response | None:
        if self._access == OFF:
            return PlainTextResponse("not found\n", 404)
        if self._access == OPEN:
            return None
        if self._access == LOOPBACK:
            if _is_local(request):
                return None
            return PlainTextResponse("metrics are told on this machine alone; SAPWOOD_METRICS says who may ask\n", 403)
        given = request.headers.get("authorization", "").encode()
        if hmac.compare_digest(given, f"Bearer {self._access}".encode()):
            return None
        return PlainTextResponse("metrics need the token of SAPWOOD_METRICS\n", 401, {"www-authenticate": "Bearer"})


def _is_local(request: Request) -> bool:
    """Whether it comes from this machine, by no proxy, and not for a page whose name was made to point here."""
    near = request.client is not None and is_loopback(request.client.host)
    passed_on = any(name in request.headers for name in FORWARDED)
    return near and not passed_on and names_this_machine(request.headers.get("host", ""))
