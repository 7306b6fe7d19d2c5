"""Pages of digests, which orchestrators read instead of logs."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage import errors
from storage.cursor import Cursor, binding, check_count, decode, encode
from storage.database import Queries
from storage.events import Instant
from storage.scope import Scope
from storage.session import Digest, SessionFilter, SessionMeta, SessionOrder, Slots

MAX_DIGESTS = 10_000
MAX_DIGEST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DigestPage:
    """Digests in order of creation, whether more follow, and the time to ask for changes since."""

    digests: list[Digest]
    more: bool
    as_of: Instant
    bound: str

    def cursor(self, digest: Digest) -> str:
        """The cursor of one of the digests."""
        return encode(Cursor(digest.session.created_at, digest.session.id, self.as_of), self.bound)


async def read_digests(
    scope: Scope, space: str, selection: SessionFilter, first: int, after: str | None
) -> DigestPage | None:
    """One page of digests, up to 16 MiB but at least one; None if the node to look under is unknown.

    Raises BadInput for a bad page size or cursor, PayloadTooLarge for more than 10,000 ids.
    """
    check_count(first, MAX_DIGESTS, "first")
    if selection.ids is not None and len(selection.ids) > MAX_DIGESTS:
        raise errors.PayloadTooLarge(f"ids: at most {MAX_DIGESTS}, got {len(selection.ids)}")
    bound = binding("digests", space, selection)
    cursor = decode(after, bound)

    async def query(queries: Queries) -> DigestPage | None:
        as_of = cursor.as_of if cursor and cursor.as_of is not None else await queries.as_of()
        if selection.under is not None and await queries.node(space, selection.under) is None:
            return None
        position = (cursor.time, cursor.id) if cursor else None
        found = await queries.session_page(space, selection, SessionOrder.CREATED_ASC, position, first + 1)
        rows = found[:first]
        slots = await _slots_of(queries, space, selection, rows)
        if (missing := _first_missing(rows, slots)) is not None:
            rows = rows[: max(missing, 1)]
        digests = [Digest.of(meta, slots.get(meta.id)) for meta in rows]
        return DigestPage(digests, len(found) > len(rows), as_of, bound)

    return await scope.read(query)


async def _slots_of(
    queries: Queries, space: str, selection: SessionFilter, rows: Sequence[SessionMeta]
) -> dict[str, Slots]:
    """The slots of a page's sessions. For an unfiltered page, one range is cheaper than a list of ids."""
    if not rows:
        return {}
    if selection == SessionFilter():
        between = await queries.slots_between(space, rows[0], rows[-1], MAX_DIGEST_BYTES)
        return {slots.id: slots for slots in between}
    return await queries.slots(space, [meta.id for meta in rows], MAX_DIGEST_BYTES)


def _first_missing(rows: Sequence[SessionMeta], slots: dict[str, Slots]) -> int | None:
    """Index of the first session whose slots exceeded the page's bytes, if any did.

    A session deleted in between has no slots and does not count.
    """
    last = max((index for index, meta in enumerate(rows) if meta.id in slots), default=-1)
    return last + 1 if last + 1 < len(rows) else None
