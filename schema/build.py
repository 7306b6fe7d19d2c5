"""The schema, put together of its nouns."""

from typing import Any, cast

import strawberry
from graphql import GraphQLError, GraphQLInputObjectType
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types
from strawberry.types.execution import ExecutionContext, ExecutionResult
from strawberry.types.graphql import OperationType

from schema import conversation, errors, event
from schema.append import AppendMutation, append_directly
from schema.digest import DigestQuery
from schema.documents import DocumentCache, Documents
from schema.execution import list_executor
from schema.form import FormMutation, FormQuery
from schema.run import RunMutation, RunQuery
from schema.scalars import SCALARS
from schema.session import SessionMutation, SessionQuery
from schema.slot import SlotMutation
from schema.subscription import Subscription
from schema.topology import TopologyMutation, TopologyQuery
from schema.transfer import TransferMutation, TransferQuery
from schema.upkeep import UpkeepMutation
from schema.viewer import ViewerQuery

QUERIES = (SessionQuery, TopologyQuery, DigestQuery, RunQuery, FormQuery, TransferQuery, ViewerQuery)
MUTATIONS = (
    *(SessionMutation, AppendMutation, UpkeepMutation, TopologyMutation, SlotMutation),
    *(RunMutation, FormMutation, TransferMutation),
)


class Schema(strawberry.Schema):
    """Strawberry's schema with our error codes."""

    documents: Documents

    async def execute(self, *args: Any, **named: Any) -> ExecutionResult:
        """One answer to a query or mutation. Raises InvalidOperationTypeError for a subscription, which has many."""
        allowed = named.pop("allowed_operation_types", None) or (OperationType.QUERY, OperationType.MUTATION)
        once: dict[str, Any] = {**named, "allowed_operation_types": set(allowed) - {OperationType.SUBSCRIPTION}}
        return await super().execute(*args, **once)

    def process_errors(
        self, errors_found: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Gives errors their codes; logs only what is the server's own fault."""
        errors.publish(errors_found, execution_context.graphql_document if execution_context else None)


def build_schema() -> Schema:
    """The whole public API."""
    documents = Documents()
    schema = Schema(
        query=merge_types("Query", QUERIES),
        mutation=merge_types("Mutation", MUTATIONS),
        subscription=Subscription,
        types=[*event.TYPES.values(), *conversation.TYPES],
        execution_context_class=list_executor(),
        config=StrawberryConfig(scalar_map=SCALARS),
        extensions=[lambda: DocumentCache(documents)],
    )
    schema.documents = documents
    _check_one_of_by_place(schema)
    _core(schema).mutation_type.fields["appendEvents"].resolve = append_directly
    return schema


def _core(schema: Schema) -> Any:
    """The schema as graphql-core knows it."""
    return cast(Any, schema)._schema


def _check_one_of_by_place(schema: Schema) -> None:
    """Leaves the check of oneOf inputs to graphql-core, whose errors name the place in a list of inputs."""
    event_input = cast(GraphQLInputObjectType, _core(schema).type_map["EventInput"])
    event_input.is_one_of = True
    event_input.out_type = GraphQLInputObjectType.out_type  # type: ignore[method-assign]  # takes Strawberry's own check out
