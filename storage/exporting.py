"""Exporting sessions as lines of Sapwood's own files, so that importing them gives the same sessions again."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from storage import errors, log, reading
from storage.events import Event
from storage.formats import jsonl
from storage.session import SessionMeta, Slots, present
from storage.store import Store
from storage.topology import TopologyNode


@dataclass(frozen=True, slots=True)
class _Section:
    """A session to write, from `first_seq` on. `sourced` says that the header names the source."""

    node: TopologyNode
    first_seq: int
    sourced: bool


async def export_lines(store: Store, space: str, id: str, *, tree: bool = False) -> AsyncIterator[str]:
    """The lines, without line feeds, of a session's whole visible log up to its head now, after its header.

    With `tree` of the session and all its descendants, where a fork of another session in the file holds its events
    from the fork on. The log is read in pages. Raises NotFound, also for what is deleted on the way.
    """
    if tree:
        forest = await store.tree.forest(space, id)
        nodes = forest.nodes if forest is not None else []
    else:
        node = await store.tree.node(space, id)
        nodes = [node] if node is not None else []
    if not nodes:
        raise errors.NotFound(f"no session {id!r} in space {space!r}")
    for section in _sections(nodes):
        session = section.node.session
        slots = (await store.sessions.slots(space, [session.id])).get(session.id)
        yield jsonl.header_line(_header(section, slots))
        async for event in _events(store, session, section.first_seq):
            yield jsonl.event_line(event)


def _sections(nodes: Sequence[TopologyNode]) -> list[_Section]:
    """The sessions in such an order that parents and sources come before what names them.

    Where a move has put a source below its own fork there is no such order: that fork is written whole.
    """
    by_id = {node.id: node for node in nodes}
    waiting = dict(by_id)
    sections: list[_Section] = []
    while waiting:
        ready = [
            node
            for node in waiting.values()
            if node.parent_id not in waiting and node.document.source_session_id not in waiting
        ]
        sourced = bool(ready)
        if not sourced:
            ready = [next(node for node in waiting.values() if node.parent_id not in waiting)]
        for node in ready:
            del waiting[node.id]
            source = by_id.get(node.document.source_session_id or "") if sourced else None
            shared = node.session.own_start if source is not None and _shares(node, source) else 0
            sections.append(_Section(node, shared, sourced))
    return sections


def _shares(fork: TopologyNode, source: TopologyNode) -> bool:
    """Whether a fork's inherited events are those of this source, and not of an earlier one of the same id."""
    session = fork.session
    return log.cut(source.session, session.own_start, session.log) == session.segments


def _header(section: _Section, slots: Slots | None) -> jsonl.Header:
    document, session = section.node.document, section.node.session
    memory = present(slots.memory) if slots else None
    insight = present(slots.insight) if slots else None
    prompt = present(slots.system_prompt) if slots else None
    config = document.config if document.config is not None and document.config.given() else None
    return jsonl.Header(
        id=session.id,
        label=session.label,
        status=session.status,
        workflow_mode=session.workflow_mode,
        metadata=session.metadata,
        parent_id=document.parent_id,
        source_session_id=document.source_session_id if section.sourced or document.fork_seq else None,
        fork_seq=document.fork_seq,
        first_seq=section.first_seq,
        created_at=session.created_at,
        config=config,
        system_prompt=prompt.content if prompt else None,
        memory=memory.content if memory else None,
        memory_at_seq=memory.at_seq if memory else None,
        insight=insight.content if insight else None,
        refs=list(document.refs) or None,
    )


async def _events(store: Store, session: SessionMeta, seq: int) -> AsyncIterator[Event]:
    while seq < session.head:
        page = await store.sessions.events(session, from_seq=seq, first=reading.MAX_PAGE_EVENTS)
        for event in page.events:
            if event.seq != seq:
                break
            yield event
            seq += 1
        if not page.events or page.events[-1].seq >= seq:
            if await store.sessions.get(session.space, session.id) is None:
                raise errors.NotFound(f"session {session.id} was deleted while it was exported")
            raise errors.SapwoodError(
                f"the log of session {session.id} lacks the event {seq}: the store is damaged, run `sapwood check`"
            )
