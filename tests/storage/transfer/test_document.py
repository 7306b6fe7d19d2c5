"""What the API tells of an imported document."""

from storage.store import Store
from storage.transfer.document import import_document, imported_sessions
from storage.transfer.export import ExportFormat
from tests.storage.spaces import SPACE
from tests.storage.transfer.imports import lines_of


async def test_imported_sessions_are_in_document_order_without_deleted_ones(store: Store) -> None:
    document = b"".join(lines_of(id, "one") for id in ("b", "a", "c")).decode()
    result = await import_document(store, SPACE, document, ExportFormat.JSONL)
    assert [meta.id for meta in await imported_sessions(store, SPACE, result)] == ["b", "a", "c"]
    await store.tree.delete(SPACE, "a")
    assert [meta.id for meta in await imported_sessions(store, SPACE, result)] == ["b", "c"]
