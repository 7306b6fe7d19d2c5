"""The rows behind the `runs` query: one per turn and session whose own log holds an event of the turn.

A row holds the state of the turn as seen from the session (query, status, feedback, ...), and what the session's own
events add to it (names, tokens, steps, calls, duration), so that sums over rows count nothing twice. Rows hold nothing
of a tool's result, so updating them needs no open calls.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from storage.events import (
    WIRE_TYPES,
    AssistantChunk,
    Event,
    Instant,
    JsonText,
    Model,
    RunFeedback,
    RunStatus,
    StepEnd,
    StepStart,
    ToolCall,
    TurnEnd,
    TurnStart,
)
from storage.log.state import LARGEST_FLOAT
from storage.session import SessionMeta
from storage.views.run_values import CLEARED_EVALUATION, CLEARED_FEEDBACK, duration, given, time_of
from storage.views.runs import first_text, makes_running

MAX_TEXT = 4_000
"""Code points of a text in a row. A longer one is cut and its field named in `cut`; the whole is in the log."""
MAX_NAMES = 200
"""How many distinct agent names, and tool names, a row holds: the first ones."""
INHERITED_TYPES = frozenset(WIRE_TYPES) - {"assistant/chunk"}
"""Types of the inherited events that decide the state of a turn when the session began."""
RUNNING_TYPES = frozenset({"turn/start", "turn/end", "user/message", "run/feedback"})
"""Those of them that still do so once the turn is no longer pending."""
_CHANGING = frozenset({"turn/end", "step/start", "step/end", "tool/call", "run/feedback"})
"""Types of the events that change more of a row than a time, once its first own event and its query are known."""


class RunRow(Model):
    """A turn in the own log of one session. Times in ms since 1970.

    `since` is the time of the first own event; a row without one is not stored. `updated_at` is that of `runs.Run`.
    `duration_ms` counts from `since` to the turn's end, if that is an own event too. `cut` names the fields (as in
    documents) whose text is longer than `MAX_TEXT`; a self-evaluation that is too long is left out whole.
    """

    space: str
    session_id: str
    origin_session_id: str
    turn_id: str
    start_seq: int
    started_at: Instant
    since: Instant | None = None
    ended_at: Instant | None = None
    updated_at: Instant
    status: RunStatus = RunStatus.PENDING
    query: str | None = None
    agent_flow: str | None = None
    error: str | None = None
    feedback: str | None = None
    self_evaluation: JsonText | None = None
    agent_names: tuple[str, ...] = ()
    tool_names: tuple[str, ...] = ()
    tokens: float = 0.0
    steps: int = 0
    tool_calls: int = 0
    duration_ms: float | None = None
    cut: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`<session>/<origin session>/<turn>`."""
        return f"{self.session_id}/{self.origin_session_id}/{self.turn_id}"

    @property
    def place(self) -> str:
        """A unique sort key, as text, among the rows of a space that started in the same millisecond."""
        return f"{self.start_seq:010}/{self.session_id}"


_ALIASES = {name: field.alias or name for name, field in RunRow.model_fields.items()}


def shortened(value: str) -> str:
    """A text cut as rows store it; values to look rows up by must be cut too."""
    return value[:MAX_TEXT]


def touched(events: Iterable[Event], meta: SessionMeta) -> set[str]:
    """The turns whose rows must be read before `events` can be applied to them; often none.

    These are the turns that the events name and do not start. In a session without inherited events, chunks alone need
    no row: it exists already, and they do not change it.
    """
    started: set[str] = set()
    named: set[str] = set()
    inherits = meta.own_start > 0
    for event in events:
        if event.turn_id is None:
            continue
        if isinstance(event, TurnStart):
            started.add(event.turn_id)
        elif inherits or not isinstance(event, AssistantChunk):
            named.add(event.turn_id)
    return named - started


def inherited_state(rows: Mapping[str, RunRow], events: Iterable[Event], meta: SessionMeta) -> dict[str, RunRow]:
    """Rows of turns as inherited events leave them, by turn, to apply own events to.

    Needed for a turn that has no row yet and was started by an inherited event, which happens once per session and
    torn turn. `events` are those of the visible log from its turn/start to the session's own start: of the turn alone
    or with others among them, of `INHERITED_TYPES` or of all types. They may come in parts, each with the `rows` of the
    parts before. `updated_at` need not be right, as the first own event sets it.
    """
    return {**rows, **_fold(rows, (event for event in events if event.seq < meta.own_start), meta)}


def apply(rows: Mapping[str, RunRow], events: Iterable[Event], meta: SessionMeta) -> dict[str, RunRow]:
    """The rows, by turn, that own events of a session change or make.

    Turn starts need seq, session id and timestamp, as read from the log; other events only a timestamp, and count as
    own without a seq. Of `meta`, only space, id and own start are used. `rows` must hold the row of each turn in
    `touched(events, meta)`: the stored one, else that of `inherited_state`. Events of no turn, or of one that was never
    started, change nothing.
    """
    changed = _fold(rows, events, meta)
    return {turn: row for turn, row in changed.items() if row != rows.get(turn)}


def rebuild(events: Iterable[Event], meta: SessionMeta) -> dict[str, RunRow]:
    """All rows of a session, by turn, folded from its whole visible log."""
    return {turn: row for turn, row in _fold({}, events, meta).items() if row.since is not None}


def _fold(rows: Mapping[str, RunRow], events: Iterable[Event], meta: SessionMeta) -> dict[str, RunRow]:
    changed: dict[str, RunRow] = {}
    own_start = meta.own_start
    for event in events:
        if event.turn_id is None:
            continue
        row = changed.get(event.turn_id)
        if row is None:
            known = rows.get(event.turn_id)
            if known is not None:
                row = known.model_copy()
            elif isinstance(event, TurnStart):
                row = _started(event, meta)
            else:
                continue
            changed[event.turn_id] = row
        # Changed in place: the row is not shared yet, and a copy per event would take longer than all the rest.
        if (
            row.since is None
            or row.query is None
            or event.type in _CHANGING
            or (row.status is RunStatus.PENDING and makes_running(event))
        ):
            row.__dict__.update(_changes(row, event, own=event.seq < 0 or event.seq >= own_start))
        elif not isinstance(event, AssistantChunk):
            row.__dict__["updated_at"] = time_of(event)
    return changed


def _started(event: TurnStart, meta: SessionMeta) -> RunRow:
    at = time_of(event)
    row = RunRow(
        space=meta.space,
        session_id=meta.id,
        origin_session_id=event.session_id,
        turn_id=event.turn_id or "",
        start_seq=event.seq,
        started_at=at,
        updated_at=at,
    )
    return row.model_copy(update=_texts(row, query=event.query, agent_flow=event.agent_flow))


def _changes(row: RunRow, event: Event, own: bool) -> dict[str, Any]:
    at = time_of(event)
    changes: dict[str, Any] = {}
    first = own and row.since is None
    if first:
        changes["since"] = at
    if first or not isinstance(event, AssistantChunk):
        changes["updated_at"] = at
    if row.status is RunStatus.PENDING and makes_running(event):
        changes["status"] = RunStatus.RUNNING
    match event:
        case TurnEnd() if row.ended_at is None:
            changes |= {"ended_at": at, "status": event.status}
            changes |= _texts(row, error=event.error, self_evaluation=given(event.self_evaluation))
            if own:
                changes["duration_ms"] = duration(at if row.since is None else row.since, at)
        case StepStart() if own:
            changes |= {"steps": row.steps + 1, "agent_names": _with(row.agent_names, event.agent_name)}
        case StepEnd() if own:
            changes["tokens"] = min(row.tokens + (event.token_count or 0.0), LARGEST_FLOAT)
        case ToolCall() if own:
            changes |= {"tool_calls": row.tool_calls + 1, "tool_names": _with(row.tool_names, event.name)}
        case RunFeedback():
            changes |= _texts(row, feedback=event.feedback, self_evaluation=event.self_evaluation)
            if event.feedback == CLEARED_FEEDBACK:
                changes["feedback"] = None
            if event.self_evaluation == CLEARED_EVALUATION:
                changes["self_evaluation"] = None
        case _ if row.query is None:
            changes |= _texts(row, query=first_text(event))
    return changes


def _with(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    short = None if name is None else shortened(name)
    return names if short is None or short in names or len(names) >= MAX_NAMES else (*names, short)


def _texts(row: RunRow, **texts: str | None) -> dict[str, Any]:
    """The changes that set these texts, where given, cut to what a row holds, and `cut` accordingly."""
    changes: dict[str, Any] = {}
    cut = set(row.cut)
    for name, value in texts.items():
        if value is None:
            continue
        alias = _ALIASES[name]
        cut.discard(alias)
        changes[name] = value
        if len(value) > MAX_TEXT:
            cut.add(alias)
            changes[name] = None if name == "self_evaluation" else shortened(value)
    if cut != set(row.cut):
        changes["cut"] = tuple(sorted(cut))
    return changes
