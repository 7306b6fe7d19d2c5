"""Refused requests: their bodies, in the form of GraphQL's errors, and their statuses."""

from typing import Any

from starlette.responses import JSONResponse

from schema.errors import masked
from storage import errors

STATUSES = {
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
    "PAYLOAD_TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
}
"""HTTP statuses of refusals by code. The other codes are faults of the request itself: 400, or 200 in JSON."""
CHALLENGE = ("www-authenticate", 'Bearer realm="sapwood"')
"""Header of a 401: how to authenticate (RFC 6750, section 3)."""


def payload(error: errors.SapwoodError) -> dict[str, Any]:
    """The response body of an error that the client may see."""
    return _payload(error.message, {"code": error.code, **error.details})


def masked_payload(error: BaseException) -> dict[str, Any]:
    """The response body of an unforeseen error: an id under which the log has the details."""
    return _payload(*masked(error))


def _payload(message: str, extensions: dict[str, Any]) -> dict[str, Any]:
    return {"errors": [{"message": message, "extensions": extensions}]}


def response(error: errors.SapwoodError, status: int | None = None) -> JSONResponse:
    """The response to a request, or a WebSocket's handshake, that is refused before it is read.

    The status is that of the error's code, unless it is given.
    """
    headers = dict([CHALLENGE]) if isinstance(error, errors.Unauthenticated) else None
    return JSONResponse(payload(error), status or STATUSES.get(error.code, 400), headers)
