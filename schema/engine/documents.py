"""Documents: parsed, checked against the limits and validated, once for each text.

Strawberry's own caches hash a document's whole tree to look it up; a look-up by text serves all steps at once.
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
    OverlappingFieldsCanBeMergedRule,
    ValidationContext,
    Visitor,
    parse,
    specified_rules,
    validate,
    visit,
)
from graphql.language.parser import MAX_NESTING_DEPTH
from graphql.validation.validate import ValidationAbortedError

from schema.engine import limits, phases, policy
from schema.engine.limits import PlannedOperation

CACHED = 512
MAX_TEXT = 20_000
"""Characters. Longer documents are not cached: 512 of them would hold too much memory."""
MAX_FAULTS = 20
"""Errors reported for one document. Each costs time, and nobody reads more."""
MAX_COMPARISONS = 25_000
LONG_NUMBER = re.compile(r"\d{4300}")
"""Python does not convert longer integers."""
TOO_MUCH = re.compile(r"Document contains more than \d+ (tokens|comments)\.")


class BoundedOverlappingFieldsRule(OverlappingFieldsCanBeMergedRule):
    """graphql-core's rule with a smaller budget: it compares fields of one name in pairs, which nothing else bounds.

    Its own budget lets a document take a second. A comparison costs two units.
    """

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self.rule_context.remaining_complexity_budget = 2 * MAX_COMPARISONS


RULES = tuple(
    BoundedOverlappingFieldsRule if rule is OverlappingFieldsCanBeMergedRule else rule for rule in specified_rules
)


@dataclass(slots=True)
class CheckedDocument:
    """A parsed document within the limits, with its operations by name. `faults` is None until it is validated."""

    document: DocumentNode
    operations: dict[str | None, PlannedOperation]
    faults: list[GraphQLError] | None = None
    _needs: dict[str | None, policy.Need] = field(default_factory=dict)

    def operation_name(self, name: str | None) -> str | None:
        """The given name, or that of the document's only operation; None for one without a name."""
        return next(iter(self.operations)) if name is None and len(self.operations) == 1 else name

    def operation(self, name: str | None) -> PlannedOperation:
        """The operation of this name, or the only one. Raises GraphQLError if there is no such operation."""
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
        """The role that the operation of this name needs."""
        found = self._needs.get(name)
        if found is None:
            found = self._needs[name] = policy.need_of(self.document, name)
        return found


class Documents:
    """A cache of checked documents: the most recently used ones, and those kept for good."""

    def __init__(self, schema: GraphQLSchema, introspection: bool) -> None:
        self._schema = schema
        self._limits = limits.Rule(schema)
        self._rules = RULES if introspection else (*RULES, NoSchemaIntrospectionCustomRule)
        self._recent: OrderedDict[str, CheckedDocument] = OrderedDict()
        self._permanent: dict[str, CheckedDocument] = {}

    def of(self, text: str) -> CheckedDocument:
        """The document of a text. Raises GraphQLError for one that can't be parsed or is too complex."""
        checked = self._permanent.get(text) or self._recent.get(text)
        if checked is not None:
            if text in self._recent:
                self._recent.move_to_end(text)
            return checked
        with phases.parsing():
            document = _parsed(text)
            checked = CheckedDocument(document, self._limits.check(document))
        if len(text) <= MAX_TEXT:
            self._recent[text] = checked
            if len(self._recent) > CACHED:
                self._recent.popitem(last=False)
        return checked

    def keep(self, text: str) -> list[GraphQLError]:
        """Cache a document for good, whatever its length, and return its faults. Raises as `of` does."""
        checked = self._permanent[text] = self.of(text)
        return self.faults(checked)

    def faults(self, checked: CheckedDocument) -> list[GraphQLError]:
        """The validation errors of a document, by graphql-core's rules alone.

        Strawberry's own rules are left out: graphql-core's name the path of a bad oneOf input.
        """
        if checked.faults is None:
            with phases.validating():
                checked.faults = validate(self._schema, checked.document, self._rules, max_errors=MAX_FAULTS)
            if any(_out_of_budget(fault) for fault in checked.faults):
                counted = "comparisons of fields with one name"
                checked.faults = [limits.too_complex(counted, f"over {MAX_COMPARISONS}", MAX_COMPARISONS)]
        return checked.faults


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
    """Raises GraphQLError for an integer literal that Python would refuse to convert."""

    def enter_int_value(self, node: IntValueNode, *_: Any) -> None:
        if LONG_NUMBER.search(node.value) is not None:
            raise GraphQLError(f"an integer of {len(node.value)} digits is beyond any limit", node)


def _out_of_budget(fault: GraphQLError) -> bool:
    """Whether validation was aborted for its cost, not for the number of faults."""
    return isinstance(fault, ValidationAbortedError) and "error limit" not in fault.message
