"""Errors as clients get them: each has a code, and one that nobody foresaw shows only the id of its log entry."""

import logging
import uuid
from collections.abc import Sequence
from typing import Any

from graphql import DocumentNode, GraphQLError
from strawberry.exceptions import StrawberryInputCoercionError

from schema.engine.arguments import argument_path
from storage.errors import BadInput, SapwoodError

MAX_MESSAGE = 2_000
SUGGESTION = " Did you mean "
logger = logging.getLogger("sapwood.errors")


def publish(errors: Sequence[GraphQLError], document: DocumentNode | None) -> None:
    """Set each error's code and message, in place, and log it.

    A client's mistake is logged at INFO in one line. An unforeseen error is masked (see `masked`).
    """
    for error in errors:
        if error.extensions is None or "code" not in error.extensions:
            _publish(error, document)
        if len(error.message) > MAX_MESSAGE:
            error.message = error.message[:MAX_MESSAGE] + "…"
        code = (error.extensions or {})["code"]
        if code != SapwoodError.code:
            path = ".".join(map(str, error.path)) if error.path else "the request"
            logger.info("%s at %s: %s", code, path, " ".join(error.message.split()))


def masked(error: BaseException, path: Sequence[str | int] | None = None) -> tuple[str, dict[str, Any]]:
    """The message and extensions that stand for an unforeseen error, which is logged with its traceback.

    `id` in the extensions names the log entry. `path` is the failed field's, if there is one.
    """
    id = uuid.uuid4().hex
    logger.error("internal error %s at %s", id, list(path) if path else "the request", exc_info=error)
    message = f"Something went wrong in the server; its log has more under {id}."
    return message, {"code": SapwoodError.code, "id": id}


def hide_suggestions(errors: Sequence[GraphQLError]) -> None:
    """Remove the names that graphql-core suggests from its errors, in place."""
    for error in errors:
        if _cause(error) is None:
            error.message = error.message.partition(SUGGESTION)[0]


def _publish(error: GraphQLError, document: DocumentNode | None) -> None:
    cause = _cause(error)
    foreseen = isinstance(cause, SapwoodError) and cause.code != SapwoodError.code
    if isinstance(cause, SapwoodError) and foreseen and error.path is not None:
        error.extensions = {"code": cause.code, **cause.details}
        error.message = cause.message
    elif cause is None or foreseen or isinstance(cause, StrawberryInputCoercionError):
        error.extensions = {"code": BadInput.code}
        if document is not None and error.nodes and (path := argument_path(document, error.nodes[0])) is not None:
            error.message = f"{path}: {error.message}"
    else:
        error.message, error.extensions = masked(cause, error.path)


def _cause(error: GraphQLError) -> BaseException | None:
    """The first exception below GraphQL's own; None where GraphQL itself refused the request."""
    cause: BaseException | None = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    return cause
