"""Random operations on the schema: most are valid, some nearly so, some are broken texts."""

import json
import random
from collections.abc import Mapping
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
)

INTS = (0, 1, 2, 3, 5, 10, 100, 200, 201, 1_000, -1, 2**31 - 1, -(2**31), 2**31, 2**63, 1.5, True, "7", None)
FLOATS = (0.0, 1.5, -1.0, 3, 1e300, "x", None)
TEXTS = (
    *("", "a", "hello", "x" * 500, "x" * 501, "ü€😀", "\u0000", "\ud800", 'quote " and \\', "a: b\n- c: [", "\n\n"),
    *("type: Form\ntitle: T", "sessionId: x\nentries: []", '{"type": "session"}', "null", "Did you mean"),
)
INSTANTS = ("2026-11-29T19:21:07.250Z", "2026-11-29T19:21:07", "9999-12-31T23:59:59.999-14:00", "now", "", 5)
ODD_IDS = ("", "no such id", "a/b", "x" * 128, "x" * 129, "ä", "nobody", 7)
TOKENS = (
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    "!",
    "$",
    "@skip",
    "...",
    "on",
    "null",
    '"',
    '"""',
    "#",
    "0",
    "\ufeff",
    "é",
)


class Operations:
    """Random operations on sessions with these ids."""

    def __init__(self, schema: GraphQLSchema, ids: list[str], seed: int) -> None:
        self._schema = schema
        self._ids = ids
        self._random = random.Random(seed)
        self._variables: dict[str, Any] = {}
        self._declared: list[str] = []
        self._aliases = 0

    def request(self) -> dict[str, Any]:
        """The body of a request."""
        self._variables, self._declared, self._aliases = {}, [], 0
        kind = self._random.choices(("query", "mutation", "subscription"), (65, 33, 2))[0]
        root = {
            "query": self._schema.query_type,
            "mutation": self._schema.mutation_type,
            "subscription": self._schema.subscription_type,
        }[kind]
        assert root is not None
        fields = self._selection(root, self._random.choice((1, 2, 3, 4, 5, 6)), top=True)
        declared = f"({', '.join(self._declared)})" if self._declared else ""
        text = f"{kind} Random{declared} {fields}"
        if self._chance(0.1):
            text = self._broken(text)
        body: dict[str, Any] = {"query": text, "variables": self._variables}
        if self._chance(0.03):
            body["operationName"] = self._random.choice(("Random", "Other", None))
        return body

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _broken(self, text: str) -> str:
        """A text with a fault somewhere."""
        start = self._random.randrange(len(text))
        end = start + self._random.randrange(1, 20)
        return self._random.choice(
            (
                text[:start] + text[start + 1 :],
                text[:start] + self._random.choice(TOKENS) + text[start:],
                text[:start] + text[end:],
                text[:end] + text[start:],
                text[:start],
                text.replace("id", "idd", 1),
                text.replace("{", "{ ...Missing ", 1),
                text + " fragment Unused on Query { __typename }",
            )
        )

    def _selection(self, kind: Any, depth: int, top: bool = False) -> str:
        if isinstance(kind, GraphQLUnionType):
            return self._branches(kind, depth)
        fields = list(kind.fields.items())
        if depth <= 0:
            fields = [(name, field) for name, field in fields if not _composite(field)]
        count = self._random.choice((1, 1, 1, 2)) if top else self._random.choice((1, 2, 3, 4))
        chosen = self._random.sample(fields, min(count, len(fields)))
        parts = [self._field(name, field, depth) for name, field in chosen]
        if isinstance(kind, GraphQLInterfaceType) and self._chance(0.5):
            parts.append(self._branches(kind, depth).strip("{} "))
        if not parts or self._chance(0.1):
            parts.append("__typename")
        if self._chance(0.02):
            parts.append("nonsense")
        return f"{{ {' '.join(parts)} }}"

    def _branches(self, kind: GraphQLUnionType | GraphQLInterfaceType, depth: int) -> str:
        possible = self._random.sample(self._schema.get_possible_types(kind), 2)
        return f"{{ {' '.join(f'... on {each.name} {self._selection(each, depth - 1)}' for each in possible)} }}"

    def _field(self, name: str, field: GraphQLField, depth: int) -> str:
        self._aliases += 1
        alias = f"a{self._aliases}: " if self._chance(0.2) else ""
        arguments = [self._argument(key, argument) for key, argument in field.args.items()]
        given = ", ".join(text for text in arguments if text is not None)
        given = f"({given})" if given else ""
        directive = f" @{self._random.choice(('skip', 'include'))}(if: true)" if self._chance(0.03) else ""
        below = ""
        if _composite(field):
            below = " " + self._selection(_named(field.type), depth - 1)
        return f"{alias}{name}{given}{directive}{below}"

    def _argument(self, name: str, argument: GraphQLArgument) -> str | None:
        if not self._chance(0.97 if isinstance(argument.type, GraphQLNonNull) else 0.35):
            return None
        value = self._value(argument.type)
        if self._chance(0.4):
            variable = f"v{len(self._declared)}"
            self._declared.append(f"${variable}: {argument.type}")
            if not self._chance(0.02):
                self._variables[variable] = value
            return f"{name}: ${variable}"
        return f"{name}: {self._literal(value, argument.type)}"

    def _value(self, kind: Any) -> Any:
        """A random value for a variable."""
        if isinstance(kind, GraphQLNonNull):
            return None if self._chance(0.02) else self._value(kind.of_type)
        if self._chance(0.05):
            return None
        if isinstance(kind, GraphQLList):
            return [self._value(kind.of_type) for _ in range(self._random.choice((0, 1, 1, 2, 3)))]
        if isinstance(kind, GraphQLEnumType):
            return "NONSENSE" if self._chance(0.05) else self._random.choice(list(kind.values))
        if isinstance(kind, GraphQLInputObjectType):
            return self._input(kind)
        match kind.name:
            case "ID":
                return self._random.choice(self._ids if self._chance(0.8) else ODD_IDS)
            case "Int":
                return self._random.choice(INTS[:6] if self._chance(0.6) else INTS)
            case "Float":
                return self._random.choice(FLOATS)
            case "Boolean":
                return self._random.choice((True, False, True, False, "x"))
            case "DateTime":
                return self._random.choice(INSTANTS)
            case "JSON":
                return self._json(3)
        return self._random.choice(TEXTS)

    def _input(self, kind: GraphQLInputObjectType) -> dict[str, Any]:
        fields: Mapping[str, GraphQLInputField] = kind.fields
        if kind.is_one_of and self._chance(0.95):
            name = self._random.choice(list(fields))
            return {name: self._value(GraphQLNonNull(fields[name].type))}
        return {
            name: self._value(field.type)
            for name, field in fields.items()
            if self._chance(0.97 if isinstance(field.type, GraphQLNonNull) else 0.3)
        }

    def _json(self, depth: int) -> Any:
        choice = self._random.randrange(8 if depth > 0 else 6)
        if choice == 6:
            return [self._json(depth - 1) for _ in range(self._random.randrange(4))]
        if choice == 7:
            return {self._random.choice(TEXTS): self._json(depth - 1) for _ in range(self._random.randrange(4))}
        return (None, True, 2**63, -1.5, self._random.choice(TEXTS), 0)[choice]

    def _literal(self, value: Any, kind: Any) -> str:
        """A value as a literal in a document."""
        bare = kind.of_type if isinstance(kind, GraphQLNonNull) else kind
        if isinstance(bare, GraphQLEnumType) and isinstance(value, str):
            return value
        if isinstance(value, list):
            inner = bare.of_type if isinstance(bare, GraphQLList) else bare
            return f"[{', '.join(self._literal(item, inner) for item in value)}]"
        if isinstance(value, dict):
            fields = bare.fields if isinstance(bare, GraphQLInputObjectType) else {}
            named = {name: field for name, field in value.items() if name.isidentifier() and name.isascii()}
            parts = (
                f"{name}: {self._literal(item, fields[name].type if name in fields else bare)}"
                for name, item in named.items()
            )
            return f"{{{', '.join(parts)}}}"
        return json.dumps(value)


def _named(kind: Any) -> Any:
    while isinstance(kind, GraphQLNonNull | GraphQLList):
        kind = kind.of_type
    return kind


def _composite(field: GraphQLField) -> bool:
    return isinstance(_named(field.type), GraphQLObjectType | GraphQLInterfaceType | GraphQLUnionType)
