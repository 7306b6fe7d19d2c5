"""Sessions: what is known of each without its log, and where their heads are."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from storage.events import Instant
from storage.session import SessionFilter, SessionMeta, SessionOrder


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a session's log, without its content."""

    id: str
    log: str
    head: int
    own_start: int


class SessionQueries(Protocol):
    """Reading sessions. A space that is unknown has none."""

    async def session(self, space: str, id: str) -> SessionMeta | None:
        """One session; None for an id that is unknown or can't be one."""
        ...

    async def sessions(self, space: str, ids: Collection[str]) -> dict[str, SessionMeta]:
        """Sessions by id. Unknown ids are left out."""
        ...

    async def session_by_key(self, space: str, key: str) -> SessionMeta | None:
        """The session that was created with an idempotency key; None if there is none."""
        ...

    async def session_page(
        self,
        space: str,
        selection: SessionFilter,
        order: SessionOrder,
        after: tuple[Instant, str] | None,
        limit: int,
    ) -> list[SessionMeta]:
        """Up to `limit` sessions by (time, id) in the order's direction, only those beyond `after`.

        The time is updatedAt or createdAt, as the order says. Ids of the filter that are unknown match nothing.
        """
        ...

    async def count_sessions(self, space: str, selection: SessionFilter) -> int:
        """How many sessions match a filter."""
        ...

    async def sessions_in(self, space: str, under: str | None) -> list[SessionMeta]:
        """All sessions of the space, or those of a node and its descendants; in no order and without a limit.

        An unknown node has none.
        """
        ...

    async def heads(self, space: str, under: str | None = None) -> list[Head]:
        """The heads of the sessions that `sessions_in` returns."""
        ...


class SessionWrites(Protocol):
    """Writing sessions. Each write makes the session known as a Notification of kind `session`, appends excepted."""

    async def insert_session(self, meta: SessionMeta) -> None:
        """Writes a new session, with its times as given.

        Raises DuplicateId when the id is taken, unless the store starts the transaction over instead; the id is then
        found by the next try.
        """
        ...

    async def change_session(
        self, meta: SessionMeta, changes: dict[str, Any], *, appended: bool = False
    ) -> SessionMeta:
        """Sets fields, by attribute name, and updatedAt; with `appended`, lastEventAt too. Returns the new document.

        `meta` is the session as this transaction has read it. With `appended` there is no Notification of kind
        `session`: the one of the commit stands for both.
        """
        ...
