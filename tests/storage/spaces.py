"""What a space holds, to be compared with what another one holds."""

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from server.stores import scratch_store
from storage.check.problem import Problem
from storage.check.store import check_store
from storage.events import Event
from storage.session import SessionMeta, present
from storage.store import Store
from storage.topology import TopologyNode
from storage.transfer.export import ExportFormat, export
from storage.transfer.formats import registry
from storage.transfer.formats.registry import ForeignDocument
from storage.transfer.importing import ImportResult, Target, import_reading
from storage.transfer.importing.dry_run import DryRun
from storage.transfer.importing.stream import import_stream
from tests.storage.transfer.formats.logs import DATA

SPACE = "space"


async def load(
    store: Store, reading: ForeignDocument, space: str = SPACE, parent_id: str | None = None
) -> ImportResult:
    return await import_reading(store, space, reading, parent_id=parent_id)


async def exported(
    store: Store, id: str, space: str = SPACE, format: ExportFormat = ExportFormat.JSONL, *, tree: bool = True
) -> str:
    pieces = [piece async for piece in export(store, space, id, format, tree=tree)]
    assert format is not ExportFormat.JSONL or all(piece.find("\n") == len(piece) - 1 for piece in pieces)
    return "".join(pieces)


def read_lines(content: str) -> ForeignDocument:
    return registry.read_document("export", content)


async def bring(
    store: Store,
    name: str,
    content: bytes | None = None,
    *,
    format: str | None = None,
    space: str = SPACE,
    dry: bool = False,
) -> ImportResult:
    """Imports a document of tests/data, or one with this content, as the command does."""
    stream = io.BytesIO((DATA / name).read_bytes() if content is None else content)
    if dry:
        async with scratch_store() as scratch:
            return (await import_stream(DryRun(scratch, store, space), name, stream, format))[1]
    return (await import_stream(Target(store, space), name, stream, format))[1]


async def nodes_of(store: Store, space: str = SPACE) -> list[TopologyNode]:
    forest = await store.tree.forest(space)
    assert forest is not None
    return forest.nodes


async def log_of(store: Store, meta: SessionMeta) -> list[Event]:
    """All events of the visible log."""
    found: list[Event] = []
    while len(found) < meta.head:
        page = await store.sessions.events(meta, from_seq=len(found), first=1_000)
        assert page.events
        found += page.events
    return found


def plain(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Events without their ids, which name the log that they happen to be in."""
    return [event.model_dump() | {"seq": event.seq} for event in events]


async def contents(store: Store, space: str = SPACE) -> dict[str, dict[str, Any]]:
    """By session id all that export and import must keep."""
    nodes = await nodes_of(store, space)
    slots = await store.sessions.slots(space, [node.id for node in nodes])
    found = {}
    for node in nodes:
        meta, held, document = node.session, slots[node.id], node.document
        kept = {name: present(getattr(held, name)) for name in ("system_prompt", "insight", "memory")}
        found[node.id] = {
            "events": plain(await log_of(store, meta)),
            "totals": (meta.totals, meta.inherited, meta.open, meta.behind),
            "session": (meta.label, meta.status, meta.workflow_mode, meta.metadata),
            "node": (document.parent_id, document.source_session_id, document.fork_seq, document.refs),
            "config": document.config.given() if document.config else {},
            "slots": {name: slot.content for name, slot in kept.items() if slot is not None},
        }
    return found


async def problems(store: Store, *, repair: bool = False) -> list[Problem]:
    return [problem async for problem in check_store(store.database, repair=repair)]


async def assert_whole(store: Store) -> None:
    assert await problems(store) == []


async def own_types(store: Store, ids: Sequence[str], space: str = SPACE) -> Counter[str]:
    """Own events of these sessions by type: their totals without what they inherit."""
    found: Counter[str] = Counter()
    for id in ids:
        meta = await store.sessions.get(space, id)
        assert meta is not None
        found += Counter(meta.totals.types)
        found -= Counter(meta.inherited.types)
    return found
