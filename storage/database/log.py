"""What a store must be able to do: find documents, write them in one transaction, and tell what changed.

Everything above this page is written once, against these protocols; `storage.sqlite` and `storage.mongo`
implement them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from storage.access_key import AccessKey
from storage.cards.definition import FormDefinition
from storage.events import Instant
from storage.log.commit import Commit
from storage.run_filter import RunFilter
from storage.session import SessionFilter, SessionMeta, SessionOrder, Slots
from storage.topology import NodeDocument
from storage.views.run_rows import RunRow

T = TypeVar("T")

PLACE = ("ancestors", "moved_at_head", "moved_from")
"""What a move changes of all nodes of a subtree."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a session's log has come, without its content."""

    id: str
    log: str
    head: int
    own_start: int


@dataclass(frozen=True, slots=True)
class Notification:
    """Something of session `id` has changed. `kind` is log, session, node or slots; a wake-up, never the truth.

    For a commit, `log` names its log and `first` to `last` are its seqs. `lost` means that changes may have gone
    unnoticed: every reader must look again.
    """

    kind: str
    space: str = ""
    id: str = ""
    log: str = ""
    first: int = 0
    last: int = -1

    @property
    def lost(self) -> bool:
        """Whether this stands for unknown changes."""
        return self.kind == "lost"


LOST = Notification("lost")


@dataclass(frozen=True, slots=True)
class Holders:
    """Who still reads a log: its owner, and the largest cut (exclusive seq) among the forks that share it."""

    owned: bool
    largest_cut: int


class Queries(Protocol):
    """Reading. Inside a transaction: of its snapshot; else of what is committed (on MongoDB by a majority)."""

    async def session(self, space: str, id: str) -> SessionMeta | None: ...
    async def sessions(self, space: str, ids: Collection[str]) -> dict[str, SessionMeta]: ...
    async def session_by_key(self, space: str, key: str) -> SessionMeta | None: ...
    async def session_page(
        self,
        space: str,
        selection: SessionFilter,
        order: SessionOrder,
        after: tuple[Instant, str] | None,
        limit: int,
    ) -> list[SessionMeta]:
        """Up to `limit` sessions in order, those behind (time, id) `after` alone."""
        ...

    async def count_sessions(self, space: str, selection: SessionFilter) -> int: ...
    async def sessions_in(self, space: str, under: str | None) -> list[SessionMeta]:
        """All sessions of the space, or those of a node and its descendants; in no order."""
        ...

    async def heads(self, space: str, under: str | None = None) -> list[Head]: ...
    async def slots(self, space: str, ids: Collection[str], max_bytes: int | None = None) -> dict[str, Slots]:
        """Slots by session id; with `max_bytes`, those of the first ids in the order given that fit, at least one."""
        ...

    async def slots_between(self, space: str, first: SessionMeta, last: SessionMeta, max_bytes: int) -> list[Slots]:
        """The slots of sessions created from `first` to `last`, in order, until `max_bytes` are passed."""
        ...

    async def slot_marks(self, space: str, id: str | None) -> list[Slots]:
        """The slots of one session or of the whole space, without their contents."""
        ...

    async def node(self, space: str, id: str) -> NodeDocument | None: ...
    async def nodes(self, space: str, ids: Collection[str]) -> dict[str, NodeDocument]: ...
    async def children(self, space: str, parents: Collection[str]) -> list[NodeDocument]: ...
    async def roots(self, space: str) -> list[NodeDocument]:
        """Nodes without a parent or whose parent is missing."""
        ...

    async def subtree(self, space: str, root: str | None, limit: int | None = None) -> list[NodeDocument]:
        """All nodes of the space, or a node and its descendants; no more than `limit`, in no order."""
        ...

    async def referrers(self, space: str, ids: Collection[str]) -> list[NodeDocument]:
        """Nodes that refer to any of these ids."""
        ...

    async def commits(
        self,
        log: str,
        start: int,
        stop: int,
        *,
        newest_first: bool = False,
        types: Collection[str] | None = None,
        max_events: int,
        max_bytes: int,
    ) -> list[Commit]:
        """Commits with start <= first < stop, until their events or bytes reach a bound; at least one if any is."""
        ...

    async def commit_before(self, log: str, seq: int, within: int) -> Commit | None:
        """The commit with the largest first where seq - within < first <= seq."""
        ...

    async def commit_by_key(self, log: str, key: str) -> Commit | None: ...
    async def turn_starts(self, marks: Collection[str]) -> list[tuple[str, int]]:
        """(mark, seq) of each of these turn marks that a commit starts."""
        ...

    async def step_starts(self, marks: Collection[str]) -> list[tuple[str, int]]:
        """(mark, seq) of each of these step marks that a commit starts."""
        ...

    async def forms(self, space: str, ids: Collection[str] | None) -> list[FormDefinition]:
        """The form definitions with these ids, or all of the space, by id."""
        ...

    async def card_seqs(self, spans: Collection[tuple[str, int, int]]) -> list[tuple[str, int]]:
        """For each span (mark, start, stop), (mark, seq) of cards with that mark and start <= seq < stop.

        Among them, in no order, are the first and the last of each span; others may be.
        """
        ...

    async def run_rows(self, space: str, session: str, turns: Collection[str] | None) -> dict[str, RunRow]:
        """The rows of these turns of a session, or of all of them, by turn."""
        ...

    async def run_page(
        self, space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int
    ) -> list[RunRow]:
        """Up to `limit` rows, those started last first, those behind (started at, place) `after` alone."""
        ...

    async def run_sessions(self, space: str) -> set[str]:
        """Ids of all sessions that have rows of runs."""
        ...

    async def holders(self, log: str) -> Holders: ...
    async def all_logs(self) -> list[str]:
        """Ids of all logs that have commits."""
        ...

    async def unowned_logs(self) -> list[str]:
        """Those of them that are no session's own: of sessions that were deleted."""
        ...

    async def all_spaces(self) -> list[str]:
        """All spaces that have sessions, nodes or rows of runs."""
        ...

    async def access_keys(self, ids: Collection[str]) -> dict[str, AccessKey]: ...
    async def access_keys_in(self, space: str | None) -> list[AccessKey]:
        """All API keys, or those of one space; in no order."""
        ...

    async def access_keys_exist(self) -> bool: ...
    async def as_of(self) -> Instant:
        """A time (ms) such that whatever is committed later has an updatedAt that is not before it."""
        ...


class Transaction(Queries, Protocol):
    """Reading and writing as one unit. `updated_at` is set by the database's clock in every write."""

    async def next_root(self, space: str) -> tuple[int, Instant]:
        """The next index among the roots, and the database's time."""
        ...

    async def insert_session(self, meta: SessionMeta) -> None:
        """Raises DuplicateId when the id is taken."""
        ...

    async def insert_node(self, node: NodeDocument) -> None: ...
    async def insert_slots(self, slots: Slots) -> None: ...
    async def insert_commit(self, commit: Commit, encoded: bytes | None = None) -> None:
        """Writes a commit; `encoded` is the JSON of its events, where it is at hand."""
        ...

    async def change_session(
        self, meta: SessionMeta, changes: dict[str, Any], *, appended: bool = False
    ) -> SessionMeta:
        """Sets fields (by attribute name) and updatedAt, with `appended` lastEventAt too; the document after it."""
        ...

    async def rely_on(self, space: str, *, sessions: Collection[str] = (), nodes: Collection[str] = ()) -> None:
        """Makes this transaction conflict with any other that writes or relies on these documents."""
        ...

    async def change_node(self, node: NodeDocument, changes: dict[str, Any]) -> NodeDocument: ...
    async def change_places(self, nodes: Sequence[NodeDocument]) -> None:
        """Writes `PLACE` of each of these nodes as given, and nothing else of them."""
        ...

    async def change_slots(self, slots: Slots, changes: dict[str, Any]) -> Slots: ...
    async def put_form(self, form: FormDefinition) -> FormDefinition:
        """Writes a form definition over the one of its id, if there is one."""
        ...

    async def put_run_rows(self, rows: Sequence[RunRow]) -> None:
        """Writes rows, in place of those of the same turns.

        As rows only grow, such a one must have the same start, and no names that the new one lacks.
        """
        ...

    async def drop_run_rows(self, space: str, session: str, turns: Collection[str] | None) -> None:
        """Deletes the rows of these turns of a session, or all of them."""
        ...

    async def insert_access_key(self, key: AccessKey) -> None: ...
    async def change_access_key(self, key: AccessKey, changes: dict[str, Any]) -> AccessKey:
        """Sets fields (by attribute name); the key after it."""
        ...

    async def delete(self, space: str, ids: Collection[str]) -> None:
        """Deletes sessions with their nodes, slots and rows of runs. Their commits are left to the collector."""
        ...


class Database(Protocol):
    """An open store."""

    name: str
    """What the store is and where, for people; without credentials."""

    async def read(self, query: Callable[[Queries], Awaitable[T]], *, quick: bool = False) -> T:
        """Runs a query function outside of transactions. Raises Unavailable when the database is out of reach.

        A `quick` one finds a few documents by their keys, and needs no snapshot over several commands: handing it to
        another thread would take longer.
        """
        ...

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, queue: Collection[str] = ()) -> T:
        """Runs work in one transaction: all of it or, when it raises, nothing.

        Work that names a common `queue` key waits for each other within this process. It is started over on
        collisions, so it must have no effect outside the transaction and await nothing but its methods. Returns
        only when the result is durable.
        """
        ...

    async def collect(self, log: str, cut: int) -> int:
        """Drops the commits of a log with first >= cut, and returns how many."""
        ...

    def changes(self) -> AsyncIterator[Sequence[Notification]]:
        """What other processes (and this one) commit from now on; LOST where it may have missed something.

        The first, empty, item says that from now on nothing is missed. Raises Unavailable when it can't go on.
        """
        ...

    def watch(self, listener: Callable[[Sequence[Notification], Sequence[Commit]], None]) -> None:
        """Has this process's own commits told at once, after they are durable."""
        ...

    async def ping(self) -> None:
        """Raises Unavailable when the database is out of reach."""
        ...

    async def close(self) -> None: ...
