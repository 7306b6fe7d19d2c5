"""Documents beyond the limits are refused after a bounded amount of work; documents within them run."""

import contextlib
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from graphql import (
    GraphQLError,
    GraphQLInterfaceType,
    GraphQLObjectType,
    Undefined,
    get_introspection_query,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    parse,
)

from schema.build import Schema, build_schema
from schema.engine import cost, limits
from schema.engine.documents import MAX_FAULTS
from storage.access_key import AccessRole
from tests.schema.engine import bombs


@pytest.fixture(scope="module")
def schema() -> Schema:
    return build_schema()


def core(schema: Schema) -> Any:
    """The graphql-core schema."""
    return schema._schema


def refusal(schema: Schema, text: str) -> GraphQLError:
    """The error for a document."""
    try:
        faults = schema.documents.faults(schema.documents.of(text))
    except GraphQLError as error:
        faults = [error]
    assert len(faults) == 1
    return faults[0]


@pytest.mark.parametrize("name", bombs.TOO_COMPLEX)
def test_a_document_beyond_a_limit_is_refused_with_what_it_exceeds(schema: Schema, name: str) -> None:
    text, counted = bombs.TOO_COMPLEX[name]
    error = refusal(schema, text)
    details = error.extensions or {}
    assert details["code"] == "QUERY_TOO_COMPLEX" and counted in details["counted"]
    assert error.message == f"{details['counted']}: {details['value']} is more than the limit of {details['limit']}"
    json.dumps(details)


@pytest.mark.parametrize("name", bombs.INVALID)
def test_an_invalid_bomb_is_refused_by_validation_with_few_errors(schema: Schema, name: str) -> None:
    faults = schema.documents.faults(schema.documents.of(bombs.INVALID[name]))
    assert 1 <= len(faults) <= MAX_FAULTS + 1


@pytest.mark.parametrize("text", [bombs.spreads(50), bombs.spreads(20, 30), bombs.deeper(25), bombs.cycle(22)])
def test_the_walk_visits_each_selection_once(schema: Schema, text: str) -> None:
    """No matter how often its fragment is spread."""
    document = parse(text)
    walk = limits.Walk(core(schema), {}, document)
    with contextlib.suppress(GraphQLError):
        walk.operation(document.definitions[0])  # type: ignore[arg-type]
    assert walk.steps > 20
    assert walk.steps <= text.count("...") + text.count("node") * 2 + text.count("{")


@pytest.mark.parametrize(
    "text",
    [
        get_introspection_query(descriptions=True, schema_description=True, input_value_deprecation=True),
        f"{{ roots {{ {'parent { ' * 10} id {'} ' * 10} }} }}",
        f"{{ {' '.join(f'a{index}: __typename' for index in range(30))} }}",
        f"{{ viewer {{ {'space @skip(if: true) ' * 50} }} }}",
        f"{{ viewer {{ {'space ' * 200} }} }}",
        f'{{ session(id: "{"x" * 90_000}") {{ id }} }}',
        "# a comment\n" * 1_000 + "{ viewer { space } }",
        bombs.spreads(4),
    ],
)
def test_a_document_within_the_limits_runs(schema: Schema, text: str) -> None:
    assert schema.documents.faults(schema.documents.of(text)) == []


def test_a_document_is_parsed_and_validated_once(schema: Schema) -> None:
    """Even if it is invalid. Its limits are checked once, too."""
    for text in ("{ viewer { space role } }", "{ viewer { nonsense } }"):
        first = schema.documents.of(text)
        faults = schema.documents.faults(first)
        again = schema.documents.of("".join(list(text)))
        assert again is first and schema.documents.faults(again) is faults


def requested(schema: Schema, text: str, variables: dict[str, Any] | None = None, name: str | None = None) -> int:
    """The cost of a valid operation."""
    known = schema.documents.of(text)
    assert schema.documents.faults(known) == []
    return known.operation(name).cost.of(variables)


TEN = "id label status turnCount head createdAt updatedAt workflowMode metadata __typename"
DIGEST = "id label status turnCount head lastEventAt updatedAt memory { content } insight { content }"


@pytest.mark.parametrize(
    ("text", "variables", "nodes"),
    [
        ("{ viewer { space } }", {}, 1),
        ("{ __typename }", {}, 0),
        (get_introspection_query(), {}, 0),
        (f"{{ listSessions {{ nodes {{ {TEN} }} }} }}", {}, 1 + 50),
        ("{ listSessions(first: 10) { edges { node { id } } pageInfo { endCursor } totalCount } }", {}, 2 + 10 * 2),
        ("query($n: Int!) { listSessions(first: $n) { nodes { id } } }", {"n": 7}, 8),
        ("query($n: Int! = 3) { listSessions(first: $n) { nodes { id } } }", {}, 4),
        ("query($n: Int! = 3) { listSessions(first: $n) { nodes { id } } }", {"n": 4}, 5),
        ("query($n: Int! = 3) { listSessions(first: $n) { nodes { id } } }", {"n": -4}, 1),
        ("query($n: Int! = 3) { listSessions(first: $n) { nodes { id } } }", {"n": 10**400}, 201),
        ("query($n: Int! = 3) { listSessions(first: $n) { nodes { id } } }", {"n": "many"}, 2),
        ("query($n: Int! = 3) { listSessions(first: $n) { nodes { id } } }", {"n": float("inf")}, 2),
        ("{ listSessions(first: 1000000000) { nodes { id } } }", {}, 201),
        (f"query($ids: [ID!]!) {{ sessions(ids: $ids) {{ {TEN} }} }}", {"ids": ["x"] * 1_000}, 1_000),
        ('{ sessions(ids: ["a", "b"]) { id node { id } } }', {}, 4),
        ('{ session(id: "x") { events { events { seq } } } }', {}, 1 + 1 + 100),
        ('query($n: Int) { session(id: "x") { events(last: $n) { events { seq } } } }', {"n": None}, 102),
        ('query($n: Int) { session(id: "x") { events(last: $n) { events { seq } } } }', {"n": 5}, 7),
        (f"{{ digests(first: 10000) {{ asOf nodes {{ {DIGEST} }} }} }}", {}, 1 + 10_000 * 3),
        ("query($i: [ID!]) { digests(ids: $i, first: 20) { nodes { id } } }", {"i": ["x"] * 5}, 6),
        ("query($i: [ID!]) { digests(ids: $i, first: 20) { nodes { id } } }", {"i": ["x"] * 50}, 21),
        ("{ roots { children { id } } }", {}, 50 * 11),
        ('{ session(id: "x") { surface { openai } } }', {}, 1 + 1 + 100),
        ("mutation($i: AppendEventsInput!) { appendEvents(input: $i) { head } }", {"i": {}}, 1),
    ],
)
def test_cost_is_the_nodes_asked_for(schema: Schema, text: str, variables: dict[str, Any], nodes: int) -> None:
    assert requested(schema, text, variables) == nodes


def test_each_operation_of_a_document_has_its_own_cost(schema: Schema) -> None:
    """Shared fragments count with the variables and defaults of each operation."""
    text = """
      query A($n: Int! = 2) { ...page } query B($n: Int! = 20) { ...page viewer { space } }
      fragment page on Query { listSessions(first: $n) { ...nodes } }
      fragment nodes on SessionConnection { nodes { id } }
    """
    assert [requested(schema, text, None, name) for name in "AB"] == [3, 22]
    assert [requested(schema, text, {"n": 5}, name) for name in "AB"] == [6, 7]


def test_a_huge_cost_is_capped(schema: Schema) -> None:
    nested = "nodes { node { children { children { session { events(first: $n) { events { seq } } } } } } }"
    again = f"query($n: Int) {{ listSessions(first: 200) {{ {nested} }} }}"
    assert requested(schema, again, {"n": 1_000}) == 1 + 200 * (2 + 10 * (1 + 10 * (2 + 1 + 1_000)))
    deep = "query($n: Int) { ...f0 } " + " ".join(
        f"fragment f{level} on Query {{ ...f{level + 1} ...f{level + 1} }}" for level in range(4)
    )
    assert (
        requested(schema, deep + " fragment f4 on Query { listSessions(first: $n) { nodes { id } } }", {"n": 9}) == 160
    )
    assert cost.Cost(cost.add(0, cost.LARGEST, 1_000), {}).of({}) == cost.LARGEST


async def test_an_operation_that_costs_too_much_is_refused_with_its_cost() -> None:
    schema = build_schema(max_cost=100)
    text = "query($n: Int!) { digests(first: $n) { nodes { id } } }"
    result = await schema.execute(text, {"n": 100})
    assert result.extensions == {"cost": {"requested": 101, "maximum": 100}}
    [error] = result.errors or []
    assert error.message == "cost in nodes: 101 is more than the limit of 100"
    assert (error.extensions or {})["code"] == "QUERY_TOO_COMPLEX"


def lists(schema: Schema) -> Iterator[tuple[str, Any]]:
    """The fields that return lists of nodes."""
    for kind in core(schema).type_map.values():
        if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType) and not kind.name.startswith("__"):
            for name, field in kind.fields.items():
                inner, found = field.type, False
                while is_list_type(inner) or is_non_null_type(inner):
                    found, inner = found or is_list_type(inner), inner.of_type
                if found and not is_leaf_type(inner):
                    yield f"{kind.name}.{name}", field


def test_each_list_of_nodes_has_a_page_or_an_estimate(schema: Schema) -> None:
    """A new list must be added to the tables of cost.py."""
    found = {name for name, _ in lists(schema)}
    assert found - cost.PAGES.keys() - cost.PAGE_ITEMS - cost.LISTS.keys() == set()


def test_page_sizes_are_read_from_existing_arguments(schema: Schema) -> None:
    """Their defaults are the schema's."""
    known = 0
    for name, paging in cost.PAGES.items():
        kind, _, name = name.partition(".")
        field = core(schema).type_map[kind].fields.get(name)
        if field is None:
            continue  # comes with the views
        known += 1
        assert set(paging.arguments) <= field.args.keys()
        default = field.args[paging.arguments[0]].default_value
        assert default in (Undefined, None, paging.default), name
    assert known >= 6


@pytest.mark.parametrize("introspection", [True, False])
async def test_without_introspection_errors_suggest_no_names(introspection: bool) -> None:
    schema = build_schema(introspection=introspection)
    asked = await schema.execute("{ __schema { queryType { name } } }")
    assert (asked.errors is None) is introspection
    for text, variables in (
        ("{ viewr { space } }", {}),
        ("{ viewer { spac } }", {}),
        ("{ listSessions(frist: 1) { totalCount } }", {}),
        ("{ listSessions(status: ACTIV) { totalCount } }", {}),
        ("query($s: SessionStatus) { listSessions(status: $s) { totalCount } }", {"s": "ACTIV"}),
        ("mutation($i: CreateSessionInput!) { createSession(input: $i) { session { id } } }", {"i": {"labl": "x"}}),
    ):
        result = await schema.execute(text, variables, SimpleNamespace(role=AccessRole.ADMIN))
        [error] = result.errors or []
        assert ("Did you mean" in error.message) is introspection, error.message
    assert (await schema.execute("{ __typename }")).data == {"__typename": "Query"}
