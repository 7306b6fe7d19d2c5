"""Answers in their wire form: results, refusals and failures."""

from dataclasses import dataclass
from typing import Any

from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError

from server.transport.refusal import masked_payload, payload
from storage import errors


@dataclass(slots=True)
class Answer:
    """A GraphQL response. A `refused` one has errors and no data: nothing was run."""

    body: dict[str, Any]
    refused: bool

    @property
    def code(self) -> str:
        """The first error's code. There must be an error."""
        code: str = self.body["errors"][0]["extensions"]["code"]
        return code


class Refused(Exception):
    """An operation can't start; `answer` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


def refusal(error: errors.SapwoodError) -> Answer:
    """The answer to an operation that this error refuses."""
    return Answer(payload(error), refused=True)


def failure(error: BaseException) -> Answer:
    """The answer to an operation that failed for a reason nobody foresaw; the error is logged and masked."""
    return Answer(masked_payload(error), refused=True)


def answer_of(result: ExecutionResult) -> Answer:
    """An execution result as an answer. Nothing was run if there are no data and no error has a path."""
    faults = result.errors
    if not faults:
        body: dict[str, Any] = {"data": result.data}
        refused = False
    else:
        started = not isinstance(result, PreExecutionError) and any(fault.path is not None for fault in faults)
        refused = result.data is None and not started
        body = {"errors": [fault.formatted for fault in faults]}
        if not refused:
            body["data"] = result.data
    if result.extensions:
        body["extensions"] = result.extensions
    return Answer(body, refused)
