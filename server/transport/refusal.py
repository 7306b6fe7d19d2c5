"""Refused requests: their bodies, in the form of GraphQL's errors, and their statuses."""

import logging
import uuid
from typing import Any

from starlette.responses import JSONResponse

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
logger = logging.getLogger("sapwood.operations")


def payload(error: errors.SapwoodError) -> dict[str, Any]:
    """The response body of an error that the client may see."""
    return _payload(error.message, {"code": error.code, **error.details})


def masked_payload(error: BaseException) -> dict[str, Any]:
    """The response body of an error that nobody foresaw: an id under which the log has the rest."""
    return _payload(*masked(error))


def masked(error: BaseException) -> tuple[str, dict[str, Any]]:
    """The message and extensions that clients get for an unforeseen error, which is logged under their id."""
    id = uuid.uuid4().hex
    logger.error("internal error %s", id, exc_info=error)
    message = f"Something went wrong in the server; its log has more under {id}."
    return message, {"code": errors.SapwoodError.code, "id": id}


def _payload(message: str, extensions: dict[str, Any]) -> dict[str, Any]:
    return {"errors": [{"message": message, "extensions": extensions}]}


def response(error: errors.SapwoodError) -> JSONResponse:
    """The response to a request that is refused before it is read."""
    headers = dict([CHALLENGE]) if isinstance(error, errors.Unauthenticated) else None
    return JSONResponse(payload(error), STATUSES.get(error.code, 400), headers)
