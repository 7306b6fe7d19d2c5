"""The schema keeps the public contract, which clients are written against; it may add to it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    print_ast,
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


def breaks(contract: GraphQLSchema, built: GraphQLSchema) -> Iterator[str]:
    """What a client of the contract can't do with the schema as built, or would see otherwise."""
    for name, promised in contract.type_map.items():
        if name.startswith("__"):
            continue
        found = built.type_map.get(name)
        if type(found) is not type(promised):
            yield f"{name}: the contract has {type(promised).__name__}, we have {type(found).__name__}"
            continue
        match promised, found:
            case (GraphQLEnumType(), GraphQLEnumType()):
                yield from (f"{name}.{value}: missing" for value in promised.values.keys() - found.values.keys())
            case (GraphQLUnionType(), GraphQLUnionType()):
                kept = {member.name for member in found.types}
                yield from (f"{name}: {member.name} is missing" for member in promised.types if member.name not in kept)
            case (GraphQLInputObjectType(), GraphQLInputObjectType()):
                if promised.is_one_of != found.is_one_of:
                    yield f"{name}: oneOf differs"
                yield from _changed_inputs(name, promised.fields, found.fields)
            case (GraphQLObjectType() | GraphQLInterfaceType(), GraphQLObjectType() | GraphQLInterfaceType()):
                kept = {interface.name for interface in found.interfaces}
                yield from (f"{name}: not a {one.name}" for one in promised.interfaces if one.name not in kept)
                yield from _changed_fields(name, promised.fields, found.fields)


def _changed_fields(
    kind: str, promised: Mapping[str, GraphQLField], found: Mapping[str, GraphQLField]
) -> Iterator[str]:
    for name, field in promised.items():
        path = f"{kind}.{name}"
        if name not in found:
            yield f"{path}: missing"
            continue
        if str(field.type) != str(found[name].type):
            yield f"{path}: the contract has {field.type}, we have {found[name].type}"
        yield from _changed_inputs(path, field.args, found[name].args)


def _changed_inputs(
    path: str,
    promised: Mapping[str, GraphQLArgument | GraphQLInputField],
    found: Mapping[str, GraphQLArgument | GraphQLInputField],
) -> Iterator[str]:
    for name, given in promised.items():
        want = (str(given.type), _default(given))
        have = (str(found[name].type), _default(found[name])) if name in found else None
        if want != have:
            yield f"{path}({name}): the contract has {want}, we have {have}"
    for name in found.keys() - promised.keys():
        if isinstance(found[name].type, GraphQLNonNull) and not _default(found[name]):
            yield f"{path}({name}): added, but required"


def _default(given: GraphQLArgument | GraphQLInputField) -> str:
    """The default as written; empty without one."""
    node = given.ast_node
    return print_ast(node.default_value) if node is not None and node.default_value is not None else ""


def test_the_schema_keeps_all_of_the_contract(contract: GraphQLSchema, built: GraphQLSchema) -> None:
    assert not list(breaks(contract, built))


@pytest.mark.parametrize(
    ("promised", "changed"),
    [
        ("head: Int!", "head: Int"),
        ("head: Int!", "heads: Int!"),
        ("events: [EventInput!]!", "events: [EventInput!]! more: Int!"),
        ("first: Int! = 1000", "first: Int! = 100"),
        ("type UserMessage implements SessionEvent", "type UserMessage"),
        ("enum SessionStatus { ACTIVE ARCHIVED }", "enum SessionStatus { ACTIVE }"),
    ],
)
def test_a_broken_contract_is_noticed(contract: GraphQLSchema, promised: str, changed: str) -> None:
    text = CONTRACT.read_text()
    assert promised in text
    assert list(breaks(contract, build_schema(text.replace(promised, changed), assume_valid_sdl=True)))


def test_the_operations_have_the_names_of_the_contract(built: GraphQLSchema) -> None:
    roots = (built.query_type, built.mutation_type, built.subscription_type)
    assert [root.name for root in roots if root] == ["Query", "Mutation", "Subscription"]


def test_the_committed_sdl_is_up_to_date() -> None:
    assert COMMITTED.read_text() == build.build_schema().as_str() + "\n", "run `make sdl`"
