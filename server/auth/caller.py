"""The caller, and the parts of a request or a socket that carry its credential."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from storage import errors
from storage.access_key import AccessRole
from storage.events import Instant
from storage.log.append import now

MAX_TOKEN = 16 * 1024
CREDENTIAL_HEADERS = {b"authorization": "authorization", b"host": "host"}
"""The headers that decide who is calling."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a credential grants: one role in one space, until `expires_at` if it expires.

    `key_id` is the id of an API key. `open` means open access, without a credential.
    """

    space: str
    role: AccessRole
    expires_at: Instant | None = None
    key_id: str | None = None
    open: bool = False

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the credential expires; None if it never does."""
        return None if self.expires_at is None else (self.expires_at - now()) / 1_000


def credential_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of a request that decide who is calling."""
    return {CREDENTIAL_HEADERS[name]: value.decode("latin-1") for name, value in headers if name in CREDENTIAL_HEADERS}


def bearer(headers: Mapping[str, str], payload: Mapping[str, object] | None = None) -> str | None:
    """The bearer token in a socket's connection_init payload, else in the Authorization header, else None.

    Raises Unauthenticated for another scheme.
    """
    given: object = headers.get("authorization")
    for name, value in (payload or {}).items():
        if name.lower() == "authorization" and value is not None:
            given = value
    if given is None:
        return None
    scheme, _, token = given.partition(" ") if isinstance(given, str) else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise errors.Unauthenticated("Authorization: must be 'Bearer' followed by an API key or a JWT")
    if len(token) > MAX_TOKEN:
        raise errors.Unauthenticated(f"Authorization: has {len(token)} characters, and at most {MAX_TOKEN} are allowed")
    return token.strip()
