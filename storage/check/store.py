"""Checks that a store is whole, and repairs what can be repaired without making anything up.

Whatever looks wrong is checked again and repaired in one transaction, so a check may run beside a server. In memory it
holds the nodes of one space, without contents, the rows of runs of one session, and one page of a log.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial

from storage import scope, slots
from storage.check.forest import check_forest
from storage.check.logs import BEYOND, LogCheck
from storage.check.problem import Problem
from storage.check.runs import check_orphans, check_runs
from storage.database import Database, Queries, Transaction
from storage.session import SessionFilter, SessionMeta, SessionOrder
from storage.topology import NodeDocument

PAGE = 100


def _silent(_: int) -> None:
    pass


async def check_store(
    database: Database, *, repair: bool = False, progress: Callable[[int], None] = _silent
) -> AsyncIterator[Problem]:
    """Yields what is wrong in all spaces; with `repair`, repairs what it can first.

    Calls `progress` with the number of sessions checked since its last call.
    """
    owned: set[str] = set()
    unsound: set[str] = set()
    logs = LogCheck(database, repair)
    for space in await database.read(lambda queries: queries.all_spaces()):
        for problem in await _documents(database, space, repair):
            yield problem
        for problem in await check_forest(database, space, repair):
            yield problem
        async for page in _session_pages(database, space):
            for meta in page:
                owned.add(meta.log)
                found = await logs.check(meta)
                read = {segment.log for segment in meta.segments}
                if any(problem.by_hand for problem in found):
                    unsound |= read
                # A damaged log is no reason to doubt the rows that were written with it.
                if not read & unsound:
                    found = found + await check_runs(database, meta, repair)
                for problem in found:
                    yield problem
            progress(len(page))
        for problem in await check_orphans(database, space, repair):
            yield problem
    for log in await database.read(lambda queries: queries.all_logs()):
        unread = None if log in owned else await _check_unread(database, log, repair)
        if unread is not None:
            yield unread


async def count_sessions(database: Database) -> int:
    """How many sessions there are to check."""

    async def query(queries: Queries) -> int:
        return sum([await queries.count_sessions(space, SessionFilter()) for space in await queries.all_spaces()])

    return await database.read(query)


async def _session_pages(database: Database, space: str) -> AsyncIterator[Sequence[SessionMeta]]:
    after: tuple[int, str] | None = None
    while True:
        page = await database.read(partial(_page, space=space, after=after))
        if not page:
            return
        yield page
        after = (page[-1].created_at, page[-1].id)


async def _page(queries: Queries, *, space: str, after: tuple[int, str] | None) -> list[SessionMeta]:
    return await queries.session_page(space, SessionFilter(), SessionOrder.CREATED_ASC, after, PAGE)


async def _documents(database: Database, space: str, repair: bool) -> list[Problem]:
    """Checks that each session has its node and slots, and each of these its session."""

    async def query(queries: Queries) -> Collection[str]:
        sessions = {head.id for head in await queries.heads(space)}
        nodes = {node.id for node in await queries.subtree(space, None)}
        marks = {mark.id for mark in await queries.slot_marks(space, None)}
        return (sessions | nodes | marks) - (sessions & nodes & marks)

    found = []
    for id in sorted(await database.read(query)):
        problem = await database.transact(partial(_incomplete, space=space, id=id, repair=repair))
        if problem is not None:
            found.append(problem)
    return found


async def _incomplete(tx: Transaction, *, space: str, id: str, repair: bool) -> Problem | None:
    session, node = await tx.session(space, id), await tx.node(space, id)
    held_slots = (await tx.slots(space, [id])).get(id)
    if session is not None and node is None:
        if repair:
            await _insert_node(tx, session)
            if held_slots is None:
                await tx.insert_slots(slots.empty(session))
        return Problem(space, id, "has no node in the forest", "it becomes a root", repaired=repair)
    if session is not None and held_slots is None:
        if repair:
            await tx.insert_slots(slots.empty(session))
            await tx.change_session(session, {"memory_at_seq": 0, "behind": session.head > 0})
        return Problem(space, id, "has no slots", "it gets empty ones", repaired=repair)
    if session is None and node is not None:
        what = "has a node, and its session is missing"
        return Problem(space, id, what, by_hand="restore a backup, or delete the session to be rid of its node")
    if session is None and held_slots is not None:
        if repair:
            await tx.delete(space, [id])
        return Problem(space, id, "has slots, and neither session nor node", "they are dropped", repaired=repair)
    return None


async def _insert_node(tx: Transaction, session: SessionMeta) -> None:
    children = await tx.children(session.space, [session.id])
    index, now = await tx.next_root(session.space)
    await tx.insert_node(
        NodeDocument(
            space=session.space,
            id=session.id,
            index=index,
            next_index=max((child.index + 1 for child in children), default=0),
            child_count=len(children),
            updated_at=now,
        )
    )


async def _check_unread(database: Database, log: str, repair: bool) -> Problem | None:
    """The commits of a log that neither its session nor a fork reads, as a problem."""

    async def query(queries: Queries) -> Problem | None:
        holders = await queries.holders(log)
        if holders.owned:
            return None
        found = await queries.commits(log, holders.largest_cut, BEYOND, max_events=1, max_bytes=1)
        if not found:
            return None
        space, id = found[0].space, found[0].session
        what = f"has commits left of a log that no session reads any more ({log} from seq {found[0].first} on)"
        if await queries.node(space, id) is not None and await queries.session(space, id) is None:
            return Problem(space, id, what, by_hand="they stay, as the session's node is still there")
        return Problem(space, id, what, "they are dropped")

    problem = await database.read(query)
    if problem is None or problem.repair is None or not repair:
        return problem
    await scope.collect(database, log)
    return problem.done()
