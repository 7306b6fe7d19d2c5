"""Operations of all transports: which one a request names, and its answers."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from graphql import GraphQLError
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from schema import errors as publishing
from schema.build import Schema
from schema.context import Context
from server.auth.caller import Caller
from server.auth.rate import TokenBuckets, admit
from server.telemetry.observer import Observation, Observer
from server.transport.answer import Answer, Refused, answer_of, refusal
from server.transport.request import Request
from server.trusted_documents import TrustedDocuments
from storage import errors
from storage.store import Store

logger = logging.getLogger("sapwood.operations")


@dataclass(slots=True)
class Operation:
    """One operation of a request's document, to be run once. Its `context` and loaders are its own."""

    query: str
    request: Request
    kind: OperationType
    name: str | None
    caller: Caller
    context: Context


class Operations:
    """Runs operations. `running` counts the queries and mutations under way.

    A query stops at its deadline, in seconds from its start, and when its task is cancelled. A mutation has no
    deadline, and transports let each one finish that has started: half of it may be written.
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
        """The operation that a request names, counted against its caller's rate.

        Raises Refused if the document or the name is wrong, or the caller may not run it now.
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
            refused = Refused(answer_of(ExecutionResult(data=None, errors=[error])))
            self._observer.refused(refused.answer.code)
            raise refused from error
        name = document.operation_name(request.operation_name)
        return Operation(query, request, kind, name, caller, Context(self._store, caller.space, caller.role, document))

    @contextlib.contextmanager
    def _observed(self, operation: Operation) -> Iterator[Observation]:
        """Observes an operation from before its validation to its last answer."""
        once = operation.kind is not OperationType.SUBSCRIPTION
        self.running += once
        try:
            with self._observer.operation(operation.kind.value, operation.name) as observation:
                yield observation
        finally:
            self.running -= once

    async def answer(self, operation: Operation) -> Answer:
        """The answer to a query or mutation."""
        with self._observed(operation) as observation:
            answer = await self._answer(operation)
            observation.answered(answer.body, refused=answer.refused)
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
        """Yields the answers to any operation: those of a subscription as they arrive, else the one."""
        if operation.kind is not OperationType.SUBSCRIPTION:
            yield await self.answer(operation)
            return
        request = operation.request
        with self._observed(operation) as observation:
            results = await self._schema.subscribe(
                operation.query, request.variables, operation.context, operation_name=request.operation_name
            )
            async with contextlib.aclosing(results):
                async for result in results:
                    answer = answer_of(result)
                    observation.answered(answer.body, refused=answer.refused)
                    yield answer

    async def _execute(self, operation: Operation) -> Answer:
        request = operation.request
        return answer_of(
            await self._schema.execute(
                operation.query, request.variables, operation.context, operation_name=request.operation_name
            )
        )
