"""An executor that reads plain attributes with compiled functions instead of one call per field.

A reader is a Python function generated for a type and a selection of its plain attributes. Where all selected fields
of a list's items are plain, one reader completes the whole list; a list of an interface or a union gets a reader for
each type in it. The plain attributes of a single object are read the same way, beside the fields that have resolvers.

On any surprise (null in a non-null position, an unexpected type, an awaitable) the stock executor starts over and
reports the exact error. So answers are always those of the stock executor; tests compare them on random queries.
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
"""Looking up a reader takes longer than completing a shorter list."""
MIN_FIELDS = 2
"""Merging the answers takes longer than reading fewer plain attributes of one object."""
CACHED = 512
DEFINITION = "strawberry-definition"
EXACT = {"String": "str", "ID": "str", "Boolean": "bool"}
"""The Python type of values that need no conversion."""
CONVERTED = {"DateTime": "int", "JSON": "str"}
"""The Python type that our own scalars convert. They might accept an awaitable or an exception."""

Reader = Callable[[Any], Any]
Signature = tuple[Any, ...]


class Surprise(Exception):
    """A value does not fit the reader."""


class Uncompilable(Exception):
    """A selection contains more than plain attributes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to execute an object's fields: `read` reads the plain attributes, `rest` are the keys of the other fields.

    Plans are cached by the ids of `nodes`. Holding the nodes keeps those ids from being reused.
    """

    nodes: tuple[Any, ...]
    read: Reader | None
    rest: tuple[str, ...]


class CompiledExecutor(StrawberryGraphQLCoreExecutionContext):
    """Strawberry's executor with compiled readers. The caches live on a subclass for each schema."""

    readers: ClassVar[dict[Signature, Reader]]
    origins: ClassVar[dict[str, dict[type, GraphQLObjectType]]]
    plans: ClassVar[dict[tuple[Any, ...], Plan]]

    def execute_fields_serially(
        self, parent_type: Any, source_value: Any, path: Any, grouped_field_set: Any, position_context: Any
    ) -> Any:
        """Execute a mutation's fields one after the other; a single field, the usual case, takes the direct way."""
        serially = super().execute_fields_serially if len(grouped_field_set) > 1 else self.execute_fields
        return serially(parent_type, source_value, path, grouped_field_set, position_context)

    def execute_fields(
        self, parent_type: Any, source_value: Any, path: Any, grouped_field_set: Any, position_context: Any
    ) -> Any:
        """Execute one object's fields: plain attributes with a reader, the others with the stock executor."""
        plan = self._plan(parent_type, grouped_field_set)
        if plan.read is not None:
            try:
                plain = plan.read(source_value)
            except Exception:
                pass  # the stock executor meets the same value below, and reports it
            else:
                if not plan.rest:
                    return plain
                others = {key: grouped_field_set[key] for key in plan.rest}
                rest = super().execute_fields(parent_type, source_value, path, others, position_context)
                return _merged(grouped_field_set, plain, rest, self.is_awaitable(rest))
        return super().execute_fields(parent_type, source_value, path, grouped_field_set, position_context)

    def _plan(self, kind: GraphQLObjectType, grouped: Any) -> Plan:
        nodes = tuple([group[0].node for group in grouped.values()])
        cache_key = (kind.name, *map(id, nodes))
        plan = self.plans.get(cache_key)
        if plan is None:
            plan = self._new_plan(kind, grouped, nodes)
            if len(self.plans) >= CACHED:
                self.plans.clear()
            self.plans[cache_key] = plan
        return plan

    def _new_plan(self, kind: GraphQLObjectType, grouped: Any, nodes: tuple[Any, ...]) -> Plan:
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
        """Complete a list with one reader per type, or with the stock executor."""
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
                except Exception:
                    pass  # the stock executor meets the same value below, and reports it
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
        """The type's name, then (response key, field name, signature of its selection) for each field."""
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


def compiled_executor() -> type[CompiledExecutor]:
    """An executor class with caches of its own, for one schema."""
    return type("SchemaExecutor", (CompiledExecutor,), {"readers": {}, "origins": {}, "plans": {}})


def _is_plain(kind: GraphQLObjectType, group: FieldDetailsList) -> bool:
    """Whether a field is `__typename`, or a plain attribute that holds no objects."""
    field = kind.fields.get(group[0].node.name.value)
    if field is None:
        return group[0].node.name.value == "__typename"
    definition = field.extensions.get(DEFINITION)
    basic = isinstance(definition, StrawberryField) and definition.is_basic_field
    return basic and isinstance(_bare(field.type), GraphQLScalarType | GraphQLEnumType)


def _merged(keys: Iterable[str], plain: dict[str, Any], rest: Any, is_awaitable: bool) -> Any:
    """All fields of an object, in the order of the query; a coroutine if `rest` is awaitable."""
    if is_awaitable:
        return _merged_later(keys, plain, rest)
    plain.update(rest)
    return {key: plain[key] for key in keys if key in plain}


async def _merged_later(keys: Iterable[str], plain: dict[str, Any], rest: Awaitable[dict[str, Any]]) -> Any:
    return _merged(keys, plain, await rest, False)


def _bare(kind: GraphQLOutputType) -> GraphQLOutputType:
    while isinstance(kind, GraphQLNonNull | GraphQLList):
        kind = kind.of_type
    return kind


class _Source:
    """The source code of a reader, and the values that its names refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"Surprise": Surprise}

    def name(self, value: Any) -> str:
        """Bind a value to a new name."""
        name = f"n{len(self.names)}"
        self.names[name] = value
        return name


def _compile(types: dict[str, Any], signature: Signature) -> Reader:
    type_name, fields = signature
    kind = types[type_name]
    source = _Source()
    answer = []
    for index, (key, name, below) in enumerate(fields):
        variable = f"v{index}"
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
    origin = source.name(kind.extensions[DEFINITION].origin)
    source.lines.insert(0, f"if type(item) is not {origin}: raise Surprise")
    body = "\n".join(f"    {line}" for line in [*source.lines, f"return {{{', '.join(answer)}}}"])
    text = f"def read(item):\n{body}"
    exec(text, source.names)  # contains only names of our own schema and quoted GraphQL names
    reader: Reader = source.names["read"]
    return reader


def _complete(
    source: _Source, variable: str, kind: GraphQLOutputType, below: Signature | None, types: dict[str, Any]
) -> None:
    """Append the lines that complete an attribute's value."""
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
        coerced = f"{source.name(kind.coerce_output_value)}({variable})"
        if (converted := CONVERTED.get(kind.name)) is not None:
            return f"{coerced} if isinstance({variable}, {converted}) else {source.name(_raise)}()"
        return coerced
    raise Uncompilable


def _raise() -> None:
    raise Surprise
