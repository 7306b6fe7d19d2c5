"""Message records: the surface's messages without supplied results."""

from storage import errors
from storage.views.message import Message, Role
from storage.views.surface import Surface


def records(
    surface: Surface,
    *,
    role: Role | None = None,
    from_seq: int | None = None,
    since_memory: int | None = None,
    offset: int = 0,
    limit: int | None = None,
) -> list[Message]:
    """The records of a role with an event at seq >= `from_seq`; then offset and limit apply, in this order.

    `since_memory`, the head that the memory reflects, is a second lower bound. A record that grew after a bound counts
    as new. Raises BadInput for negative numbers.
    """
    for name, value in (("fromSeq", from_seq), ("offset", offset), ("limit", limit)):
        if value is not None and value < 0:
            raise errors.BadInput(f"{name}: must not be negative, is {value}")
    start = max(from_seq or 0, since_memory or 0)
    found = [
        message
        for message in surface.messages()
        if not message.supplied and (role is None or message.role is role) and message.source_event_seqs[-1] >= start
    ]
    return found[offset:] if limit is None else found[offset : offset + limit]
