"""API keys as documents, and the order of their roles."""

import hashlib
import hmac
import re
from enum import StrEnum

from storage.events import Instant, Model, Text

PREFIX = "sapwood_"
KEY = re.compile(rf"{PREFIX}([0-9a-f]{{16}})_([A-Za-z0-9_-]{{43}})\Z")


class AccessRole(StrEnum):
    """What a caller may do. Each role includes those before it."""

    VIEWER = "VIEWER"
    AGENT = "AGENT"
    ORCHESTRATOR = "ORCHESTRATOR"
    ADMIN = "ADMIN"

    def includes(self, other: "AccessRole") -> bool:
        """Whether this role may do everything that the other may."""
        return RANKS[self] >= RANKS[other]


RANKS = {role: rank for rank, role in enumerate(AccessRole)}


class AccessKey(Model):
    """A key as stored, with only the SHA-256 of its secret. Times (ms since 1970) are by the servers' clocks."""

    id: str
    space: str
    name: Text | None = None
    role: AccessRole
    hash: str
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None

    def holds_at(self, time: Instant) -> bool:
        """Whether the key is neither revoked nor expired at that time."""
        return self.revoked_at is None and (self.expires_at is None or time < self.expires_at)

    def opened_by(self, secret: str) -> bool:
        """Whether this is the key's secret. Compares in constant time."""
        return hmac.compare_digest(self.hash, hash_of(secret))


def split(given: str) -> tuple[str, str] | None:
    """Id and secret of a key's text; None if the text is not a key."""
    found = KEY.match(given)
    return None if found is None else (found.group(1), found.group(2))


def joined(id: str, secret: str) -> str:
    """A key's text: `sapwood_<id>_<secret>`."""
    return f"{PREFIX}{id}_{secret}"


def hash_of(secret: str) -> str:
    """The SHA-256 of a secret, as stored."""
    # A slow hash would add nothing: 256 random bits can't be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()
