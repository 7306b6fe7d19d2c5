"""The reference for our executor: Strawberry's schema of the same types, run by graphql-core with nothing of ours."""

import inspect
from typing import Any, cast

import graphql
import strawberry
from graphql import ExecutionResult, GraphQLSchema, parse
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types

from schema import build, conversation, event
from schema.scalars import SCALARS
from schema.subscription import Subscription
from tests.schema.engine.random_queries import Query


def stock_schema() -> GraphQLSchema:
    """The schema as Strawberry builds it, without our executor and resolvers that bypass Strawberry's."""
    schema = strawberry.Schema(
        query=merge_types("Query", build.QUERIES),
        mutation=merge_types("Mutation", build.MUTATIONS),
        subscription=Subscription,
        types=[*event.TYPES.values(), *conversation.TYPES],
        config=StrawberryConfig(scalar_map=SCALARS),
    )
    return cast(GraphQLSchema, cast(Any, schema)._schema)


async def stock_answer(schema: GraphQLSchema, query: Query, context: object) -> ExecutionResult:
    """The answer of graphql-core's default executor."""
    result = graphql.execute(schema, parse(query.text), variable_values=query.variables, context_value=context)
    if inspect.isawaitable(result):
        result = await result
    assert isinstance(result, ExecutionResult)
    return result
