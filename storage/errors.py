"""What can go wrong in the domain. Each class is one code of the public API."""

from collections.abc import Mapping
from typing import ClassVar


class SapwoodError(Exception):
    """Root of all domain errors.

    `code` is what clients switch on; `details` are further machine-readable fields (`head`, `version`).
    """

    code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, object] = details


class BadInput(SapwoodError):
    """An argument breaks a rule; the message names argument, value and limit."""

    code = "BAD_INPUT"


class NotFound(SapwoodError):
    """Nothing of that id in the caller's space."""

    code = "NOT_FOUND"


def just_deleted(id: str) -> NotFound:
    """The error for a session that was deleted while it was being read."""
    return NotFound(f"session {id} has just been deleted")


class Conflict(SapwoodError):
    """The caller expected another head or version; `details` hold the true one."""

    code = "CONFLICT"


class DuplicateId(SapwoodError):
    """The id is taken. Sessions are never overwritten."""

    code = "DUPLICATE_ID"


class IdempotencyMismatch(SapwoodError):
    """The key was used before, with other input."""

    code = "IDEMPOTENCY_MISMATCH"


class Archived(SapwoodError):
    """The session is archived and takes no writes until it is restored."""

    code = "ARCHIVED"


class TurnEnded(SapwoodError):
    """The turn has ended; only tool results and feedback may still come."""

    code = "TURN_ENDED"


class HasChildren(SapwoodError):
    """The node has children and the deletion was not a cascade."""

    code = "HAS_CHILDREN"


class InvalidRef(SapwoodError):
    """A reference between a node and itself, an ancestor or a descendant."""

    code = "INVALID_REF"


class Cycle(SapwoodError):
    """A node would become its own ancestor."""

    code = "CYCLE"


class PayloadTooLarge(SapwoodError):
    """Too many items or bytes in one request; the message names the limit."""

    code = "PAYLOAD_TOO_LARGE"


class Unauthenticated(SapwoodError):
    """No credential, or one that is unknown, expired or revoked."""

    code = "UNAUTHENTICATED"


class Forbidden(SapwoodError):
    """The caller's role, or where the request comes from, does not allow it."""

    code = "FORBIDDEN"


class Unavailable(SapwoodError):
    """The database can't be reached now; the same request may succeed later."""

    code = "UNAVAILABLE"


class StartupError(Exception):
    """The store can't be opened. The message says what to do about it."""
