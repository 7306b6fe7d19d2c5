"""Form definitions: the type, queries and mutation."""

from __future__ import annotations

import strawberry

from schema.context import Info
from schema.scalars import JSON, DateTime
from storage import cards


@strawberry.type
class FormDefinition:
    """What a frontend needs to draw a form."""

    form_id: strawberry.ID
    definition: JSON
    updated_at: DateTime

    @classmethod
    def from_domain(cls, form: cards.FormDefinition) -> FormDefinition:
        """Convert a form definition."""
        return cls(
            form_id=strawberry.ID(form.form_id),
            definition=JSON(form.definition),
            updated_at=DateTime(form.updated_at),
        )


@strawberry.type
class FormDefinitionPayload:
    """The result of a mutation of a form definition."""

    form_definition: FormDefinition


@strawberry.type
class FormQuery:
    """Queries for form definitions."""

    @strawberry.field
    async def form_definition(self, info: Info, form_id: strawberry.ID) -> FormDefinition | None:
        """One form definition; null when it is unknown."""
        found = await info.context.store.forms.get(info.context.space, [form_id])
        return FormDefinition.from_domain(found[form_id]) if form_id in found else None

    @strawberry.field
    async def form_definitions(self, info: Info) -> list[FormDefinition]:
        """All form definitions of the space."""
        return [FormDefinition.from_domain(form) for form in await info.context.store.forms.all(info.context.space)]


@strawberry.type
class FormMutation:
    """Mutations of form definitions."""

    @strawberry.mutation
    async def put_form_definition(self, info: Info, form_id: strawberry.ID, definition: JSON) -> FormDefinitionPayload:
        """Create or overwrite a form definition."""
        written = await info.context.store.forms.put(info.context.space, form_id, definition)
        return FormDefinitionPayload(form_definition=FormDefinition.from_domain(written))
