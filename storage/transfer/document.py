"""A session as a document, out and in: its texts and cards, its whole log, or the messages of its surface."""

import asyncio
from dataclasses import replace

from storage import errors, text
from storage.session import SessionMeta
from storage.session_storage import check_label
from storage.store import Store
from storage.transfer.export import ExportFormat, export
from storage.transfer.formats import jsonl, openai, registry, session_yaml
from storage.transfer.importing import Imported, import_reading

NAME = "document"


_FORMATS = {
    ExportFormat.YAML: session_yaml.FORMAT,
    ExportFormat.JSONL: jsonl.FORMAT,
    ExportFormat.OPENAI: openai.FORMAT,
}


async def export_document(store: Store, space: str, id: str, format: ExportFormat) -> str | None:
    """The session as text, None when it is unknown. As OPENAI: the surface, a JSON list ready to send."""
    try:
        return "".join([piece async for piece in export(store, space, id, format)])
    except errors.NotFound:
        return None


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
    reading = await asyncio.to_thread(registry.read, NAME, text.clean(document), _FORMATS[format])
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


async def import_sessions(
    store: Store,
    space: str,
    document: str,
    format: ExportFormat,
    *,
    id: str | None = None,
    label: str | None = None,
    parent_id: str | None = None,
) -> tuple[Imported, list[SessionMeta]]:
    """Imports as `import_document`, and reads the sessions that it made, in the order of the document."""
    imported = await import_document(store, space, document, format, id=id, label=label, parent_id=parent_id)
    found = await store.sessions.get_many(space, list(imported.ids.values()))
    return imported, [meta for meta in found if meta is not None]
