"""Who asks: decided here, and nowhere else, for every transport."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose space an operation works in, and what it may do there."""

    space: str
    role: str


OPEN = Caller("default", "ADMIN")


class Callers:
    """Finds the caller of what comes in. What raises a SapwoodError is refused with its code, a socket with 4403."""

    async def of_request(self, headers: Headers) -> Caller:
        """The caller of a request or event stream."""
        return OPEN

    async def of_socket(self, headers: Headers, payload: Mapping[str, Any] | None) -> Caller:
        """The caller of a socket, from its handshake's headers and the payload of its connection_init."""
        return OPEN
