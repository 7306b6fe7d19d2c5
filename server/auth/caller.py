"""Who is calling, and where a request or a socket says so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from storage import errors
from storage.access_key import AccessRole
from storage.events import Instant
from storage.log.append import now

MAX_TOKEN = 16 * 1024
TELLING = {b"authorization": "authorization", b"host": "host"}
"""The headers that tell who is calling."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a credential stands for: one space and one role, until an instant if it has an end.

    `key_id` names the API key that it is; `open` says that it is open access, without any credential.
    """

    space: str
    role: AccessRole
    expires_at: Instant | None = None
    key_id: str | None = None
    open: bool = False

    @property
    def seconds_left(self) -> float | None:
        """Until it expires; None if it never does."""
        return None if self.expires_at is None else (self.expires_at - now()) / 1_000


def telling(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Those of a request's headers that tell who is calling."""
    return {TELLING[name]: value.decode("latin-1") for name, value in headers if name in TELLING}


def bearer(headers: Mapping[str, str], payload: Mapping[str, object] | None = None) -> str | None:
    """The bearer token of a socket's connection_init payload, else of the Authorization header, else None.

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
        raise errors.Unauthenticated("Authorization: write 'Bearer' and then an API key or a JWT")
    if len(token) > MAX_TOKEN:
        raise errors.Unauthenticated(f"Authorization: takes up to {MAX_TOKEN} characters, this has {len(token)}")
    return token.strip()
