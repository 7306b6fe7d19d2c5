"""What the driver's errors mean: start over, try later, or give up."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from storage import errors

CONFLICTS = frozenset({24, 112, 225, 239, 244, 246, 251, 267, 290, 11000, 11001, 12582})
"""Lock timeouts, write conflicts, transactions that the server aborted, snapshots that are gone, duplicate keys."""
UNREACHABLE = frozenset({6, 7, 50, 64, 89, 91, 189, 262, 317, 358, 384, 9001, 10058, 10107, 11600, 11602, 13435, 13436})
"""Unreachable hosts, timeouts, servers that stop or are not primary."""
HISTORY_LOST = frozenset({136, 222, 260, 280, 286})
"""Change streams that can't resume from their token."""

DRIVER_ERRORS = (PyMongoError, BSONError, OverflowError)


def codes(error: PyMongoError) -> set[int]:
    """The server's error codes in an error."""
    found: set[Any] = {error.code} if isinstance(error, OperationFailure) else set()
    if isinstance(error, BulkWriteError):
        found.update(part.get("code") for part in error.details.get("writeErrors", ()))
    return {code for code in found if isinstance(code, int)}


def is_conflict(error: PyMongoError) -> bool:
    """Whether the same transaction may succeed when it is started over."""
    return error.has_error_label("TransientTransactionError") or bool(codes(error) & CONFLICTS)


def is_unreachable(error: PyMongoError) -> bool:
    """Whether the database is out of reach, rather than the operation wrong."""
    if isinstance(error, ConnectionFailure | ExecutionTimeout | WTimeoutError) or codes(error) & UNREACHABLE:
        return True
    return not isinstance(error, OperationFailure)


def translate(error: Exception) -> errors.SapwoodError:
    """The domain's error for one of the driver's."""
    if isinstance(error, OverflowError):
        return errors.BadInput("a number is beyond 64 bits; the database can't hold it")
    if isinstance(error, DocumentTooLarge):
        return errors.PayloadTooLarge("a document would take more than the 16 MiB that the database allows")
    if not isinstance(error, PyMongoError):
        return errors.SapwoodError(f"the database can't hold a document ({type(error).__name__})")
    if is_unreachable(error) or is_conflict(error):
        return errors.Unavailable(f"the database can't be used now ({type(error).__name__}); try again")
    return errors.SapwoodError(f"the database refused an operation ({type(error).__name__} {sorted(codes(error))})")


@contextmanager
def translated() -> Iterator[None]:
    """Raises the domain's errors for the driver's."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error) from error
