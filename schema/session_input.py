"""Inputs that create, fork or change sessions."""

from __future__ import annotations

import strawberry
from strawberry import UNSET

from schema.enums import ForkContext
from schema.inputs import given, only_given
from schema.scalars import JSON
from storage import session
from storage.lifecycle import Fork, NewSession


@strawberry.input
class SessionConfigInput:
    """A config to write."""

    system_prompt: str | None = UNSET
    skills: list[str] | None = UNSET

    def to_domain(self) -> session.SessionConfig:
        """Convert the fields that were given."""
        return session.SessionConfig(**only_given({"system_prompt": self.system_prompt, "skills": self.skills}))


@strawberry.input
class CreateSessionInput:
    """A session to create."""

    id: strawberry.ID | None = strawberry.field(
        default=UNSET, description="Generated (UUID) when absent; DUPLICATE_ID when taken."
    )
    label: str | None = strawberry.field(default=UNSET, description="Default: Root for a root, Session for a child.")
    parent_id: strawberry.ID | None = UNSET
    source_session_id: strawberry.ID | None = UNSET
    workflow_mode: str | None = UNSET
    metadata: JSON | None = UNSET
    config: SessionConfigInput | None = UNSET
    idempotency_key: str | None = UNSET

    def to_domain(self) -> NewSession:
        """Convert to the domain's request."""
        config = given(self.config)
        return NewSession(
            id=given(self.id),
            label=given(self.label),
            parent_id=given(self.parent_id),
            source_session_id=given(self.source_session_id),
            workflow_mode=given(self.workflow_mode),
            metadata=given(self.metadata),
            config=None if config is None else config.to_domain(),
            key=given(self.idempotency_key),
        )


@strawberry.input
class ForkSessionInput:
    """A fork to create."""

    source_id: strawberry.ID
    at_seq: int | None = strawberry.field(
        default=UNSET, description="How many of the source's events the child shares: 0 to head. Default: head."
    )
    context: ForkContext = strawberry.field(
        default=ForkContext.INHERIT, description="NONE shares no event; with an atSeq other than 0 it is refused."
    )
    id: strawberry.ID | None = UNSET
    label: str | None = strawberry.field(default=UNSET, description="Default: the source's label.")
    parent_id: strawberry.ID | None = strawberry.field(default=UNSET, description="Default: the source.")
    as_root: bool = False
    metadata: JSON | None = UNSET
    config: SessionConfigInput | None = strawberry.field(
        default=UNSET, description="Laid over the source's config: absent keeps, given replaces."
    )
    prompt: str | None = strawberry.field(
        default=UNSET, description="Recorded in the child as its first own event, an assistant/message."
    )
    idempotency_key: str | None = UNSET

    def to_domain(self) -> Fork:
        """Convert to the domain's request."""
        config = given(self.config)
        return Fork(
            source_id=self.source_id,
            at_seq=given(self.at_seq),
            inherit=self.context is ForkContext.INHERIT,
            id=given(self.id),
            label=given(self.label),
            parent_id=given(self.parent_id),
            as_root=self.as_root,
            metadata=given(self.metadata),
            config=None if config is None else config.to_domain(),
            prompt=given(self.prompt),
            key=given(self.idempotency_key),
        )


@strawberry.input
class UpdateSessionInput:
    """Changes to a session."""

    id: strawberry.ID
    label: str | None = UNSET
    workflow_mode: str | None = UNSET
    metadata: JSON | None = UNSET
