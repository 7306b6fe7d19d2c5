"""Execution of plain attributes: one compiled function per type and selection instead of a call per field.

For a list of objects whose selected fields are plain attributes, the whole list is completed by a Python function
made for that selection; where the list is of an interface or a union, by one for each type that is in it. On any
surprise (null where it must not be, another type, an awaitable) the stock executor does the list over and makes the
exact error. So it goes with the plain attributes of a single object, beside fields that have to be resolved.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from graphql import (
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLUnionType,
)
from graphql.execution.collect_fields import FieldDetailsList
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext
from strawberry.types.field import StrawberryField

MIN_ITEMS = 8
"""Shorter lists cost less than finding their function."""
MIN_FIELDS = 2
"""Fewer plain attributes of one object cost less than putting them together with the rest."""
CACHED = 512
DEFINITION = "strawberry-definition"
EXACT = {"String": "str", "ID": "str", "Boolean": "bool"}

Reader = Callable[[Any], Any]
Signature = tuple[Any, ...]


class Surprise(Exception):
    """A value is not what the selection's function was made for."""


class Uncompilable(Exception):
    """A selection holds more than plain attributes."""


SURPRISES = (Surprise, AttributeError, KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Plan:
    """How an object's fields are executed: `read` gives those of plain attributes, `rest` are the others' keys.

    `nodes` are held so that none of another document can come to have their identity.
    """

    nodes: tuple[Any, ...]
    read: Reader | None
    rest: tuple[str, ...]


class ListExecutor(StrawberryGraphQLCoreExecutionContext):
    """The stock executor, but for lists that can be compiled."""

    readers: ClassVar[dict[Signature, Reader]]
    origins: ClassVar[dict[str, dict[type, GraphQLObjectType]]]
    plans: ClassVar[dict[tuple[Any, ...], Plan]]

    def execute_fields_serially(
        self, parent_type: Any, source_value: Any, path: Any, grouped_field_set: Any, position_context: Any
    ) -> Any:
        """The fields of a mutation, one after the other; a single one, as nearly all have, without the machinery."""
        serially = super().execute_fields_serially if len(grouped_field_set) > 1 else self.execute_fields
        return serially(parent_type, source_value, path, grouped_field_set, position_context)

    def execute_fields(
        self, parent_type: Any, source_value: Any, path: Any, grouped_field_set: Any, position_context: Any
    ) -> Any:
        """The fields of one object: plain attributes by a compiled function, the others by the stock executor."""
        plan = self._plan(parent_type, grouped_field_set)
        if plan.read is not None:
            try:
                ready = plan.read(source_value)
            except SURPRISES:
                pass
            else:
                if not plan.rest:
                    return ready
                others = {key: grouped_field_set[key] for key in plan.rest}
                rest = super().execute_fields(parent_type, source_value, path, others, position_context)
                return _in_order(grouped_field_set, ready, rest, self.is_awaitable(rest))
        return super().execute_fields(parent_type, source_value, path, grouped_field_set, position_context)

    def _plan(self, kind: GraphQLObjectType, grouped: Any) -> Plan:
        nodes = tuple([group[0].node for group in grouped.values()])
        known = (kind.name, *map(id, nodes))
        plan = self.plans.get(known)
        if plan is None:
            plan = self._planned(kind, grouped, nodes)
            if len(self.plans) >= CACHED:
                self.plans.clear()
            self.plans[known] = plan
        return plan

    def _planned(self, kind: GraphQLObjectType, grouped: Any, nodes: tuple[Any, ...]) -> Plan:
        plain = [(key, group[0].node.name.value, None) for key, group in grouped.items() if _is_plain(kind, group)]
        if len(plain) < MIN_FIELDS:
            return Plan(nodes, None, ())
        keys = {key for key, *_ in plain}
        try:
            read = _compile(self.schema.type_map, (kind.name, tuple(plain)))
        except Uncompilable:
            return Plan(nodes, None, ())
        return Plan(nodes, read, tuple(key for key in grouped if key not in keys))

    def complete_iterable_value(
        self,
        item_type: GraphQLOutputType,
        field_details_list: FieldDetailsList,
        info: Any,
        path: Any,
        items: Iterable[Any],
        position_context: Any,
    ) -> Any:
        """The completed list."""
        if isinstance(items, list) and len(items) >= MIN_ITEMS:
            bare = item_type.of_type if isinstance(item_type, GraphQLNonNull) else item_type
            if isinstance(bare, GraphQLObjectType | GraphQLInterfaceType | GraphQLUnionType):
                try:
                    if isinstance(bare, GraphQLObjectType):
                        read = self._reader(bare, field_details_list)
                    else:
                        read = self._reader_by_type(bare, field_details_list, items)
                    if bare is item_type:
                        return [None if item is None else read(item) for item in items]
                    return list(map(read, items))
                except (Uncompilable, *SURPRISES):
                    pass
        return super().complete_iterable_value(item_type, field_details_list, info, path, items, position_context)

    def _reader_by_type(
        self, kind: GraphQLInterfaceType | GraphQLUnionType, details: FieldDetailsList, items: list[Any]
    ) -> Reader:
        possible = self.origins.get(kind.name)
        if possible is None:
            possible = {each.extensions[DEFINITION].origin: each for each in self.schema.get_possible_types(kind)}
            self.origins[kind.name] = possible
        present = set(map(type, items)) - {type(None)}
        readers = {origin: self._reader(possible[origin], details) for origin in present}
        return lambda item: readers[type(item)](item)

    def _reader(self, kind: GraphQLObjectType, details: FieldDetailsList) -> Reader:
        signature = self._signature(kind, details)
        reader = self.readers.get(signature)
        if reader is None:
            reader = _compile(self.schema.type_map, signature)
            if len(self.readers) >= CACHED:
                self.readers.clear()
            self.readers[signature] = reader
        return reader

    def _signature(self, kind: GraphQLObjectType, details: FieldDetailsList) -> Signature:
        """The type's name, then (answer's key, field, signature below) of each field."""
        grouped, deferred, _ = self.collect_subfields(kind, details)
        if deferred:
            raise Uncompilable
        fields = []
        for key, group in grouped.items():
            name = group[0].node.name.value
            below: Signature | None = None
            if name != "__typename":
                inner = _bare(kind.fields[name].type)
                if isinstance(inner, GraphQLObjectType):
                    below = self._signature(inner, group)
            fields.append((key, name, below))
        return (kind.name, tuple(fields))


def list_executor() -> type[ListExecutor]:
    """An executor class with a memory of its own, for one schema."""
    return type("SchemaListExecutor", (ListExecutor,), {"readers": {}, "origins": {}, "plans": {}})


def _is_plain(kind: GraphQLObjectType, group: FieldDetailsList) -> bool:
    """Whether a field is a plain attribute that holds no objects, or the type's name."""
    field = kind.fields.get(group[0].node.name.value)
    if field is None:
        return group[0].node.name.value == "__typename"
    definition = field.extensions.get(DEFINITION)
    basic = isinstance(definition, StrawberryField) and definition.is_basic_field
    return basic and isinstance(_bare(field.type), GraphQLScalarType | GraphQLEnumType)


def _in_order(keys: Iterable[str], ready: dict[str, Any], rest: Any, is_awaitable: bool) -> Any:
    """The answer with its fields in the order in which they were asked for."""
    if is_awaitable:
        return _in_order_later(keys, ready, rest)
    ready.update(rest)
    return {key: ready[key] for key in keys if key in ready}


async def _in_order_later(keys: Iterable[str], ready: dict[str, Any], rest: Awaitable[dict[str, Any]]) -> Any:
    return _in_order(keys, ready, await rest, False)


def _bare(kind: GraphQLOutputType) -> GraphQLOutputType:
    while isinstance(kind, GraphQLNonNull | GraphQLList):
        kind = kind.of_type
    return kind


class _Source:
    """The source of one reader, and the names that it uses."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"Surprise": Surprise}

    def name(self, value: Any) -> str:
        """A name for a value within the source."""
        name = f"n{len(self.names)}"
        self.names[name] = value
        return name


def _compile(types: dict[str, Any], signature: Signature) -> Reader:
    type_name, fields = signature
    kind = types[type_name]
    source = _Source()
    answer = []
    for place, (key, name, below) in enumerate(fields):
        variable = f"v{place}"
        answer.append(f"{key!r}: {variable}")
        if name == "__typename":
            source.lines.append(f"{variable} = {type_name!r}")
            continue
        field = kind.fields[name]
        definition = field.extensions.get(DEFINITION)
        if not isinstance(definition, StrawberryField) or not definition.is_basic_field:
            raise Uncompilable
        source.lines.append(f"{variable} = item.{definition.python_name}")
        _complete(source, variable, field.type, below, types)
    if kind.is_type_of is not None:
        origin = source.name(kind.extensions[DEFINITION].origin)
        source.lines.insert(0, f"if type(item) is not {origin}: raise Surprise")
    body = "\n".join(f"    {line}" for line in [*source.lines, f"return {{{', '.join(answer)}}}"])
    text = f"def read(item):\n{body}"
    exec(text, source.names)  # made of our own schema's names; keys are quoted GraphQL names
    reader: Reader = source.names["read"]
    return reader


def _complete(
    source: _Source, variable: str, kind: GraphQLOutputType, below: Signature | None, types: dict[str, Any]
) -> None:
    """Adds the lines that turn an attribute's value into the answer's."""
    required = isinstance(kind, GraphQLNonNull)
    inner = kind.of_type if isinstance(kind, GraphQLNonNull) else kind
    indent = ""
    if not required:
        source.lines.append(f"if {variable} is not None:")
        indent = "    "
    if isinstance(inner, GraphQLList):
        if not isinstance(inner.of_type, GraphQLNonNull):
            raise Uncompilable
        source.lines.append(f"{indent}if type({variable}) is not list: raise Surprise")
        item = _expression(source, "x", inner.of_type.of_type, below, types)
        source.lines.append(f"{indent}{variable} = [{item} for x in {variable}]")
    else:
        source.lines.append(f"{indent}{variable} = {_expression(source, variable, inner, below, types)}")


def _expression(
    source: _Source, variable: str, kind: GraphQLOutputType, below: Signature | None, types: dict[str, Any]
) -> str:
    if isinstance(kind, GraphQLObjectType) and below is not None:
        return f"{source.name(_compile(types, below))}({variable})"
    if isinstance(kind, GraphQLEnumType):
        members = {value.value: name for name, value in kind.values.items()}
        return f"{source.name(members)}[{variable}.value]"
    if isinstance(kind, GraphQLScalarType):
        if (exact := EXACT.get(kind.name)) is not None:
            return f"{variable} if type({variable}) is {exact} else {source.name(_raise)}()"
        if kind.name == "JSON" or kind.name == "DateTime":
            return f"{source.name(kind.serialize)}({variable})"
        return f"{source.name(kind.coerce_output_value)}({variable})"
    raise Uncompilable


def _raise() -> None:
    raise Surprise
