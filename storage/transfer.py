"""A session as a document, out and in: its texts and cards, its whole log, or the messages of its surface."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from enum import StrEnum

from storage import errors, formats, text
from storage.exporting import export_lines
from storage.formats import jsonl, openai, session_yaml
from storage.formats.session_yaml import SessionFile
from storage.importing import Imported, import_reading
from storage.session import SessionMeta
from storage.sessions import check_label
from storage.store import Store

NAME = "document"


class ExportFormat(StrEnum):
    """How a document is written."""

    YAML = "YAML"
    JSONL = "JSONL"
    OPENAI = "OPENAI"


_FORMATS = {
    ExportFormat.YAML: session_yaml.FORMAT,
    ExportFormat.JSONL: jsonl.FORMAT,
    ExportFormat.OPENAI: openai.FORMAT,
}


async def export_document(store: Store, space: str, id: str, format: ExportFormat) -> str | None:
    """The session as text, None when it is unknown. As OPENAI: the surface, a JSON list ready to send."""
    meta = await store.sessions.get(space, id)
    if meta is None:
        return None
    match format:
        case ExportFormat.YAML:
            return await _yaml(store, meta)
        case ExportFormat.JSONL:
            return "".join([line + "\n" async for line in export_lines(store, space, id)])
        case ExportFormat.OPENAI:
            return (await store.views.surface(meta)).openai_text()


async def export_texts(
    store: Store, space: str, id: str, format: ExportFormat, *, tree: bool = False
) -> AsyncIterator[str]:
    """The session as a document in pieces; with `tree` it and all its descendants, each parent before its children.

    Of a tree, YAML is a stream of documents, and OPENAI a line for each session: an object with `sessionId`, `label`
    and `messages`. Raises NotFound, also for what is deleted on the way.
    """
    if format is ExportFormat.JSONL:
        async for line in export_lines(store, space, id, tree=tree):
            yield line + "\n"
        return
    forest = await store.tree.forest(space, id) if tree else None
    for node in forest.nodes if forest is not None else []:
        document = await export_document(store, space, node.id, format)
        if document is None:
            raise errors.NotFound(f"session {node.id} was deleted while it was exported")
        if format is ExportFormat.YAML:
            yield f"---\n{document}"
        else:
            facts = text.to_json({"sessionId": node.id, "label": node.session.label}, "session")
            yield f'{facts[:-1]},"messages":{document}}}\n'
    if forest is None:
        document = None if tree else await export_document(store, space, id, format)
        if document is None:
            raise errors.NotFound(f"no session {id!r} in space {space!r}")
        yield document if document.endswith("\n") else document + "\n"


async def _yaml(store: Store, meta: SessionMeta) -> str:
    file = SessionFile(
        entries=session_yaml.entries_of(await store.views.entries(meta)),
        session_id=meta.id,
        title=meta.label,
        created_at=meta.created_at,
        updated_at=meta.updated_at,
        workflow_mode=meta.workflow_mode,
    )
    return await asyncio.to_thread(session_yaml.write, file)


async def import_document(
    store: Store,
    space: str,
    document: str,
    format: ExportFormat,
    *,
    id: str | None = None,
    label: str | None = None,
    parent_id: str | None = None,
) -> Imported:
    """Makes the sessions of a document, all or none. `id` and `label` go before what the document says of its one.

    Raises BadInput, naming place and rule, for what is no such document; DuplicateId, NotFound (the parent).
    """
    label = None if label is None else check_label(label)
    reading = await asyncio.to_thread(formats.read, NAME, text.clean(document), _FORMATS[format])
    if not reading.sessions:
        raise errors.BadInput(f"{NAME}: holds no session")
    if id is not None or label is not None:
        if len(reading.sessions) != 1:
            raise errors.BadInput(
                f"{'id' if id is not None else 'label'}: the document holds {len(reading.sessions)} sessions, "
                "so leave it out"
            )
        only = reading.sessions[0]
        changed = replace(only, id=only.id if id is None else id, label=only.label if label is None else label)
        reading = replace(reading, sessions=[changed])
    return await import_reading(store, space, reading, parent_id=parent_id)
