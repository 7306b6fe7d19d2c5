"""Export and import of sessions as documents."""

from __future__ import annotations

import strawberry
from strawberry import UNSET

from schema.context import Info
from schema.inputs import given
from schema.session import Session
from schema.stats import saturated
from storage.transfer import document as transfer
from storage.transfer.export import ExportFormat


@strawberry.type
class ImportPayload:
    """What an import created."""

    sessions: list[Session]
    event_count: int
    warnings: list[str]


@strawberry.type
class TransferQuery:
    """Queries that export."""

    @strawberry.field(
        description="null when unknown. YAML holds texts and cards, JSONL the whole log, "
        "OPENAI the surface as a list that is ready to send."
    )
    async def export_session(
        self, info: Info, id: strawberry.ID, format: ExportFormat = ExportFormat.YAML
    ) -> str | None:
        """A session as a document."""
        return await transfer.export_document(info.context.store, info.context.space, id, format)


@strawberry.type
class TransferMutation:
    """Mutations that import."""

    @strawberry.mutation(
        description="A new session: `id`, else the document's, else generated; DUPLICATE_ID when taken."
    )
    async def import_session(
        self,
        info: Info,
        document: str,
        format: ExportFormat = ExportFormat.YAML,
        id: strawberry.ID | None = UNSET,
        label: str | None = UNSET,
        parent_id: strawberry.ID | None = UNSET,
    ) -> ImportPayload:
        """Create the sessions of a document."""
        store, space = info.context.store, info.context.space
        imported, sessions = await transfer.import_sessions(
            store, space, document, format, id=given(id), label=given(label), parent_id=given(parent_id)
        )
        return ImportPayload(
            sessions=[Session.from_domain(meta) for meta in sessions],
            event_count=saturated(imported.events),
            warnings=imported.warnings,
        )
