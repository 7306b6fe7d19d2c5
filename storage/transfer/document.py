"""Exporting a session as one document and importing such documents, as the API does."""

import asyncio
from dataclasses import replace

from storage import errors, text
from storage.session import SessionMeta, check_label
from storage.store import Store
from storage.transfer.export import ExportFormat, export
from storage.transfer.formats import jsonl, openai, registry, session_yaml
from storage.transfer.importing import ImportResult, import_reading

NAME = "document"
"""What error messages call the document."""

_FORMATS = {
    ExportFormat.YAML: session_yaml.FORMAT,
    ExportFormat.JSONL: jsonl.FORMAT,
    ExportFormat.OPENAI: openai.FORMAT,
}


async def export_document(store: Store, space: str, id: str, format: ExportFormat) -> str | None:
    """The session as text; None if it is unknown. OPENAI is the surface as a JSON list that is ready to send."""
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
) -> ImportResult:
    """Creates all sessions of a document or none. `id` and `label`, for a single session, override the document's.

    Raises BadInput, naming location and rule, for a document that breaks the format; DuplicateId; NotFound for the
    parent.
    """
    label = None if label is None else check_label(label)
    reading = await asyncio.to_thread(registry.read_document, NAME, text.clean(document), _FORMATS[format])
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
) -> tuple[ImportResult, list[SessionMeta]]:
    """Imports like `import_document`, then reads the created sessions, in the order of the document."""
    result = await import_document(store, space, document, format, id=id, label=label, parent_id=parent_id)
    return result, await imported_sessions(store, space, result)


async def imported_sessions(store: Store, space: str, result: ImportResult) -> list[SessionMeta]:
    """The sessions of an import in the order of the document, as they are now, without any that were deleted since."""
    found = await store.sessions.get_many(space, list(result.ids.values()))
    return [meta for meta in found if meta is not None]
