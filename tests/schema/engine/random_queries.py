"""Hypothesis strategies for valid queries over a schema: aliases, fragments, directives, variables, nested lists."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_composite_type,
    is_required_argument,
)
from hypothesis import strategies as st

MAX_FIELDS = 24
Composite = GraphQLObjectType | GraphQLInterfaceType | GraphQLUnionType
Values = Mapping[str, Collection[Any]]


@dataclass(frozen=True)
class Query:
    """A document of one operation, and its variables."""

    text: str
    variables: dict[str, Any]


def queries(schema: GraphQLSchema, values: Values, left_out: Collection[str] = ()) -> st.SearchStrategy[Query]:
    """Queries of a schema. `values` are those of arguments by type name; `left_out` are fields as `Type.field`."""
    return st.composite(lambda draw: _Writer(draw, schema, values, left_out).query())()


class _Writer:
    """Writes one query. Fields with arguments have an alias of their own, so that no two fields conflict."""

    def __init__(self, draw: st.DrawFn, schema: GraphQLSchema, values: Values, left_out: Collection[str]) -> None:
        self._draw = draw
        self._schema = schema
        self._values = values
        self._left_out = left_out
        self._fields_left = MAX_FIELDS
        self._aliases = 0
        self._declared: list[str] = []
        self._variables: dict[str, Any] = {}
        self._fragments: dict[str, tuple[Composite, str]] = {}

    def query(self) -> Query:
        root = self._schema.query_type
        assert root is not None
        selection = self._selection(root, self._draw(st.integers(1, 6)))
        declared = f"({', '.join(self._declared)})" if self._declared else ""
        definitions = [
            f"fragment {name} on {kind.name} {{ {text} }}"
            for name, (kind, text) in self._fragments.items()
            if text is not _OPEN
        ]
        return Query("\n".join([f"query Q{declared} {{ {selection} }}", *definitions]), self._variables)

    def _chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def _selection(self, kind: Composite, depth: int) -> str:
        count = self._draw(st.integers(1, 5)) if self._fields_left > 0 else 0
        return " ".join(self._part(kind, depth) for _ in range(count)) or "__typename"

    def _part(self, kind: Composite, depth: int) -> str:
        if depth > 0 and self._chance(35 if isinstance(kind, GraphQLObjectType) else 60):
            return self._fragment(kind, depth)
        return self._field(kind, depth)

    def _fragment(self, kind: Composite, depth: int) -> str:
        """An inline fragment, or the spread of a named one."""
        if self._chance(10):
            return f"...{self._directive()} {{ {self._selection(kind, depth - 1)} }}"
        target = self._draw(st.sampled_from(self._overlapping(kind)))
        if self._chance(50):
            return f"... on {target.name}{self._directive()} {{ {self._selection(target, depth - 1)} }}"
        written = [name for name, (on, text) in self._fragments.items() if on is target and text is not _OPEN]
        if written and self._chance(50):
            return f"...{self._draw(st.sampled_from(written))}{self._directive()}"
        name = f"F{len(self._fragments)}"
        self._fragments[name] = (target, _OPEN)
        self._fragments[name] = (target, self._selection(target, depth - 1))
        return f"...{name}{self._directive()}"

    def _overlapping(self, kind: Composite) -> list[Composite]:
        """Types that a fragment within this one may be on."""
        if isinstance(kind, GraphQLObjectType):
            return [kind, *kind.interfaces]
        possible: list[Composite] = list(self._schema.get_possible_types(kind))
        return [kind, *possible, *possible]

    def _field(self, kind: Composite, depth: int) -> str:
        self._fields_left -= 1
        fields = {} if isinstance(kind, GraphQLUnionType) else kind.fields
        usable = [
            name
            for name, field in fields.items()
            if f"{kind.name}.{name}" not in self._left_out and (depth > 0 or not _is_composite(field))
        ]
        # Meeting objects more often than leaves makes for deep queries.
        objects = [name for name in usable if _is_composite(fields[name])]
        name = self._draw(st.sampled_from(objects if objects and self._chance(60) else [*usable, "__typename"]))
        if name == "__typename":
            return f"{self._alias(20)}__typename{self._directive()}"
        field = fields[name]
        arguments = self._arguments(field)
        shared = isinstance(kind, GraphQLInterfaceType) or (
            isinstance(kind, GraphQLObjectType)
            and all(name in interface.fields for interface in kind.interfaces)
            and not self._in_union(kind)
        )
        alias = self._alias(20 if shared and not arguments else 100)
        below = ""
        inner = get_named_type(field.type)
        if isinstance(inner, Composite):
            below = f" {{ {self._selection(inner, depth - 1)} }}"
        return f"{alias}{name}{arguments}{self._directive()}{below}"

    def _in_union(self, kind: GraphQLObjectType) -> bool:
        return any(
            isinstance(other, GraphQLUnionType) and kind in other.types for other in self._schema.type_map.values()
        )

    def _alias(self, percent: int) -> str:
        if not self._chance(percent):
            return ""
        self._aliases += 1
        return f"a{self._aliases}: "

    def _directive(self) -> str:
        if not self._chance(12):
            return ""
        name, value = self._draw(st.sampled_from(("skip", "include"))), self._draw(st.booleans())
        return f" @{name}(if: {self._variable('Boolean!', value) if self._chance(50) else str(value).lower()})"

    def _variable(self, declared: str, value: Any) -> str:
        name = f"v{len(self._declared)}"
        self._declared.append(f"${name}: {declared}")
        self._variables[name] = value
        return f"${name}"

    def _arguments(self, field: GraphQLField) -> str:
        texts = [self._argument(name, argument) for name, argument in field.args.items()]
        given = ", ".join(text for text in texts if text is not None)
        return f"({given})" if given else ""

    def _argument(self, name: str, argument: GraphQLArgument) -> str | None:
        if not is_required_argument(argument) and not self._chance(30):
            return None
        value = self._value(argument.type)
        if self._chance(40):
            return f"{name}: {self._variable(str(argument.type), value)}"
        return f"{name}: {_literal(value, argument.type)}"

    def _value(self, kind: Any) -> Any:
        if isinstance(kind, GraphQLNonNull):
            return self._value(kind.of_type)
        if isinstance(kind, GraphQLList):
            return [self._value(kind.of_type) for _ in range(self._draw(st.integers(0, 12)))]
        if isinstance(kind, GraphQLEnumType):
            return self._draw(st.sampled_from(list(kind.values)))
        return self._draw(st.sampled_from(list(self._values[kind.name])))


_OPEN = ""
"""Text of a fragment that is being written, and so must not be spread."""


def _is_composite(field: GraphQLField) -> bool:
    return is_composite_type(get_named_type(field.type))


def _literal(value: Any, kind: Any) -> str:
    if isinstance(kind, GraphQLNonNull):
        return _literal(value, kind.of_type)
    if isinstance(value, list):
        return f"[{', '.join(_literal(item, kind.of_type) for item in value)}]"
    if isinstance(kind, GraphQLEnumType):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
