"""The schema, put together of its nouns."""

from typing import Any, cast

import strawberry
from graphql import GraphQLError, GraphQLInputObjectType
from strawberry.exceptions import MissingQueryError
from strawberry.extensions.runner import SchemaExtensionsRunner
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.tools import merge_types
from strawberry.types.execution import ExecutionContext, ExecutionResult, PreExecutionError
from strawberry.types.graphql import OperationType

from schema import conversation, cost, errors, event, limits, policy
from schema.append import AppendMutation, append_directly
from schema.digest import DigestQuery
from schema.documents import Documents
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
    """Strawberry's schema with our error codes and limits."""

    documents: Documents
    max_cost: int
    introspection: bool

    async def execute(self, *args: Any, **named: Any) -> ExecutionResult:
        """One answer to a query or mutation. Raises InvalidOperationTypeError for a subscription, which has many."""
        allowed = named.pop("allowed_operation_types", None) or (OperationType.QUERY, OperationType.MUTATION)
        once: dict[str, Any] = {**named, "allowed_operation_types": set(allowed) - {OperationType.SUBSCRIPTION}}
        return await super().execute(*args, **once)

    async def _prepare_operation_async(
        self, context: ExecutionContext, extensions_runner: SchemaExtensionsRunner
    ) -> PreExecutionError | None:
        """Takes the place of Strawberry's: limits, validation, the caller's role, cost; what it can, it remembers."""
        if not context.query:
            raise MissingQueryError
        try:
            known = getattr(context.context, "document", None) or self.documents.of(context.query)
            operation = known.operation(context.operation_name)
        except GraphQLError as error:
            return PreExecutionError(data=None, errors=[error])
        context.graphql_document = known.document
        if operation.type not in context.allowed_operations:
            raise InvalidOperationTypeError(operation.type)
        if faults := self.documents.faults(known):
            return PreExecutionError(data=None, errors=faults)
        if refusal := policy.refusal(known.need(context.operation_name), context.context.role):
            return PreExecutionError(data=None, errors=[refusal])
        requested = operation.cost.of(context.variables)
        if operation.type is not OperationType.SUBSCRIPTION:  # whose answers are many and small
            context.extensions_results["cost"] = {"requested": requested, "maximum": self.max_cost}
        if requested > self.max_cost:
            return PreExecutionError(data=None, errors=[limits.too_complex("cost in nodes", requested, self.max_cost)])
        return None

    def process_errors(
        self, errors_found: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Gives errors their codes; logs only what is the server's own fault."""
        if not self.introspection:
            errors.hide_suggestions(errors_found)
        errors.publish(errors_found, execution_context.graphql_document if execution_context else None)


def build_schema(max_cost: int = cost.LARGEST, introspection: bool = True) -> Schema:
    """The whole public API. Without introspection, names are not suggested in errors either."""
    schema = Schema(
        query=merge_types("Query", QUERIES),
        mutation=merge_types("Mutation", MUTATIONS),
        subscription=Subscription,
        types=[*event.TYPES.values(), *conversation.TYPES],
        execution_context_class=list_executor(),
        config=StrawberryConfig(scalar_map=SCALARS),
    )
    _check_one_of_by_place(schema)
    core = _core(schema)
    core.mutation_type.fields["appendEvents"].resolve = append_directly
    schema.documents = Documents(core, introspection)
    schema.max_cost = max_cost
    schema.introspection = introspection
    return schema


def _core(schema: Schema) -> Any:
    """The schema as graphql-core knows it."""
    return cast(Any, schema)._schema


def _check_one_of_by_place(schema: Schema) -> None:
    """Leaves the check of oneOf inputs to graphql-core, whose errors name the place in a list of inputs."""
    event_input = cast(GraphQLInputObjectType, _core(schema).type_map["EventInput"])
    event_input.is_one_of = True
    event_input.out_type = GraphQLInputObjectType.out_type  # type: ignore[method-assign]  # takes Strawberry's own check out
