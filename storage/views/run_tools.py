"""Tool invocations of the audit view: built from a call and its result, and which call a result answers."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from storage.events import Instant, JsonText, ToolCall, ToolResult
from storage.views.run_values import PREVIEW, duration, given, output_of, time_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One call of a tool and, once there, its result. Times in ms since 1970, durations in ms, lengths in code points.

    `seq` is that of its tool/call, `result_seq` that of its tool/result. `success` is None while no result is recorded.
    `truncated`: the log does not hold the whole output, as the writer says or as its length shows.
    """

    call_id: str
    step_id: str | None
    tool_name: str
    input_params: JsonText
    started_at: Instant
    seq: int
    result_seq: int | None = None
    output_preview: str | None = None
    output_length: int | None = None
    truncated: bool = False
    retrieval_layer: str | None = None
    l0_match_count: int | None = None
    l1_match_count: int | None = None
    retrieval_details: JsonText | None = None
    duration_ms: float | None = None
    success: bool | None = None
    error: str | None = None
    ended_at: Instant | None = None


def called(call: ToolCall, step_id: str | None) -> ToolInvocation:
    """The invocation of a call, in that step, without a result yet."""
    return ToolInvocation(call.call_id, step_id, call.name, call.args, time_of(call), call.seq)


def answered(invocation: ToolInvocation, result: ToolResult) -> ToolInvocation:
    """The invocation with its result. The output excludes the error; an empty error counts as none."""
    output = output_of(result.result)
    held = None if output is None else len(output)
    length = held if result.output_length is None else result.output_length
    at = time_of(result)
    measured = result.duration_ms if result.duration_ms is not None else duration(invocation.started_at, at)
    found = result.retrieval
    return replace(
        invocation,
        result_seq=result.seq,
        output_preview=None if output is None else output[:PREVIEW],
        output_length=length,
        truncated=result.truncated or (length or 0) > (held or 0),
        retrieval_layer=found.layer if found else None,
        l0_match_count=found.l0_match_count if found else None,
        l1_match_count=found.l1_match_count if found else None,
        retrieval_details=given(found.details) if found else None,
        duration_ms=measured,
        success=not result.error,
        error=result.error or None,
        ended_at=at,
    )


class Unanswered(Generic[T]):
    """The calls of a log that no result has answered yet, each with a key of the caller's choice.

    A result answers the earliest unanswered call with its id since the last turn/start, else the newest one before.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._waiting: dict[str, list[tuple[int, T]]] = {}

    def turn_started(self) -> None:
        """Records a turn/start."""
        self._turn += 1

    def add(self, call_id: str, key: T) -> None:
        """Records a call."""
        self._waiting.setdefault(call_id, []).append((self._turn, key))

    def answer(self, call_id: str) -> T | None:
        """Answers a call with a result of this id. Returns the key of the call; None if none waits."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            return None
        index = bisect_left(waiting, self._turn, key=lambda call: call[0])
        return waiting.pop(index if index < len(waiting) else -1)[1]

    def waiting(self) -> list[T]:
        """The keys of the calls that are still unanswered, in no order."""
        return [key for calls in self._waiting.values() for _, key in calls]
