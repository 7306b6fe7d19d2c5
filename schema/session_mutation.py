"""The mutations that create, change and delete sessions."""

from __future__ import annotations

import strawberry

from schema.context import Info
from schema.inputs import only_given
from schema.session import Session
from schema.session_input import CreateSessionInput, ForkSessionInput, SessionConfigInput, UpdateSessionInput
from storage import errors
from storage.session import SessionMeta, SessionStatus


@strawberry.type
class SessionPayload:
    """The session after a mutation."""

    session: Session

    @classmethod
    def from_domain(cls, meta: SessionMeta) -> SessionPayload:
        """Convert the session that a mutation returns."""
        return cls(session=Session.from_domain(meta))


@strawberry.type
class CreateSessionResult:
    """What became of one input."""

    session: Session | None = None
    code: str | None = None
    message: str | None = None

    @classmethod
    def from_domain(cls, result: SessionMeta | errors.SapwoodError) -> CreateSessionResult:
        """Convert the created session, or the reason that it was refused."""
        if isinstance(result, errors.SapwoodError):
            return cls(code=result.code, message=result.message)
        return cls(session=Session.from_domain(result))


@strawberry.type(description="The results in the order of the inputs: the session, or `code` and `message`.")
class CreateSessionsPayload:
    """What became of many inputs, in their order."""

    results: list[CreateSessionResult]


@strawberry.type
class DeleteSessionPayload:
    """The ids of the deleted sessions."""

    deleted_ids: list[strawberry.ID]


@strawberry.type
class SessionMutation:
    """Mutations of sessions."""

    @strawberry.mutation
    async def create_session(self, info: Info, input: CreateSessionInput) -> SessionPayload:
        """Create an empty session."""
        return SessionPayload.from_domain(await info.context.store.tree.create(info.context.space, input.to_domain()))

    @strawberry.mutation(
        description="At most 1,000, created in the order given: one may be the parent of later ones. Each on its own; "
        "a refused one has its code."
    )
    async def create_sessions(self, info: Info, inputs: list[CreateSessionInput]) -> CreateSessionsPayload:
        """Create many empty sessions."""
        wanted = [item.to_domain() for item in inputs]
        results = await info.context.store.tree.create_many(info.context.space, wanted)
        return CreateSessionsPayload(results=[CreateSessionResult.from_domain(result) for result in results])

    @strawberry.mutation
    async def fork_session(self, info: Info, input: ForkSessionInput) -> SessionPayload:
        """Create a session that shares events of another."""
        return SessionPayload.from_domain(await info.context.store.tree.fork(info.context.space, input.to_domain()))

    @strawberry.mutation(description="What is absent stays; null clears.")
    async def update_session(self, info: Info, input: UpdateSessionInput) -> SessionPayload:
        """Change label, workflow mode or metadata."""
        changes = only_given({"label": input.label, "workflow_mode": input.workflow_mode, "metadata": input.metadata})
        return SessionPayload.from_domain(
            await info.context.store.sessions.update(info.context.space, input.id, changes)
        )

    @strawberry.mutation
    async def rename_session(self, info: Info, id: strawberry.ID, label: str) -> SessionPayload:
        """Change the label."""
        return SessionPayload.from_domain(
            await info.context.store.sessions.update(info.context.space, id, {"label": label})
        )

    @strawberry.mutation
    async def archive_session(self, info: Info, id: strawberry.ID) -> SessionPayload:
        """Make the session read-only."""
        return await _set_status(info, id, SessionStatus.ARCHIVED)

    @strawberry.mutation
    async def restore_session(self, info: Info, id: strawberry.ID) -> SessionPayload:
        """Make an archived session writable."""
        return await _set_status(info, id, SessionStatus.ACTIVE)

    @strawberry.mutation(description="HAS_CHILDREN unless cascade. Forks keep the events that they share.")
    async def delete_session(self, info: Info, id: strawberry.ID, cascade: bool = False) -> DeleteSessionPayload:
        """Delete a session, with `cascade` its subtree too."""
        deleted = await info.context.store.tree.delete(info.context.space, id, cascade)
        return DeleteSessionPayload(deleted_ids=[strawberry.ID(gone) for gone in deleted])

    @strawberry.mutation(description="Overwrites the config whole.")
    async def put_config(self, info: Info, session_id: strawberry.ID, config: SessionConfigInput) -> SessionPayload:
        """Overwrite the config."""
        return SessionPayload.from_domain(
            await info.context.store.tree.put_config(info.context.space, session_id, config.to_domain())
        )


async def _set_status(info: Info, id: str, status: SessionStatus) -> SessionPayload:
    return SessionPayload.from_domain(await info.context.store.sessions.set_status(info.context.space, id, status))
