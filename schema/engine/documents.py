"""Documents: parsed, held against the limits, and validated, once for each text.

Strawberry's own caches look a document up by hashing its whole tree; by text it is one look-up for all steps.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    IntValueNode,
    NoSchemaIntrospectionCustomRule,
    Visitor,
    parse,
    specified_rules,
    validate,
    visit,
)
from graphql.language.parser import MAX_NESTING_DEPTH
from graphql.validation.rules import overlapping_fields_can_be_merged
from graphql.validation.validate import ValidationAbortedError

from schema.engine import limits, phases, policy
from schema.engine.limits import Planned

CACHED = 512
MAX_TEXT = 20_000
"""Characters; longer documents are not remembered, since 512 of them would hold too much memory."""
MAX_FAULTS = 20
"""Told of one document. Each costs time, and nobody reads more."""
MAX_COMPARISONS = 25_000
LONG_NUMBER = re.compile(r"\d{4300}")
"""Python converts no integer that is longer."""
TOO_MUCH = re.compile(r"Document contains more than \d+ (tokens|comments)\.")

# Fields of one name are compared in pairs, which nothing else bounds; graphql-core's own bound lets it take a second.
# A comparison counts twice.
overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = 2 * MAX_COMPARISONS


@dataclass(slots=True)
class Known:
    """A parsed document within the limits and, once it was validated, its faults; what its operations need."""

    document: DocumentNode
    operations: dict[str | None, Planned]
    faults: list[GraphQLError] | None = None
    _needs: dict[str | None, policy.Need] = field(default_factory=dict)

    def operation_name(self, name: str | None) -> str | None:
        """The name of the operation of this name, or of the only one; None for one without."""
        return next(iter(self.operations)) if name is None and len(self.operations) == 1 else name

    def operation(self, name: str | None) -> Planned:
        """The operation of this name, or the only one. Raises GraphQLError, as the spec wants it."""
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

    def need(self, name: str | None) -> policy.Need:
        """Which role the operation of this name needs."""
        found = self._needs.get(name)
        if found is None:
            found = self._needs[name] = policy.need_of(self.document, name)
        return found


class Documents:
    """The documents that were asked for last, and those that are kept."""

    def __init__(self, schema: GraphQLSchema, introspection: bool) -> None:
        self._schema = schema
        self._limits = limits.Rule(schema)
        self._rules = specified_rules if introspection else (*specified_rules, NoSchemaIntrospectionCustomRule)
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._kept: dict[str, Known] = {}

    def of(self, text: str) -> Known:
        """The document of a text. Raises GraphQLError for one that can't be read or is too complex."""
        known = self._kept.get(text) or self._known.get(text)
        if known is not None:
            if text in self._known:
                self._known.move_to_end(text)
            return known
        with phases.parsing():
            document = _parsed(text)
            known = Known(document, self._limits.check(document))
        if len(text) <= MAX_TEXT:
            self._known[text] = known
            if len(self._known) > CACHED:
                self._known.popitem(last=False)
        return known

    def keep(self, text: str) -> list[GraphQLError]:
        """Remembers a document for good, whatever its length. Its faults. Raises as `of` does."""
        known = self._kept[text] = self.of(text)
        return self.faults(known)

    def faults(self, known: Known) -> list[GraphQLError]:
        """What makes a document invalid, by graphql-core's rules alone: they name the place of a bad oneOf input."""
        if known.faults is None:
            with phases.validating():
                known.faults = validate(self._schema, known.document, self._rules, max_errors=MAX_FAULTS)
            if any(_gave_up(fault) for fault in known.faults):
                counted = "comparisons of fields with one name"
                known.faults = [limits.too_complex(counted, f"over {MAX_COMPARISONS}", MAX_COMPARISONS)]
        return known.faults


def _parsed(text: str) -> DocumentNode:
    if len(text) > limits.MAX_CHARACTERS:
        raise limits.too_complex("characters", len(text), limits.MAX_CHARACTERS)
    try:
        document = parse(text, max_lexical_tokens=limits.MAX_TOKENS, max_comments=limits.MAX_COMMENTS)
        if LONG_NUMBER.search(text) is not None:
            visit(document, _ShortIntegers())
        return document
    except GraphQLSyntaxError as error:
        if (found := TOO_MUCH.search(error.message)) is not None:
            limit = limits.MAX_TOKENS if found.group(1) == "tokens" else limits.MAX_COMMENTS
            raise limits.too_complex(found.group(1), f"over {limit}", limit) from None
        if "nested too deeply" in error.message:
            raise limits.too_complex("nesting", f"over {MAX_NESTING_DEPTH}", MAX_NESTING_DEPTH) from None
        raise


class _ShortIntegers(Visitor):
    """Raises GraphQLError for an integer literal that Python would not convert."""

    def enter_int_value(self, node: IntValueNode, *_: Any) -> None:
        if LONG_NUMBER.search(node.value) is not None:
            raise GraphQLError(f"an integer of {len(node.value)} digits is beyond any limit", node)


def _gave_up(fault: GraphQLError) -> bool:
    """Whether validation stopped for another reason than the number of faults."""
    return isinstance(fault, ValidationAbortedError) and "error limit" not in fault.message
