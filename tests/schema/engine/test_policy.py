"""Every root field of the contract has a role, and an operation needs the highest role of its fields."""

import pytest
from graphql import GraphQLObjectType, GraphQLSchema, build_schema, parse

from schema import build
from schema.context import Context
from schema.engine import policy
from storage.access_key import AccessRole
from storage.store import Store
from tests import paths

CONTRACT = build_schema(paths.CONTRACT_SDL.read_text())
INTROSPECTION = {"__schema", "__type", "__typename"}
VIEWER, AGENT, ORCHESTRATOR, ADMIN = AccessRole


def root_fields(schema: GraphQLSchema) -> set[tuple[str, str]]:
    """(kind of operation, field) of every root field."""
    roots: dict[str, GraphQLObjectType | None] = {
        "query": schema.query_type,
        "mutation": schema.mutation_type,
        "subscription": schema.subscription_type,
    }
    return {(operation, name) for operation, root in roots.items() if root is not None for name in root.fields}


BUILT = root_fields(build_schema(build.build_schema().as_str()))


def test_every_field_of_the_contract_has_a_role() -> None:
    assert len(root_fields(CONTRACT)) > 40
    assert root_fields(CONTRACT) - policy.ROLES.keys() == set()


def test_every_field_of_our_schema_has_a_role() -> None:
    assert BUILT - policy.ROLES.keys() == set()


def test_every_field_with_a_role_exists() -> None:
    given = {(operation, field) for operation, field in policy.ROLES if field not in INTROSPECTION}
    assert given - root_fields(CONTRACT) - BUILT == set()


def test_each_field_has_one_role() -> None:
    given = [
        (operation, field)
        for operation, fields_of in policy.ALLOWED.items()
        for fields in fields_of.values()
        for field in fields
    ]
    assert sorted(given) == sorted(policy.ROLES)


def test_reading_needs_no_more_than_viewer() -> None:
    for (operation, field), role in policy.ROLES.items():
        if field in INTROSPECTION:
            assert role is VIEWER
        else:
            assert (role is VIEWER) == (operation != "mutation"), field


@pytest.mark.parametrize(
    ("text", "name", "role"),
    [
        ("{ viewer { role } }", None, VIEWER),
        ("{ __schema { types { name } } t: __type(name: \"X\") { name } __typename }", None, VIEWER),
        ("mutation { __typename }", None, VIEWER),
        ("mutation { a: renameSession b: deleteSession c: moveNode }", None, ADMIN),
        ("mutation { ... { ...F } } fragment F on Mutation { ...G } fragment G on Mutation { x: moveNode }", None,
         ORCHESTRATOR),
        ("mutation { ...F } fragment F on Mutation { ...F appendEvents }", None, AGENT),
        ("mutation { deleteSession @skip(if: true) appendEvents }", None, ADMIN),
        ("query A { roots { id } } mutation B { deleteSession }", "A", VIEWER),
        ("query A { roots { id } } mutation B { deleteSession }", "B", ADMIN),
        ("query A { roots { id } } mutation B { deleteSession }", None, ADMIN),
        ("query A { roots { id } } mutation B { deleteSession }", "", ADMIN),
        ("mutation { somethingNew }", None, None),
        ("mutation { deleteSession ... on Mutation { somethingNew } }", None, None),
        ("query { deleteSession }", None, None),
        ("subscription { sessionEvents }", None, VIEWER),
        ("subscription { somethingNew }", None, None),
    ],
)  # fmt: skip
def test_an_operation_needs_the_highest_role_of_its_fields(
    text: str, name: str | None, role: AccessRole | None
) -> None:
    need = policy.need_of(parse(text), name)
    assert need.role is role
    for caller in AccessRole:
        refusal = policy.refusal(need, caller)
        if role is not None and caller.includes(role):
            assert refusal is None
        else:
            assert refusal is not None and need.field is not None
            assert refusal.extensions == {"code": "FORBIDDEN"}
            assert refusal.message.startswith(f"{need.field.name.value}: ")
            assert role is None or f"role {role}, the caller has {caller}" in refusal.message


async def test_a_refused_operation_does_not_run(store: Store) -> None:
    """Even if an allowed field comes first, or if another caller was allowed to run the same text."""
    schema = build.build_schema()
    text = 'mutation { createSession(input: {id: "x"}) { session { id } } deleteSession(id: "x") { deletedIds } }'
    for role in (VIEWER, AGENT, ORCHESTRATOR, ADMIN, AGENT):
        answer = await schema.execute(text, context_value=Context(store, "space", role))
        if role is ADMIN:
            assert answer.errors is None
        else:
            assert answer.data is None and answer.errors is not None
            assert [error.extensions for error in answer.errors] == [{"code": "FORBIDDEN"}]
    assert await store.sessions.get("space", "x") is None
    read = "query One { roots { id } } mutation Two { deleteSession(id: \"x\") { deletedIds } }"  # fmt: skip
    for name, fine in (("One", True), ("Two", False), ("One", True)):
        answer = await schema.execute(read, context_value=Context(store, "space", VIEWER), operation_name=name)
        assert (answer.errors is None) is fine
