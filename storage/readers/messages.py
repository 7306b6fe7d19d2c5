"""What models get of a session: surface, records, context and prompt, read from the store."""

from storage import errors
from storage.database import Queries
from storage.readers import surfaces
from storage.readers.surfaces import Surfaces
from storage.scope import Scope
from storage.session import SessionMeta, present
from storage.views import context, records
from storage.views.context import PromptContext
from storage.views.conversation import Conversation
from storage.views.conversation_entry import Entry
from storage.views.message import Message, Role
from storage.views.prompt import Prompt
from storage.views.surface import Surface


class MessageReader:
    """Views of whole logs. Each is of the log up to the head of the session that it is given."""

    def __init__(self, scope: Scope, kept: Surfaces) -> None:
        self._scope = scope
        self._surfaces = kept

    async def surface(self, meta: SessionMeta, at_seq: int | None = None) -> Surface:
        """The surface of the first `at_seq` events, default all; it must not be changed. Raises BadInput."""
        if at_seq is not None and not 0 <= at_seq <= meta.head:
            raise errors.BadInput(f"atSeq: must be 0 to the head {meta.head}, is {at_seq}")
        return await self._scope.read(
            lambda queries: self._surfaces.read(queries, meta, at_seq, keep=self._scope.committed)
        )

    async def records(
        self,
        meta: SessionMeta,
        *,
        role: Role | None = None,
        from_seq: int | None = None,
        since_memory: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Message]:
        """The message records, as `storage.views.records.records`; since what the memory reflects, if asked so."""
        return records.records(
            await self.surface(meta),
            role=role,
            from_seq=from_seq,
            since_memory=meta.memory_at_seq if since_memory else None,
            offset=offset,
            limit=limit,
        )

    async def context(self, space: str, id: str) -> PromptContext:
        """What the next send would give the model, as the session is now. Raises NotFound."""

        async def query(queries: Queries) -> PromptContext:
            # First the slots: an insight that is consumed in between is then seen pending, delivered, or both.
            slots = (await queries.slots(space, [id])).get(id)
            meta = await queries.session(space, id)
            if meta is None:
                raise errors.just_deleted(id)
            surface = await self._surfaces.read(queries, meta, keep=self._scope.committed)
            prompt = present(slots.system_prompt) if slots else None
            return context.context(surface, prompt.content if prompt else None, slots.insight if slots else None)

        return await self._scope.read(query)

    async def prompt(self, meta: SessionMeta, guide_prompt: str | None = None) -> list[Message]:
        """The text history for a model that takes no cards."""
        folded = Prompt()
        await self._scope.read(lambda queries: _fold(queries, meta, folded))
        return folded.messages(guide_prompt)

    async def entries(self, meta: SessionMeta) -> list[Entry]:
        """The whole conversation, system messages included."""
        folded = Conversation()
        await self._scope.read(lambda queries: _fold(queries, meta, folded))
        return folded.entries(include_system=True)


async def _fold(queries: Queries, meta: SessionMeta, onto: Conversation) -> None:
    async for part in surfaces.parts(queries, meta.segments, 0, meta.head):
        onto.add_all(part.events)
