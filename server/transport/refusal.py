"""Refusals of whole requests, in the form of GraphQL's errors."""

from starlette.responses import JSONResponse

from storage import errors

STATUS = {
    errors.BadInput.code: 400,
    errors.Unauthenticated.code: 401,
    errors.Forbidden.code: 403,
    errors.Unavailable.code: 503,
}


def refusal(error: errors.SapwoodError) -> JSONResponse:
    """The answer to a request that was refused before it was read."""
    # How to ask again, as RFC 6750 has it.
    headers = {"WWW-Authenticate": 'Bearer realm="sapwood"'} if isinstance(error, errors.Unauthenticated) else None
    body = {"errors": [{"message": error.message, "extensions": {"code": error.code}}]}
    return JSONResponse(body, STATUS.get(error.code, 500), headers)
