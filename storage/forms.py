"""Form definitions: what a frontend needs to draw the forms that cards refer to."""

from collections.abc import Collection

from storage import text
from storage.cards.definition import FormDefinition
from storage.database import Queries, Transaction
from storage.events import JsonText
from storage.scope import Scope
from storage.session import check_document


class Forms:
    """The form definitions of a space."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def get(self, space: str, ids: Collection[str]) -> dict[str, FormDefinition]:
        """The existing definitions among these, by form id as given."""
        return await self._scope.read(lambda queries: read_forms(queries, space, ids))

    async def all(self, space: str) -> list[FormDefinition]:
        """All definitions of the space, ordered by form id."""
        return await self._scope.read(lambda queries: queries.forms(space, None))

    async def put(self, space: str, form_id: str, definition: JsonText) -> FormDefinition:
        """Creates or overwrites a definition of up to 1 MiB. Raises BadInput for a bad id, PayloadTooLarge."""
        form = FormDefinition(
            space=space,
            form_id=text.identifier(form_id, "formId"),
            definition=check_document(definition, "definition") or "",
        )

        async def work(tx: Transaction) -> FormDefinition:
            return await tx.put_form(form)

        return await self._scope.transact(work, queue=[f"form {space}/{form_id}"])


async def read_forms(queries: Queries, space: str, ids: Collection[str]) -> dict[str, FormDefinition]:
    """The form definitions of these ids, by id as given; unknown ids are left out."""
    stored = {id: text.clean(id) for id in ids}
    by_id = {form.form_id: form for form in await queries.forms(space, set(stored.values()))}
    return {id: by_id[clean] for id, clean in stored.items() if clean in by_id}
