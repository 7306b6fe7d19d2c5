"""The media type of an answer, chosen by the request's Accept header (RFC 9110, section 12.5.1)."""

from functools import lru_cache

JSON = "application/json"
RESPONSE = "application/graphql-response+json"
EVENTS = "text/event-stream"
OFFERED = (JSON, RESPONSE, EVENTS)
WIDE = {"*/*": JSON, "application/*": JSON, "text/*": EVENTS}
"""What wildcards get: application/json, which GraphQL clients of any age understand."""


@lru_cache(maxsize=512)
def media_type(accept: str) -> str | None:
    """The offered type that the client prefers, the first of equals; None if it accepts none of them."""
    if not accept.strip():
        return JSON
    ranges: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if name in OFFERED or name in WIDE:
            ranges.setdefault(name, _quality(parameters))
    best, best_quality = None, 0.0
    for name, quality in ranges.items():
        offered = WIDE.get(name, name)
        # A type that is refused by name (q=0) stays refused under a wildcard.
        if quality > best_quality and ranges.get(offered, quality) > 0:
            best, best_quality = offered, quality
    return best


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
