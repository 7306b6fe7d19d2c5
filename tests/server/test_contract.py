"""Our schema matches the public contract, against which clients and black-box tests are written."""

from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    Undefined,
    build_schema,
)

from schema import build
from tests import paths

CONTRACT = paths.CONTRACT_SDL
COMMITTED = Path(build.__file__).with_name("schema.graphql")


@pytest.fixture(scope="module")
def contract() -> GraphQLSchema:
    """The contract."""
    return build_schema(CONTRACT.read_text())


@pytest.fixture(scope="module")
def built() -> GraphQLSchema:
    """Our schema, parsed from its SDL as clients get it."""
    return build_schema(build.build_schema().as_str())


def shapes(schema: GraphQLSchema) -> dict[str, dict[str, Any]]:
    """Each type's kind and parts, with everything that a client can observe."""
    named = {name: kind for name, kind in schema.type_map.items() if not name.startswith("__")}
    return {name: shape(kind) for name, kind in named.items()}


def shape(kind: GraphQLNamedType) -> dict[str, Any]:
    match kind:
        case GraphQLObjectType() | GraphQLInterfaceType():
            fields = {name: _field(field) for name, field in kind.fields.items()}
            described = "interface" if isinstance(kind, GraphQLInterfaceType) else "type"
            return {"": (described, sorted(interface.name for interface in kind.interfaces)), **fields}
        case GraphQLInputObjectType():
            given = {name: (str(field.type), _default(field)) for name, field in kind.fields.items()}
            return {"": ("input", kind.is_one_of), **given}
        case GraphQLEnumType():
            return {"": ("enum", sorted(kind.values))}
        case GraphQLUnionType():
            return {"": ("union", sorted(member.name for member in kind.types))}
        case _:
            assert isinstance(kind, GraphQLScalarType)
            return {"": ("scalar", None)}


def _field(field: Any) -> tuple[str, dict[str, tuple[str, Any]]]:
    return str(field.type), {name: (str(given.type), _default(given)) for name, given in field.args.items()}


def _default(given: Any) -> Any:
    return "no default" if given.default_value is Undefined else ("default", given.default_value)


def test_each_type_matches_the_contract(contract: GraphQLSchema, built: GraphQLSchema) -> None:
    promised, found = shapes(contract), shapes(built)
    wrong = []
    for name, parts in promised.items():
        for part in parts.keys() | found.get(name, {}).keys():
            want, have = parts.get(part), found.get(name, {}).get(part)
            if want != have:
                wrong.append(f"{name}.{part}: the contract has {want}, we have {have}")
    assert not wrong, "\n".join(wrong)


def test_there_are_no_other_types(contract: GraphQLSchema, built: GraphQLSchema) -> None:
    assert shapes(built).keys() - shapes(contract).keys() == set()


def test_the_operations_have_the_names_of_the_contract(built: GraphQLSchema) -> None:
    roots = (built.query_type, built.mutation_type, built.subscription_type)
    assert [root.name for root in roots if root] == ["Query", "Mutation", "Subscription"]


def test_the_committed_sdl_is_up_to_date() -> None:
    assert COMMITTED.read_text() == build.build_schema().as_str() + "\n", "run `make sdl`"
