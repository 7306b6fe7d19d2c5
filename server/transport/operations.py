"""Operations, however they came: what they are, and their answers."""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError
from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError
from strawberry.types.graphql import OperationType

from schema import errors as publishing
from schema.build import Schema
from schema.context import Context
from server.auth.caller import Caller
from server.auth.rate import TokenBuckets, admit
from server.telemetry.observer import Observation, Observer
from server.trusted_documents import TrustedDocuments
from storage import errors
from storage.store import Store

logger = logging.getLogger("sapwood.operations")


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for."""

    query: str | None
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    document_id: str | None = None

    @classmethod
    def of(cls, given: Any) -> "Request":
        """Reads the parameters of GraphQL over HTTP, which graphql-transport-ws shares. Raises BadInput."""
        if not isinstance(given, dict):
            raise errors.BadInput(f"a request must be a JSON object, not {_kind(given)}")
        query, variables, name = given.get("query"), given.get("variables"), given.get("operationName")
        extensions = given.get("extensions")
        if extensions is not None and not isinstance(extensions, dict):
            raise errors.BadInput(f"extensions: must be an object or null, not {_kind(extensions)}")
        id = _document_id(given.get("documentId"), extensions)
        if not isinstance(query, str) and (query is not None or id is None):
            raise errors.BadInput(f"query: must be a string, not {_kind(query)}")
        if variables is not None and not isinstance(variables, dict):
            raise errors.BadInput(f"variables: must be an object or null, not {_kind(variables)}")
        if name is not None and not isinstance(name, str):
            raise errors.BadInput(f"operationName: must be a string or null, not {_kind(name)}")
        return cls(query, variables, name, id)


def _document_id(id: Any, extensions: dict[str, Any] | None) -> str | None:
    """The id of a document, given as GraphQL over HTTP or as Apollo's clients have it."""
    place = "documentId"
    if id is None and isinstance(query := (extensions or {}).get("persistedQuery"), dict):
        place, id = "extensions.persistedQuery.sha256Hash", query.get("sha256Hash")
    if id is not None and not isinstance(id, str):
        raise errors.BadInput(f"{place}: must be a string, not {_kind(id)}")
    return id


def _kind(value: Any) -> str:
    """What JSON calls a value."""
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}.get(type(value), "a number")


@dataclass(slots=True)
class Operation:
    """One operation of a request's document, to be run once. `context` is its own, loaders included."""

    query: str
    request: Request
    kind: OperationType
    name: str | None
    caller: Caller
    context: Context


@dataclass(slots=True)
class Answer:
    """A response as GraphQL defines it. One that is `refused` has errors and no data: nothing was run."""

    body: dict[str, Any]
    refused: bool

    @property
    def code(self) -> str:
        """The first error's code."""
        code: str = self.body["errors"][0]["extensions"]["code"]
        return code


class Refused(Exception):
    """An operation can't be begun; the answer tells why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


def refusal(error: errors.SapwoodError) -> Answer:
    """The answer to what is refused for this reason."""
    return Answer(
        {"errors": [{"message": error.message, "extensions": {"code": error.code, **error.details}}]}, refused=True
    )


def failure(error: BaseException) -> Answer:
    """The answer where the server made a mistake: masked, the log has more under its id."""
    id = uuid.uuid4().hex
    logger.error("internal error %s", id, exc_info=error)
    return refusal(errors.internal(id))


def _answer(result: ExecutionResult) -> Answer:
    """A result in its wire form. Without data, and with no error that has a place in it, nothing was run."""
    faults = result.errors
    if not faults:
        body: dict[str, Any] = {"data": result.data}
        refused = False
    else:
        begun = not isinstance(result, PreExecutionError) and any(fault.path is not None for fault in faults)
        refused = result.data is None and not begun
        body = {"errors": [fault.formatted for fault in faults]}
        if not refused:
            body["data"] = result.data
    if result.extensions:
        body["extensions"] = result.extensions
    return Answer(body, refused)


class Operations:
    """Runs the operations of all transports. `running` counts queries and mutations under way.

    A query stops at its deadline, seconds after it began, and when its task is cancelled. A mutation has no deadline:
    transports let one that they began come to its end, since half of it may be written.
    """

    def __init__(
        self,
        schema: Schema,
        store: Store,
        deadline: float,
        documents: TrustedDocuments,
        observer: Observer,
        buckets: TokenBuckets | None = None,
    ) -> None:
        self._schema = schema
        self._store = store
        self._deadline = deadline
        self._documents = documents
        self._observer = observer
        self._buckets = buckets
        self.running = 0

    def identify(self, request: Request, caller: Caller) -> Operation:
        """The operation that a request means, counted against its caller's rate.

        Raises Refused for a document or name that names none, and for one that may not be run.
        """
        try:
            admit(self._buckets, caller.key_id, time.monotonic())
            query = self._documents.text(request.query, request.document_id)
            document = self._schema.documents.of(query)
            kind = document.operation(request.operation_name).type
        except errors.SapwoodError as error:
            logger.info("%s at the request: %s", error.code, error.message)
            self._observer.refused(error.code)
            raise Refused(refusal(error)) from error
        except GraphQLError as error:
            publishing.publish([error], None)
            refused = Refused(_answer(ExecutionResult(data=None, errors=[error])))
            self._observer.refused(refused.answer.code)
            raise refused from error
        name = document.operation_name(request.operation_name)
        return Operation(query, request, kind, name, caller, Context(self._store, caller.space, caller.role, document))

    @contextlib.contextmanager
    def _under_way(self, operation: Operation) -> Iterator[Observation]:
        """Around every operation, from before its validation to its last answer."""
        once = operation.kind is not OperationType.SUBSCRIPTION
        self.running += once
        try:
            with self._observer.operation(operation.kind.value, operation.name) as observation:
                yield observation
        finally:
            self.running -= once

    async def answer(self, operation: Operation) -> Answer:
        """The answer to a query or mutation."""
        with self._under_way(operation) as observation:
            answer = await self._answer(operation)
            observation.told(answer.body, refused=answer.refused)
            return answer

    async def _answer(self, operation: Operation) -> Answer:
        if operation.kind is OperationType.MUTATION:
            return await self._execute(operation)
        try:
            async with asyncio.timeout(self._deadline):
                return await self._execute(operation)
        except TimeoutError:
            late = f"the query took longer than {self._deadline:g} s and was stopped: ask for less, or try later"
            logger.info("UNAVAILABLE: %s", late)
            return refusal(errors.Unavailable(late))

    async def answers(self, operation: Operation) -> AsyncGenerator[Answer, None]:
        """The answers to any operation, as they come: many to a subscription, else one."""
        if operation.kind is not OperationType.SUBSCRIPTION:
            yield await self.answer(operation)
            return
        request = operation.request
        with self._under_way(operation) as observation:
            results = await self._schema.subscribe(
                operation.query, request.variables, operation.context, operation_name=request.operation_name
            )
            async with contextlib.aclosing(results):
                async for result in results:
                    answer = _answer(result)
                    observation.told(answer.body, refused=answer.refused)
                    yield answer

    async def _execute(self, operation: Operation) -> Answer:
        request = operation.request
        return _answer(
            await self._schema.execute(
                operation.query, request.variables, operation.context, operation_name=request.operation_name
            )
        )
