"""The parts of Strawberry and graphql-core that are private, or not documented, and that we override or rely on.

Each has one test that fails when the library changes there. pyproject.toml bounds the versions of both libraries; raise
a bound only with these tests green.
"""

import inspect
from collections.abc import AsyncGenerator
from typing import Any, cast

import graphql
import pytest
import strawberry
from graphql import (
    Executor,
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLSchema,
    OverlappingFieldsCanBeMergedRule,
    parse,
    specified_rules,
    validate,
)
from graphql.language.parser import MAX_NESTING_DEPTH
from graphql.validation.validate import ValidationAbortedError
from strawberry.execution import optimized_is_awaitable
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext
from strawberry.types.base import get_object_definition
from strawberry.types.execution import ExecutionContext, PreExecutionError
from strawberry.types.field import StrawberryField

from schema.engine.execution import DEFINITION, CompiledExecutor, compiled_executor


@strawberry.input(one_of=True)
class Choice:
    one: int | None = strawberry.UNSET
    other: int | None = strawberry.UNSET


@strawberry.type
class Query:
    plain_field: int = 1

    @strawberry.field
    def chosen(self, choice: Choice) -> str:
        return type(choice).__name__

    @strawberry.field
    async def later(self) -> int:
        return 2


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def numbers(self) -> AsyncGenerator[int, None]:
        yield 1
        raise LookupError("lost")


class Schema(strawberry.Schema):
    """Overrides what ours overrides, and records the calls."""

    calls: list[str]

    async def _prepare_operation_async(self, context: Any, extensions_runner: Any) -> PreExecutionError | None:
        self.calls.append("prepare")
        assert isinstance(context, ExecutionContext)
        assert (context.query, context.variables, context.operation_name) == (SUBSCRIPTION, {"x": 1}, "Numbers")
        assert context.context == "context" and strawberry.types.graphql.OperationType.SUBSCRIPTION in set(
            context.allowed_operations
        )
        context.graphql_document = parse(SUBSCRIPTION)
        return None

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        self.calls.append("process")
        assert execution_context is not None and execution_context.graphql_document is not None


SUBSCRIPTION = "subscription Numbers { numbers }"


@pytest.fixture
def schema() -> Schema:
    schema = Schema(Query, subscription=Subscription, execution_context_class=compiled_executor())
    schema.calls = []
    return schema


def core(schema: strawberry.Schema) -> GraphQLSchema:
    return cast(GraphQLSchema, cast(Any, schema)._schema)


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_strawberry_schema_has_a_core_schema_that_can_be_executed(schema: Schema) -> None:
    """`Schema._schema`"""
    assert isinstance(core(schema), GraphQLSchema)
    assert graphql.execute_sync(core(schema), parse("{ __typename }")).data == {"__typename": "Query"}


def test_execute_takes_the_arguments_that_ours_does() -> None:
    """`Schema.execute`"""
    names = ["self", "query", "variable_values", "context_value", "root_value", "operation_name"]
    assert parameters(strawberry.Schema.execute)[:6] == names


async def test_a_subscription_is_prepared_and_its_errors_processed_by_methods_of_the_schema(schema: Schema) -> None:
    """`Schema._prepare_operation_async`, `Schema.process_errors`, and the attributes of `ExecutionContext`"""
    results = await schema.subscribe(SUBSCRIPTION, {"x": 1}, "context", operation_name="Numbers")
    found = [result async for result in results]
    assert [result.data for result in found] == [{"numbers": 1}, None]
    assert schema.calls == ["prepare", "process"]
    own = strawberry.Schema._prepare_operation_async
    assert parameters(own) == ["self", "context", "extensions_runner"]


def test_the_execution_context_class_is_the_executor_class(schema: Schema) -> None:
    """`Schema.execution_context_class`, `StrawberryGraphQLCoreExecutionContext`"""
    assert issubclass(schema.execution_context_class, CompiledExecutor)
    assert issubclass(StrawberryGraphQLCoreExecutionContext, Executor)
    assert {"executor_class", "is_awaitable"} <= set(parameters(graphql.execute))


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("execute_fields", "parent_type source_value path grouped_field_set position_context"),
        ("execute_fields_serially", "parent_type source_value path grouped_field_set position_context"),
        ("complete_iterable_value", "item_type field_details_list info path items position_context"),
        ("collect_subfields", "return_type field_details_list"),
    ],
)
def test_the_executor_has_the_methods_that_ours_overrides_or_calls(method: str, names: str) -> None:
    assert parameters(getattr(Executor, method)) == ["self", *names.split()]
    assert method == "collect_subfields" or parameters(getattr(CompiledExecutor, method)) == ["self", *names.split()]
    assert method not in StrawberryGraphQLCoreExecutionContext.__dict__


def test_execute_uses_the_overridden_methods_and_groups_fields_by_response_key(schema: Schema) -> None:
    """`grouped_field_set` maps a response key to its field details, each with its node."""
    seen: list[tuple[str, list[str], bool]] = []

    class Recorder(StrawberryGraphQLCoreExecutionContext):
        def execute_fields(self, parent_type: Any, source: Any, path: Any, grouped: Any, position: Any) -> Any:
            nodes = [group[0].node.name.value for group in grouped.values()]
            seen.append((parent_type.name, [*grouped, *nodes], self.is_awaitable(1)))
            return super().execute_fields(parent_type, source, path, grouped, position)

    document = parse("{ a: plainField b: plainField }")
    graphql.execute(core(schema), document, Query(), executor_class=Recorder)
    assert seen == [("Query", ["a", "b", "plainField", "plainField"], False)]


def test_fields_and_types_carry_their_strawberry_definitions(schema: Schema) -> None:
    """`extensions["strawberry-definition"]`, `is_basic_field`, `python_name`, `origin`"""
    query = core(schema).query_type
    assert query is not None and query.extensions[DEFINITION].origin is Query
    plain, later = (query.fields[name].extensions[DEFINITION] for name in ("plainField", "later"))
    assert isinstance(plain, StrawberryField) and plain.is_basic_field and plain.python_name == "plain_field"
    assert isinstance(later, StrawberryField) and not later.is_basic_field


def test_optimized_is_awaitable_knows_awaitables() -> None:
    """`strawberry.execution.optimized_is_awaitable`"""

    class Later:
        def __await__(self) -> Any:
            yield

    assert [optimized_is_awaitable(value) for value in (None, 1, [], object(), Later())] == [False] * 4 + [True]


async def test_from_input_converts_an_input() -> None:
    """`StrawberryObjectDefinition.from_input`"""

    @strawberry.input
    class Number:
        value: int

    @strawberry.type
    class Root:
        @strawberry.field
        def doubled(self, number: Number) -> int:
            return cast(int, number)

    get_object_definition(Number, strict=True).from_input = lambda _, value, __: 2 * value["value"]
    result = await strawberry.Schema(Root).execute("{ doubled(number: {value: 2}) }")
    assert (result.data, result.errors) == ({"doubled": 4}, None)


def test_strawberry_checks_one_of_in_out_type_which_can_be_taken_out(schema: Schema) -> None:
    """`GraphQLInputObjectType.out_type`, `is_one_of`"""
    choice = core(schema).type_map["Choice"]
    assert isinstance(choice, GraphQLInputObjectType)
    with pytest.raises(Exception, match="exactly one"):
        choice.out_type({"one": 1, "other": 2})
    assert GraphQLInputObjectType.out_type({"one": 1}) == {"one": 1}
    choice.is_one_of = True
    choice.out_type = GraphQLInputObjectType.out_type  # type: ignore[method-assign]  # as schema/build.py does
    [error] = validate(core(schema), parse("{ chosen(choice: {one: 1, other: 2}) }"))
    assert "exactly one" in error.message.lower()


def test_the_budget_for_comparing_fields_is_an_attribute_of_the_rule(schema: Schema) -> None:
    """`OverlappingFieldsCanBeMergedRule.rule_context.remaining_complexity_budget`, `ValidationAbortedError`"""

    class Bounded(OverlappingFieldsCanBeMergedRule):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            assert self.rule_context.remaining_complexity_budget == 500_000
            self.rule_context.remaining_complexity_budget = 10

    assert OverlappingFieldsCanBeMergedRule in specified_rules
    [error] = validate(core(schema), parse(f"{{ {'plainField ' * 10} }}"), [Bounded])
    assert isinstance(error, ValidationAbortedError) and "error limit" not in error.message


def test_validation_says_when_it_stops_for_the_number_of_errors(schema: Schema) -> None:
    *_, last = validate(core(schema), parse("{ a b c }"), max_errors=2)
    assert isinstance(last, ValidationAbortedError) and "error limit" in last.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ a b c d e f g h }", "Document contains more than 6 tokens."),
        ("#\n#\n#\n{ a }", "Document contains more than 2 comments."),
        ("{ a(b: " + "[" * (MAX_NESTING_DEPTH + 1), "nested too deeply"),
    ],
)
def test_the_parser_says_which_limit_is_exceeded(text: str, message: str) -> None:
    with pytest.raises(graphql.GraphQLSyntaxError, match=message):
        parse(text, max_lexical_tokens=6 if "h" in text else 1_000, max_comments=2)


def test_suggestions_have_the_form_that_is_hidden_without_introspection(schema: Schema) -> None:
    [error] = validate(core(schema), parse("{ plainFeld }"))
    assert " Did you mean " in error.message
