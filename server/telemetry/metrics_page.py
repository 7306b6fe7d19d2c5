"""/metrics, and access to it."""

import hmac

from starlette.requests import Request
from starlette.responses import Response

from server.auth.loopback import is_loopback, is_loopback_name
from server.settings import METRICS_WORDS
from server.telemetry.metrics import Metrics
from server.transport import refusal
from storage import errors

OFF, LOOPBACK, OPEN = METRICS_WORDS
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that proxies add to requests they forward."""


class MetricsPage:
    """Serves the metrics. `access` is off, loopback, open, or the bearer token that requests must have."""

    def __init__(self, metrics: Metrics, access: str) -> None:
        self._metrics = metrics
        self._access = access

    async def answer(self, request: Request) -> Response:
        """Responds with the metrics, or with 401, 403 or 404 where access does not allow it."""
        refused = self._refusal(request)
        if refused is not None:
            return refused
        content, media_type = await self._metrics.exposed(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": media_type, "cache-control": "no-store"})

    def _refusal(self, request: Request) -> Response | None:
        if self._access == OFF:
            return refusal.response(errors.NotFound("/metrics is turned off; SAPWOOD_METRICS turns it on"), 404)
        if self._access == OPEN:
            return None
        if self._access == LOOPBACK:
            if _is_local(request):
                return None
            return refusal.response(errors.Forbidden("metrics are for this machine only; SAPWOOD_METRICS changes that"))
        given = request.headers.get("authorization", "").encode()
        if hmac.compare_digest(given, f"Bearer {self._access}".encode()):
            return None
        return refusal.response(errors.Unauthenticated("metrics need the token of SAPWOOD_METRICS"))


def _is_local(request: Request) -> bool:
    """Whether a request is from this machine and not forwarded by a proxy.

    A name other than localhost may be a page's own that was made to resolve to this machine (DNS rebinding).
    """
    from_here = request.client is not None and is_loopback(request.client.host)
    forwarded = any(name in request.headers for name in FORWARDED)
    return from_here and not forwarded and is_loopback_name(request.headers.get("host", ""))
