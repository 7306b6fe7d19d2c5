"""The schema, put together of its nouns."""

from inspect import isawaitable
from typing import Any, cast

import graphql
import strawberry
from graphql import DocumentNode, GraphQLError, GraphQLInputObjectType
from strawberry.exceptions import MissingQueryError
from strawberry.execution import optimized_is_awaitable
from strawberry.extensions.runner import SchemaExtensionsRunner
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.tools import merge_types
from strawberry.types.execution import ExecutionContext, ExecutionResult, PreExecutionError
from strawberry.types.graphql import OperationType

from schema import conversation, errors, event
from schema.append import UNCONVERTED, AppendMutation
from schema.digest import DigestQuery
from schema.engine import cost, limits, policy
from schema.engine.documents import Documents, Known
from schema.engine.execution import list_executor
from schema.form import FormMutation, FormQuery
from schema.maintenance import MaintenanceMutation
from schema.run import RunMutation, RunQuery
from schema.scalars import SCALARS
from schema.session import SessionMutation, SessionQuery
from schema.slot import SlotMutation
from schema.subscription import Subscription
from schema.topology import TopologyMutation, TopologyQuery
from schema.transfer import TransferMutation, TransferQuery
from schema.viewer import ViewerQuery
from storage.access_key import AccessRole

QUERIES = (SessionQuery, TopologyQuery, DigestQuery, RunQuery, FormQuery, TransferQuery, ViewerQuery)
MUTATIONS = (
    *(SessionMutation, AppendMutation, MaintenanceMutation, TopologyMutation, SlotMutation),
    *(RunMutation, FormMutation, TransferMutation),
)


class Schema(strawberry.Schema):
    """Strawberry's schema with our error codes and limits."""

    documents: Documents
    max_cost: int
    introspection: bool

    async def execute(
        self,
        query: str | None,
        variable_values: dict[str, Any] | None = None,
        context_value: Any | None = None,
        root_value: Any | None = None,
        operation_name: str | None = None,
        *_: Any,
        **__: Any,
    ) -> ExecutionResult:
        """One answer to a query or mutation. Raises InvalidOperationTypeError for a subscription, which has many.

        Strawberry's own is not used: nothing of ours extends it, and it takes a third of the time of a small query.
        """
        known, faults, cost_told = self._prepared(query, variable_values, operation_name, context_value)
        if faults or known is None:
            return self._refused(faults, known, cost_told)
        if known.operation(operation_name).type is OperationType.SUBSCRIPTION:
            raise InvalidOperationTypeError(OperationType.SUBSCRIPTION)
        result: Any = graphql.execute(
            _core(self),
            known.document,
            root_value=root_value,
            variable_values=variable_values,
            operation_name=operation_name,
            context_value=context_value,
            is_awaitable=cast(Any, optimized_is_awaitable),
            executor_class=self.execution_context_class,
        )
        if isawaitable(result):
            result = await result
        if result.errors:
            self._publish(result.errors, known.document)
        return ExecutionResult(data=result.data, errors=result.errors, extensions=cost_told)

    def _prepared(
        self, query: str | None, variables: dict[str, Any] | None, name: str | None, context: Any
    ) -> tuple[Known | None, list[GraphQLError], dict[str, Any]]:
        """The document, what speaks against running its operation, and what its cost is told as.

        Limits come first, then validation, the caller's role and the cost. What can be is remembered.
        """
        if not query:
            raise MissingQueryError
        try:
            known: Known = getattr(context, "document", None) or self.documents.of(query)
            operation = known.operation(name)
        except GraphQLError as error:
            return None, [error], {}
        if faults := self.documents.faults(known):
            return known, faults, {}
        role = context.role if context is not None else AccessRole.VIEWER
        if refusal := policy.refusal(known.need(name), role):
            return known, [refusal], {}
        requested = operation.cost.of(variables)
        told = {"cost": {"requested": requested, "maximum": self.max_cost}}
        if requested > self.max_cost:
            return known, [limits.too_complex("cost in nodes", requested, self.max_cost)], told
        return known, [], told

    def _refused(self, faults: list[GraphQLError], known: Known | None, told: dict[str, Any]) -> PreExecutionError:
        self._publish(faults, None if known is None else known.document)
        return PreExecutionError(data=None, errors=faults, extensions=told)

    async def _prepare_operation_async(
        self, context: ExecutionContext, extensions_runner: SchemaExtensionsRunner
    ) -> PreExecutionError | None:
        """Takes the place of Strawberry's for subscriptions. Their answers are many and small, and tell no cost."""
        known, faults, _ = self._prepared(context.query, context.variables, context.operation_name, context.context)
        if faults or known is None:
            return PreExecutionError(data=None, errors=faults)
        context.graphql_document = known.document
        if known.operation(context.operation_name).type not in context.allowed_operations:
            raise InvalidOperationTypeError(known.operation(context.operation_name).type)
        return None

    def process_errors(
        self, errors_found: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Gives errors their codes; logs only what is the server's own fault."""
        self._publish(errors_found, execution_context.graphql_document if execution_context else None)

    def _publish(self, found: list[GraphQLError], document: DocumentNode | None) -> None:
        if not self.introspection:
            errors.hide_suggestions(found)
        errors.publish(found, document)


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
    for name, resolver in UNCONVERTED.items():
        core.mutation_type.fields[name].resolve = resolver
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
