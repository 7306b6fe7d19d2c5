"""What clients are told of what went wrong: a code always, and of our own mistakes only an id."""

import logging
import uuid
from collections.abc import Sequence

from graphql import DocumentNode, GraphQLError
from strawberry.exceptions import StrawberryInputCoercionError

from schema.engine.arguments import place_of
from storage.errors import BadInput, SapwoodError, internal

MAX_MESSAGE = 2_000
SUGGESTION = " Did you mean "
logger = logging.getLogger("sapwood.errors")


def publish(errors: Sequence[GraphQLError], document: DocumentNode | None) -> None:
    """Gives each error its code, in place, and logs it: clients' mistakes at INFO, in one line each.

    What nobody foresaw is logged whole and masked, with an id for both.
    """
    for error in errors:
        if error.extensions is None or "code" not in error.extensions:
            _publish(error, document)
        if len(error.message) > MAX_MESSAGE:
            error.message = error.message[:MAX_MESSAGE] + "…"
        code = (error.extensions or {})["code"]
        if code != SapwoodError.code:
            place = ".".join(map(str, error.path)) if error.path else "the request"
            logger.info("%s at %s: %s", code, place, " ".join(error.message.split()))


def hide_suggestions(errors: Sequence[GraphQLError]) -> None:
    """Takes names of the schema that graphql-core suggests out of its errors, in place."""
    for error in errors:
        if _cause(error) is None:
            error.message = error.message.partition(SUGGESTION)[0]


def _publish(error: GraphQLError, document: DocumentNode | None) -> None:
    original = _cause(error)
    foreseen = isinstance(original, SapwoodError) and original.code != SapwoodError.code
    if isinstance(original, SapwoodError) and foreseen and error.path is not None:
        error.extensions = {"code": original.code, **original.details}
        error.message = original.message
    elif original is None or foreseen or isinstance(original, StrawberryInputCoercionError):
        error.extensions = {"code": BadInput.code}
        if document is not None and error.nodes and (place := place_of(document, error.nodes[0])) is not None:
            error.message = f"{place}: {error.message}"
    else:
        id = uuid.uuid4().hex
        logger.error("internal error %s at %s", id, error.path, exc_info=original)
        masked = internal(id)
        error.message = masked.message
        error.extensions = {"code": masked.code, **masked.details}


def _cause(error: GraphQLError) -> BaseException | None:
    """The first exception below GraphQL's own; None where GraphQL itself refused the request."""
    original: BaseException | None = error.original_error
    while isinstance(original, GraphQLError):
        original = original.original_error
    return original
