"""Temporary."""

from storage import surfaces
from storage.database import Queries
from storage.session import SessionMeta
from storage.views.conversation import Conversation
from storage.views.conversation_entry import Entry, ToolEntry


async def last_shown(queries: Queries, meta: SessionMeta) -> Entry | None:
    c = Conversation()
    async for part in surfaces.parts(queries, meta.segments, 0, meta.head):
        c.add_all(part.events)
    return next((e for e in reversed(c.entries()) if not isinstance(e, ToolEntry)), None)
