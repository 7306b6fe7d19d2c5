"""Runs: turns as the audit view shows them, of one session or across the space."""

from __future__ import annotations

from typing import Any

import strawberry
from strawberry import UNSET

from schema.connection import PageInfo
from schema.context import Info
from schema.inputs import given
from schema.invocation import ToolInvocation
from schema.scalars import JSON, DateTime
from schema.stats import saturated
from storage import errors
from storage.events import RunStatus
from storage.readers.runs import RunPage
from storage.run_filter import RunFilter
from storage.views import runs
from storage.views.run_rows import RunRow
from storage.views.run_values import CLEARED_EVALUATION, CLEARED_FEEDBACK


@strawberry.type
class Step:
    """A step of a run."""

    step_id: strawberry.ID
    seq: int = strawberry.field(description="seq of its step/start.")
    step_index: int = strawberry.field(description="Counts per agent name within the run, from 0.")
    agent_name: str | None
    model_input: JSON | None = strawberry.field(
        description="Role and truncated content of each message given to the model."
    )
    model_output: JSON | None
    thought: str | None
    error: str | None
    has_tool_call: bool
    duration_ms: float | None
    token_count: float | None
    started_at: DateTime
    ended_at: DateTime | None
    tool_invocations: list[ToolInvocation]

    @classmethod
    def from_domain(cls, step: runs.Step) -> Step:
        """Convert a step."""
        return cls(
            step_id=strawberry.ID(step.step_id),
            seq=step.seq,
            step_index=step.index,
            agent_name=step.agent_name,
            model_input=_json(step.model_input),
            model_output=_json(step.model_output),
            thought=step.thought,
            error=step.error,
            has_tool_call=bool(step.tool_invocations),
            duration_ms=step.duration_ms,
            token_count=step.token_count,
            started_at=DateTime(step.started_at),
            ended_at=_time(step.ended_at),
            tool_invocations=[ToolInvocation.from_domain(call) for call in step.tool_invocations],
        )


@strawberry.type(description="One turn, as diagnosed: query, status, totals, steps and tool invocations.")
class Run:
    """A turn in the audit view."""

    id: strawberry.ID = strawberry.field(description="<session>/<origin session>/<turn>.")
    session_id: strawberry.ID = strawberry.field(description="The session asked for.")
    origin_session_id: strawberry.ID = strawberry.field(description="The session in which the turn started.")
    turn_id: strawberry.ID
    start_seq: int = strawberry.field(description="seq of its turn/start. Pass as beforeSeq to read older runs.")
    status: RunStatus
    started_at: DateTime
    ended_at: DateTime | None
    updated_at: DateTime
    total_duration_ms: float | None
    total_token_count: float
    step_count: int
    tool_call_count: int
    inherited: bool = strawberry.field(
        description="All its events are inherited: it belongs to the session that this one was forked from."
    )
    domain: strawberry.Private[runs.Run | RunRow]

    @strawberry.field(description="As given at turn/start, else the first user message of the turn.")
    async def query(self, info: Info) -> str | None:
        """The user's question."""
        return (await self._uncut(info, "query")).query

    @strawberry.field
    async def agent_flow(self, info: Info) -> str | None:
        """The flow that answers the turn."""
        return (await self._uncut(info, "agentFlow")).agent_flow

    @strawberry.field
    async def self_evaluation(self, info: Info) -> JSON | None:
        """The agent's evaluation of its answer."""
        return _json((await self._uncut(info, "selfEvaluation")).self_evaluation)

    @strawberry.field
    async def feedback(self, info: Info) -> str | None:
        """The feedback on the turn."""
        return (await self._uncut(info, "feedback")).feedback

    @strawberry.field
    async def error(self, info: Info) -> str | None:
        """Why the turn failed."""
        return (await self._uncut(info, "error")).error

    @strawberry.field
    async def steps(self, info: Info) -> list[Step]:
        """The steps in order."""
        return [Step.from_domain(step) for step in (await self._whole(info)).steps]

    @strawberry.field(description="In call order, those outside any step included.")
    async def tool_invocations(self, info: Info) -> list[ToolInvocation]:
        """The tool calls in order."""
        return [ToolInvocation.from_domain(call) for call in (await self._whole(info)).tool_invocations]

    async def _uncut(self, info: Info, field: str) -> runs.Run | RunRow:
        """The source of a field's whole text: the run itself where its row stores only the beginning."""
        domain = self.domain
        return await self._whole(info) if isinstance(domain, RunRow) and field in domain.cut else domain

    async def _whole(self, info: Info) -> runs.Run:
        return self.domain if isinstance(self.domain, runs.Run) else await _loaded(info, self.session_id, self.turn_id)

    @classmethod
    def from_domain(cls, run: runs.Run) -> Run:
        """Convert a whole run."""
        return cls(
            **_shared(run),
            total_token_count=run.token_count,
            step_count=saturated(run.step_count),
            tool_call_count=saturated(run.tool_call_count),
            inherited=run.inherited,
        )

    @classmethod
    def from_row(cls, row: RunRow) -> Run:
        """Convert a row, whose totals are those of the session's own events."""
        return cls(
            **_shared(row),
            total_token_count=row.tokens,
            step_count=saturated(row.steps),
            tool_call_count=saturated(row.tool_calls),
            inherited=False,
        )


def _shared(run: runs.Run | RunRow) -> dict[str, Any]:
    return {
        "id": run.id,
        "session_id": run.session_id,
        "origin_session_id": run.origin_session_id,
        "turn_id": run.turn_id,
        "start_seq": run.start_seq,
        "status": run.status,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "updated_at": run.updated_at,
        "total_duration_ms": run.duration_ms,
        "domain": run,
    }


def _json(value: str | None) -> JSON | None:
    return None if value is None else JSON(value)


def _time(value: int | None) -> DateTime | None:
    return None if value is None else DateTime(value)


@strawberry.type
class RunEdge:
    """A run with its cursor."""

    cursor: str
    node: Run


@strawberry.type
class RunConnection:
    """A page of runs."""

    nodes: list[Run]
    page_info: PageInfo
    page: strawberry.Private[RunPage]

    @strawberry.field
    def edges(self) -> list[RunEdge]:
        """The runs with their cursors."""
        rows = zip(self.page.rows, self.nodes, strict=True)
        return [RunEdge(cursor=self.page.cursor(row), node=node) for row, node in rows]

    @classmethod
    def from_domain(cls, page: RunPage, after: str | None) -> RunConnection:
        """Convert a page."""
        rows = page.rows
        ends = (page.cursor(rows[0]), page.cursor(rows[-1])) if rows else None
        return cls(nodes=[Run.from_row(row) for row in rows], page_info=PageInfo.of(ends, page.more, after), page=page)


@strawberry.type
class RunPayload:
    """The result of a mutation of a run."""

    run: Run


@strawberry.type
class RunQuery:
    """Queries for runs."""

    @strawberry.field(
        description="Runs across sessions, newest first. Totals are those of a session's own events, so that nothing "
        "counts twice. `startedAfter` is inclusive, `startedBefore` is not. null when the session is unknown."
    )
    async def runs(
        self,
        info: Info,
        session_id: strawberry.ID | None = UNSET,
        status: RunStatus | None = UNSET,
        agent_flow: str | None = UNSET,
        agent_name: str | None = UNSET,
        tool_name: str | None = UNSET,
        feedback: str | None = UNSET,
        min_duration_ms: float | None = UNSET,
        started_after: DateTime | None = UNSET,
        started_before: DateTime | None = UNSET,
        first: int = 50,
        after: str | None = UNSET,
    ) -> RunConnection | None:
        """A page of runs across sessions; null when the session is unknown."""
        selection = RunFilter(
            session_id=given(session_id),
            status=given(status),
            agent_flow=given(agent_flow),
            agent_name=given(agent_name),
            tool_name=given(tool_name),
            feedback=given(feedback),
            min_duration_ms=given(min_duration_ms),
            started_after=given(started_after),
            started_before=given(started_before),
        )
        page = await info.context.store.runs.page(info.context.space, selection, first, given(after))
        return None if page is None else RunConnection.from_domain(page, given(after))

    @strawberry.field(description="The whole turn, inherited events included. null when session or turn is unknown.")
    async def run(self, info: Info, session_id: strawberry.ID, turn_id: strawberry.ID) -> Run | None:
        """One whole run; null when session or turn is unknown."""
        found = await info.context.runs.load((session_id, turn_id))
        return None if found is None else Run.from_domain(found)


@strawberry.type
class RunMutation:
    """Mutations of runs."""

    @strawberry.mutation(
        description="Recorded as an event, also after the turn's end and in an archived session. What is absent stays; "
        "null clears."
    )
    async def set_run_feedback(
        self,
        info: Info,
        session_id: strawberry.ID,
        turn_id: strawberry.ID,
        feedback: str | None = UNSET,
        self_evaluation: JSON | None = UNSET,
    ) -> RunPayload:
        """Record feedback on a turn."""
        context = info.context
        given_feedback = await context.store.maintenance.give_feedback(
            context.space,
            session_id,
            turn_id,
            CLEARED_FEEDBACK if feedback is None else given(feedback),
            CLEARED_EVALUATION if self_evaluation is None else given(self_evaluation),
        )
        return RunPayload(run=Run.from_domain(given_feedback.run))


async def _loaded(info: Info, session_id: str, turn_id: str) -> runs.Run:
    found = await info.context.runs.load((session_id, turn_id))
    if found is None:
        raise errors.just_deleted(session_id)
    return found
