"""The schema, assembled from its nouns."""

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
from schema.engine.documents import CheckedDocument, Documents
from schema.engine.execution import compiled_executor
from schema.form import FormMutation, FormQuery
from schema.maintenance import MaintenanceMutation
from schema.run import RunMutation, RunQuery
from schema.scalars import SCALARS
from schema.session import SessionQuery
from schema.session_mutation import SessionMutation
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
    """Strawberry's schema with our error codes, limits, roles and executor.

    What it overrides of Strawberry and graphql-core is pinned by tests/schema/test_private_parts.py.
    """

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
        """Run a query or mutation. Raises InvalidOperationTypeError for a subscription, which has many answers.

        Replaces Strawberry's own method, whose extension points we do not use: they take a third of a small query's
        time.
        """
        checked, faults, extensions = self._prepare(query, variable_values, operation_name, context_value)
        if faults or checked is None:
            return self._refuse(faults, checked, extensions)
        if checked.operation(operation_name).type is OperationType.SUBSCRIPTION:
            raise InvalidOperationTypeError(OperationType.SUBSCRIPTION)
        result: Any = graphql.execute(
            _core(self),
            checked.document,
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
            self._publish(result.errors, checked.document)
        return ExecutionResult(data=result.data, errors=result.errors, extensions=extensions)

    def _prepare(
        self, query: str | None, variables: dict[str, Any] | None, name: str | None, context: Any
    ) -> tuple[CheckedDocument | None, list[GraphQLError], dict[str, Any]]:
        """The document, the errors that keep its operation from running, and the extensions that report its cost.

        Checks the limits first, then validity, the caller's role and the cost.
        """
        if not query:
            raise MissingQueryError
        try:
            checked: CheckedDocument = getattr(context, "document", None) or self.documents.of(query)
            operation = checked.operation(name)
        except GraphQLError as error:
            return None, [error], {}
        if faults := self.documents.faults(checked):
            return checked, faults, {}
        role = context.role if context is not None else AccessRole.VIEWER
        if refusal := policy.refusal(checked.need(name), role):
            return checked, [refusal], {}
        requested = operation.cost.of(variables)
        extensions = {"cost": {"requested": requested, "maximum": self.max_cost}}
        if requested > self.max_cost:
            return checked, [limits.too_complex("cost in nodes", requested, self.max_cost)], extensions
        return checked, [], extensions

    def _refuse(
        self, faults: list[GraphQLError], checked: CheckedDocument | None, extensions: dict[str, Any]
    ) -> PreExecutionError:
        self._publish(faults, None if checked is None else checked.document)
        return PreExecutionError(data=None, errors=faults, extensions=extensions)

    async def _prepare_operation_async(
        self, context: ExecutionContext, extensions_runner: SchemaExtensionsRunner
    ) -> PreExecutionError | None:
        """Prepare a subscription. Replaces Strawberry's method; the many small answers do not report their cost."""
        checked, faults, _ = self._prepare(context.query, context.variables, context.operation_name, context.context)
        if faults or checked is None:
            return PreExecutionError(data=None, errors=faults)
        context.graphql_document = checked.document
        if checked.operation(context.operation_name).type not in context.allowed_operations:
            raise InvalidOperationTypeError(checked.operation(context.operation_name).type)
        return None

    def process_errors(
        self, errors_found: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Publish the errors of a subscription. Replaces Strawberry's method, which logs each with its traceback."""
        self._publish(errors_found, execution_context.graphql_document if execution_context else None)

    def _publish(self, found: list[GraphQLError], document: DocumentNode | None) -> None:
        if not self.introspection:
            errors.hide_suggestions(found)
        errors.publish(found, document)


def build_schema(max_cost: int = cost.LARGEST, introspection: bool = True) -> Schema:
    """Build the whole public API. Without introspection, errors do not suggest names either."""
    schema = Schema(
        query=merge_types("Query", QUERIES),
        mutation=merge_types("Mutation", MUTATIONS),
        subscription=Subscription,
        types=[*event.TYPES.values(), *conversation.TYPES],
        execution_context_class=compiled_executor(),
        config=StrawberryConfig(scalar_map=SCALARS),
    )
    _check_one_of_in_core(schema)
    core = _core(schema)
    for name, resolver in UNCONVERTED.items():
        core.mutation_type.fields[name].resolve = resolver
    schema.documents = Documents(core, introspection)
    schema.max_cost = max_cost
    schema.introspection = introspection
    return schema


def _core(schema: Schema) -> Any:
    """The graphql-core schema behind Strawberry's."""
    return cast(Any, schema)._schema


def _check_one_of_in_core(schema: Schema) -> None:
    """Have graphql-core check oneOf inputs, as its errors name the path within a list of inputs."""
    event_input = cast(GraphQLInputObjectType, _core(schema).type_map["EventInput"])
    event_input.is_one_of = True
    event_input.out_type = GraphQLInputObjectType.out_type  # type: ignore[method-assign]  # removes Strawberry's own check
