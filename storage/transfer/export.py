"""Exporting a session or a tree of sessions as text that can be imported again. Writes while it reads."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

from storage import errors
from storage.events import Event
from storage.log import append, reading
from storage.session import SessionMeta, Slots, present
from storage.store import Store
from storage.topology import TopologyNode
from storage.transfer.formats import jsonl, session_yaml
from storage.transfer.formats.session_yaml import SessionFile


class ExportFormat(StrEnum):
    """What is written of each session: its texts and cards, its whole log, or the messages of its surface."""

    YAML = "yaml"
    JSONL = "jsonl"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class _Section:
    """A session to write, in JSONL from `first_seq` on.

    `names_source`: the header may name the source. `in_tree`: a tree is exported, even if this is its only session.
    """

    node: TopologyNode
    first_seq: int
    names_source: bool
    in_tree: bool


async def export(store: Store, space: str, id: str, format: ExportFormat, *, tree: bool = False) -> AsyncIterator[str]:
    """Yields the text of a session up to its present head, with `tree` also of its descendants.

    No piece holds more than one session. JSONL is a header line and the whole visible log; in a tree, a fork of another
    session in the text holds only its own events. YAML is a document, for a tree a stream of documents. OPENAI is the
    list of messages, for a tree a line for each session with its `messages`. Raises NotFound, also for a session that
    is deleted meanwhile.
    """
    write = _WRITERS[format]
    for section in _sections(await _nodes(store, space, id, tree), tree):
        async for piece in write(store, section):
            yield piece
        await _check_exists(store, section.node.session)


async def _nodes(store: Store, space: str, id: str, tree: bool) -> Sequence[TopologyNode]:
    if tree:
        forest = await store.tree.forest(space, id)
        nodes = forest.nodes if forest is not None else []
    else:
        node = await store.tree.node(space, id)
        nodes = [node] if node is not None else []
    if not nodes:
        raise errors.NotFound(f"no session {id!r} in space {space!r}")
    return nodes


async def _check_exists(store: Store, session: SessionMeta) -> None:
    found = await store.sessions.get(session.space, session.id)
    if found is None or found.log != session.log:
        raise errors.NotFound(f"session {session.id} was deleted while it was exported")


async def _yaml(store: Store, section: _Section) -> AsyncIterator[str]:
    session = section.node.session
    file = SessionFile(
        entries=session_yaml.entries_of(await store.messages.entries(session)),
        session_id=session.id,
        title=session.label,
        created_at=session.created_at,
        updated_at=session.updated_at,
        workflow_mode=session.workflow_mode,
    )
    document = await asyncio.to_thread(session_yaml.write, file)
    yield f"---\n{document}" if section.in_tree else document


async def _openai(store: Store, section: _Section) -> AsyncIterator[str]:
    session = section.node.session
    messages = (await store.messages.surface(session)).openai_text()
    await _check_exists(store, session)  # the surface may come from a cache
    if not section.in_tree:
        yield messages
        return
    header = {"sessionId": session.id, "label": session.label, "parentId": section.node.parent_id}
    yield orjson.dumps(header | {"messages": orjson.Fragment(messages)}).decode() + "\n"


async def _jsonl(store: Store, section: _Section) -> AsyncIterator[str]:
    session = section.node.session
    slots = (await store.sessions.slots(session.space, [session.id])).get(session.id)
    yield jsonl.header_line(_header(section, slots)) + "\n"
    async for event in _events(store, session, section.first_seq):
        yield jsonl.event_line(event) + "\n"


_WRITERS: dict[ExportFormat, Callable[[Store, _Section], AsyncIterator[str]]] = {
    ExportFormat.YAML: _yaml,
    ExportFormat.JSONL: _jsonl,
    ExportFormat.OPENAI: _openai,
}


def _sections(nodes: Sequence[TopologyNode], tree: bool) -> list[_Section]:
    """Orders the sessions so that parents and sources precede the sessions that name them.

    There is no such order where a source was moved below its own fork; that fork is then written whole.
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
        names_source = bool(ready)
        if not names_source:
            ready = [next(node for node in waiting.values() if node.parent_id not in waiting)]
        for node in ready:
            del waiting[node.id]
            source = by_id.get(node.document.source_session_id or "") if names_source else None
            shared = node.session.own_start if source is not None and _shares(node, source) else 0
            sections.append(_Section(node, shared, names_source, in_tree=tree))
    return sections


def _shares(fork: TopologyNode, source: TopologyNode) -> bool:
    """Whether a fork's inherited events are those of this source, not of a deleted session of the same id."""
    session = fork.session
    return append.cut(source.session, session.own_start, session.log) == session.segments


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
        source_session_id=document.source_session_id if section.names_source or document.fork_seq else None,
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
            await _check_exists(store, session)
            raise errors.SapwoodError(
                f"the log of session {session.id} lacks the event {seq}: the store is damaged, run `sapwood check`"
            )
