"""Parsed and validated documents, remembered by their text.

Strawberry's own caches look a document up by hashing its whole tree; by text it is one look-up for both steps.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from graphql import DocumentNode, GraphQLError, GraphQLSyntaxError, OperationDefinitionNode, parse, validate
from strawberry.extensions import SchemaExtension
from strawberry.types.graphql import OperationType

from schema import policy

CACHED = 512
MAX_TEXT = 20_000
"""Characters; longer documents are not kept, since 512 of them would hold too much memory."""


@dataclass(slots=True)
class Known:
    """A parsed document and, once it was validated, its faults; the roles that its operations need, by their names."""

    document: DocumentNode
    operations: dict[str | None, OperationType]
    faults: list[GraphQLError] | None = None
    needs: dict[str | None, policy.Need] = field(default_factory=dict)

    @classmethod
    def of(cls, document: DocumentNode) -> "Known":
        """What is known of a document before it is validated."""
        found = [definition for definition in document.definitions if isinstance(definition, OperationDefinitionNode)]
        names: dict[str | None, OperationType] = {}
        for operation in found:
            names[operation.name.value if operation.name else None] = OperationType(operation.operation.value)
        return cls(document, names)

    def operation_type(self, name: str | None) -> OperationType:
        """The type of the operation of this name, or of the only one. Raises GraphQLError, as the spec wants it."""
        if name is None and len(self.operations) == 1:
            return next(iter(self.operations.values()))
        if name is None and self.operations:
            raise GraphQLError("operationName: must be given, since the document has several operations")
        if name is None:
            raise GraphQLError("query: the document has no operation")
        try:
            return self.operations[name]
        except KeyError:
            raise GraphQLError(f"operationName: the document has no operation {name!r}") from None


class Documents:
    """The documents that were asked for last."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()

    def of(self, text: str) -> Known:
        """The document of a text. Raises GraphQLSyntaxError."""
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
            return known
        known = Known.of(parse(text))
        if len(text) <= MAX_TEXT:
            self._known[text] = known
            if len(self._known) > CACHED:
                self._known.popitem(last=False)
        return known


class DocumentCache(SchemaExtension):
    """Parses and validates each document once, and lets pass what the caller's role allows."""

    def __init__(self, documents: Documents) -> None:
        super().__init__()
        self._documents = documents
        self._known: Known | None = None

    def on_parse(self) -> Iterator[None]:
        """Takes the place of parsing."""
        context = self.execution_context
        known: Known | None = getattr(context.context, "document", None)
        if known is not None:
            self._known, context.graphql_document = known, known.document
        elif context.query:
            # A text that can't be parsed is left to Strawberry, which tells of it as of any other refusal.
            with contextlib.suppress(GraphQLSyntaxError):
                self._known = self._documents.of(context.query)
                context.graphql_document = self._known.document
        yield

    def _refusals(self, known: Known) -> list[GraphQLError]:
        """What the caller's role does not allow."""
        name = self.execution_context.operation_name
        if (need := known.needs.get(name)) is None:
            need = known.needs[name] = policy.need_of(known.document, name)
        refusal = policy.refusal(need, self.execution_context.context.role)
        return [] if refusal is None else [refusal]

    def on_validate(self) -> Iterator[None]:
        """Takes the place of validation, graphql-core's rules alone: they name the place of a bad oneOf input."""
        context, known = self.execution_context, self._known
        if known is None and context.graphql_document is not None:
            known = Known.of(context.graphql_document)
        if known is not None:
            if known.faults is None:
                schema = cast(Any, context.schema)._schema
                known.faults = validate(schema, known.document, context.validation_rules)
            context.pre_execution_errors = known.faults or self._refusals(known)
        yield
