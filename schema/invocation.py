"""Tool calls as the audit view and the conversation show them."""

from __future__ import annotations

import strawberry

from schema.scalars import JSON, DateTime
from schema.stats import saturated
from storage.views import run_tools


@strawberry.type
class ToolInvocation:
    """A tool call with its result."""

    call_id: strawberry.ID
    seq: int = strawberry.field(description="seq of the tool/call.")
    result_seq: int | None = strawberry.field(description="seq of the tool/result; null while none is recorded.")
    step_id: strawberry.ID | None
    tool_name: str
    input_params: JSON
    output_preview: str | None = strawberry.field(description="First 500 characters (code points) of the output.")
    output_length: int | None = strawberry.field(
        description="Characters (code points) of the whole output, or what the writer said it was before cutting."
    )
    is_truncated: bool = strawberry.field(
        description="Whether the log does not hold the whole output: its writer says so, or `outputLength` shows it."
    )
    retrieval_layer: str | None
    l0_match_count: int | None
    l1_match_count: int | None
    retrieval_details: JSON | None
    duration_ms: float | None
    success: bool | None = strawberry.field(description="null while no result is recorded.")
    error_message: str | None
    started_at: DateTime
    ended_at: DateTime | None

    @classmethod
    def from_domain(cls, call: run_tools.ToolInvocation) -> ToolInvocation:
        """Convert a call and, once recorded, its result."""
        return cls(
            call_id=strawberry.ID(call.call_id),
            seq=call.seq,
            result_seq=call.result_seq,
            step_id=None if call.step_id is None else strawberry.ID(call.step_id),
            tool_name=call.tool_name,
            input_params=JSON(call.input_params),
            output_preview=call.output_preview,
            output_length=None if call.output_length is None else saturated(call.output_length),
            is_truncated=call.truncated,
            retrieval_layer=call.retrieval_layer,
            l0_match_count=None if call.l0_match_count is None else saturated(call.l0_match_count),
            l1_match_count=None if call.l1_match_count is None else saturated(call.l1_match_count),
            retrieval_details=None if call.retrieval_details is None else JSON(call.retrieval_details),
            duration_ms=call.duration_ms,
            success=call.success,
            error_message=call.error,
            started_at=DateTime(call.started_at),
            ended_at=None if call.ended_at is None else DateTime(call.ended_at),
        )
