"""How complex a document may be, measured in one walk that visits each fragment once.

The walk comes before validation, whose rules take time that grows with what is bounded here. So it accepts invalid
documents: fields and fragments unknown to the schema are walked without types and left to validation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLEnumType,
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SchemaMetaFieldDef,
    SelectionSetNode,
    TypeMetaFieldDef,
)
from strawberry.types.graphql import OperationType

from schema.engine import cost
from schema.engine.cost import Amount, Cost

CODE = "QUERY_TOO_COMPLEX"
MAX_CHARACTERS = 100_000
"""Of a document. Long texts belong in variables."""
MAX_TOKENS = 2_000
MAX_COMMENTS = 1_000
MAX_DEPTH = 12
MAX_INTROSPECTION_DEPTH = 20
"""The introspection query that tools send is 15 deep."""
MAX_INTROSPECTION_NODES = 50_000
MAX_ALIASES = 30
MAX_ROOT_FIELDS = 30
MAX_DIRECTIVES = 50
MAX_DIRECTIVES_PER_NODE = 4
MAX_NESTING = 64
"""Of selections within selections and fragments, whether or not they deepen the answer."""
META = {"__schema": SchemaMetaFieldDef, "__type": TypeMetaFieldDef}
ALL: Mapping[str, int] = {
    "queryCharacters": MAX_CHARACTERS,
    "queryTokens": MAX_TOKENS,
    "queryDepth": MAX_DEPTH,
    "introspectionDepth": MAX_INTROSPECTION_DEPTH,
    "aliases": MAX_ALIASES,
    "rootFields": MAX_ROOT_FIELDS,
    "directives": MAX_DIRECTIVES,
}
"""The limits that clients can query."""

Composite = GraphQLObjectType | GraphQLInterfaceType


def too_complex(counted: str, value: int | str, limit: int) -> GraphQLError:
    """The error for a document beyond a limit: what was counted, the count and the limit."""
    return GraphQLError(
        f"{counted}: {value} is more than the limit of {limit}",
        extensions={"code": CODE, "counted": counted, "value": value, "limit": limit},
    )


@dataclass(slots=True)
class PlannedOperation:
    """An operation within the limits, and its cost."""

    type: OperationType
    cost: Cost


@dataclass(slots=True)
class Summary:
    """Counts of a selection set; a fragment counts as often as it is spread.

    `nodes` count once, `per_item` once for each item of the page that the field above returns.
    """

    fields: int = 0
    aliases: int = 0
    directives: int = 0
    depth: int = 0
    introspection_depth: int = 0
    introspection_nodes: int = 0
    nodes: Amount = 0
    per_item: Amount = 0

    def include(self, other: Summary) -> None:
        """Add a fragment's counts."""
        self.fields += other.fields
        self._include_below(other)
        self.depth = max(self.depth, other.depth)
        self.nodes = cost.add(self.nodes, other.nodes)
        self.per_item = cost.add(self.per_item, other.per_item)

    def _include_below(self, other: Summary) -> None:
        self.aliases += other.aliases
        self.directives += other.directives
        self.introspection_depth = max(self.introspection_depth, other.introspection_depth)
        self.introspection_nodes += other.introspection_nodes


class Rule:
    """The limits on documents of one schema."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._lists = {**cost.LISTS, **_introspection_lists(schema)}

    def check(self, document: DocumentNode) -> dict[str | None, PlannedOperation]:
        """A document's operations by name. Raises GraphQLError for the first one beyond a limit."""
        walk = Walk(self._schema, self._lists, document)
        found: dict[str | None, PlannedOperation] = {}
        for definition in document.definitions:
            if isinstance(definition, OperationDefinitionNode):
                found[definition.name.value if definition.name else None] = walk.operation(definition)
        return found


class Walk:
    """The walk through one document. `steps` counts the selections visited."""

    def __init__(self, schema: GraphQLSchema, lists: Mapping[str, int], document: DocumentNode) -> None:
        self._schema = schema
        self._lists = lists
        self._fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        self._summaries: dict[str, Summary | None] = {}
        self.steps = 0

    def operation(self, node: OperationDefinitionNode) -> PlannedOperation:
        """The operation and its cost. Raises GraphQLError if it is beyond a limit."""
        root = self._schema.get_root_type(node.operation)
        found = self._selections(node.selection_set, root, 1)
        lists = [node.directives, *(variable.directives for variable in node.variable_definitions or ())]
        found.directives += sum(map(_directives, lists))
        for counted, value, limit in (
            ("depth", found.depth, MAX_DEPTH),
            ("depth of introspection", found.introspection_depth, MAX_INTROSPECTION_DEPTH),
            ("nodes of introspection", found.introspection_nodes, MAX_INTROSPECTION_NODES),
            ("aliases", found.aliases, MAX_ALIASES),
            ("root fields", found.fields, MAX_ROOT_FIELDS),
            ("directives", found.directives, MAX_DIRECTIVES),
        ):
            if value > limit:
                raise too_complex(counted, min(value, cost.LARGEST), limit)
        defaults = {
            variable.variable.name.value: cost.literal_count(variable.default_value)
            for variable in node.variable_definitions or ()
            if variable.default_value is not None
        }
        return PlannedOperation(OperationType(node.operation.value), Cost(found.nodes, defaults))

    def _selections(self, selections: SelectionSetNode, parent: Composite | None, level: int) -> Summary:
        if level > MAX_NESTING:
            raise too_complex("nesting", level, MAX_NESTING)
        found = Summary()
        for node in selections.selections:
            self.steps += 1
            match node:
                case FieldNode():
                    found.directives += _directives(node.directives)
                    self._field(node, parent, level, found)
                case InlineFragmentNode():
                    found.directives += _directives(node.directives)
                    kind = self._type(node.type_condition.name.value) if node.type_condition else parent
                    found.include(self._selections(node.selection_set, kind, level + 1))
                case FragmentSpreadNode():
                    found.directives += _directives(node.directives)
                    if (fragment := self._fragment(node.name.value, level)) is not None:
                        found.include(fragment)
        return found

    def _fragment(self, name: str, level: int) -> Summary | None:
        """None for an unknown fragment and for one that contains itself; validation refuses both."""
        if name not in self._summaries and name in self._fragments:
            self._summaries[name] = None
            fragment = self._fragments[name]
            kind = self._type(fragment.type_condition.name.value)
            summary = self._selections(fragment.selection_set, kind, level + 1)
            summary.directives += _directives(fragment.directives)
            self._summaries[name] = summary
        return self._summaries.get(name)

    def _type(self, name: str) -> Composite | None:
        found = self._schema.get_type(name)
        return found if isinstance(found, Composite) else None

    def _field(self, node: FieldNode, parent: Composite | None, level: int, found: Summary) -> None:
        name = node.name.value
        meta = META.get(name) if parent is self._schema.query_type else None
        definition = meta or (parent.fields.get(name) if parent is not None else None)
        kind, is_list = _named(definition.type) if definition is not None else (None, False)
        below = Summary()
        if node.selection_set is not None:
            below = self._selections(node.selection_set, kind, level + 1)
        found.fields += 1
        found.aliases += node.alias is not None
        found._include_below(below)
        if meta is not None:
            found.depth = max(found.depth, 1)
            found.introspection_depth = max(found.introspection_depth, 1 + below.depth)
            found.introspection_nodes += below.nodes if isinstance(below.nodes, int) else cost.LARGEST
            return
        found.depth = max(found.depth, 1 + below.depth)
        if parent is not None:
            self._count(f"{parent.name}.{name}", node, is_list, kind is not None, below, found)

    def _count(self, name: str, node: FieldNode, is_list: bool, is_node: bool, below: Summary, found: Summary) -> None:
        """Add the nodes of the field `Type.field` to those of its selection set."""
        if not is_node:
            found.nodes = cost.add(found.nodes, cost.VALUES.get(name, 0))
            return
        each = cost.add(1, below.nodes)
        if name in cost.PAGE_ITEMS:
            found.per_item = cost.add(found.per_item, each)
            return
        paging = cost.PAGES.get(name)
        page: cost.Size | int = cost.UNKNOWN_LIST
        if paging is not None:
            page = cost.size(paging, {argument.name.value: argument.value for argument in node.arguments or ()})
        if not is_list:
            each = cost.add(each, below.per_item, page)
        times: cost.Size | int = 1
        if is_list:
            times = page if paging is not None else self._lists.get(name, cost.UNKNOWN_LIST)
        found.nodes = cost.add(found.nodes, each, times)


def _directives(nodes: Sequence[DirectiveNode] | None) -> int:
    """The number of directives on one node. Raises GraphQLError if it is too large."""
    count = len(nodes or ())
    if count > MAX_DIRECTIVES_PER_NODE:
        raise too_complex("directives at one place", count, MAX_DIRECTIVES_PER_NODE)
    return count


def _named(kind: GraphQLOutputType) -> tuple[Composite | None, bool]:
    """The object type or interface inside the wrappers (else None), and whether a list is among the wrappers."""
    is_list = False
    while isinstance(kind, GraphQLNonNull | GraphQLList):
        is_list = is_list or isinstance(kind, GraphQLList)
        kind = kind.of_type
    return (kind if isinstance(kind, Composite) else None), is_list


def _introspection_lists(schema: GraphQLSchema) -> dict[str, int]:
    """Lengths of introspection lists: of types and directives exactly, of their members on average."""
    types = list(schema.type_map.values())
    fields = [field for kind in types if isinstance(kind, Composite) for field in kind.fields.values()]
    inputs = [kind for kind in types if isinstance(kind, GraphQLInputObjectType)]
    enums = [kind for kind in types if isinstance(kind, GraphQLEnumType)]
    directives = schema.directives
    return {
        "__Schema.types": len(types),
        "__Schema.directives": len(directives),
        "__Type.fields": _average(len(fields), types),
        "__Type.inputFields": _average(sum(len(kind.fields) for kind in inputs), types),
        "__Type.enumValues": _average(sum(len(kind.values) for kind in enums), types),
        "__Type.interfaces": 1,
        "__Type.possibleTypes": 1,
        "__Field.args": _average(sum(len(field.args) for field in fields), fields),
        "__Directive.args": _average(sum(len(directive.args) for directive in directives), directives),
    }


def _average(count: int, of: Sequence[object]) -> int:
    return math.ceil(count / max(1, len(of)))
