"""The statement for a page of runs. It walks an index in the order of the page, so that nothing is sorted.

Texts are passed as parameters, as ids and names may hold anything. The column `place` is a row's sort key.
"""

from typing import Any

from storage.events import Instant
from storage.run_filter import RunFilter

NAMED = "(:space, '{kind}', :{kind}, runs.started_at, runs.place)"
HAS_NAME = f"EXISTS (SELECT 1 FROM run_names WHERE (space, kind, name, started_at, place) = {NAMED})"


def page(space: str, selection: RunFilter, after: tuple[Instant, str] | None, limit: int) -> tuple[str, Any]:
    """The statement, which selects documents, and its values."""
    conditions = {
        "session": ("runs.session = :session", selection.session_id),
        "tool": (HAS_NAME.format(kind="tool"), selection.tool_name),
        "agent": (HAS_NAME.format(kind="agent"), selection.agent_name),
        "feedback": ("runs.feedback = :feedback", selection.feedback),
        "status": ("runs.status = :status", selection.status and selection.status.value),
        "flow": ("runs.agent_flow = :flow", selection.agent_flow),
        "duration": ("runs.duration_ms >= :duration", selection.min_duration_ms),
    }
    values: dict[str, Any] = {name: value for name, (_, value) in conditions.items() if value is not None}
    source, order = _source(values)
    where = [condition for name, (condition, _) in conditions.items() if name in values]
    if order == "run_names":
        kind = "tool" if "tool" in values else "agent"
        where.remove(conditions[kind][0])
        where.append(f"run_names.space = :space AND run_names.kind = '{kind}' AND run_names.name = :{kind}")
    else:
        where.append("runs.space = :space")
    if selection.started_after is not None:
        where.append(f"{order}.started_at >= :since")
        values["since"] = selection.started_after
    if (before := _before(selection, after)) is not None:
        where.append(f"({order}.started_at, {order}.place) < (:time, :sort_key)")
        values["time"], values["sort_key"] = before
    sql = f"""SELECT runs.doc FROM {source} WHERE {" AND ".join(where)}
        ORDER BY {order}.started_at DESC, {order}.place DESC LIMIT :limit"""
    return sql, values | {"space": space, "limit": limit}


def _source(values: dict[str, Any]) -> tuple[str, str]:
    """The index to walk, by the most selective condition, and the table that has its order."""
    if "session" in values:
        return "runs INDEXED BY runs_session", "runs"
    if "tool" in values or "agent" in values:
        return "run_names CROSS JOIN runs ON runs.key = run_names.run", "run_names"
    for name in ("feedback", "status"):
        if name in values:
            return f"runs INDEXED BY runs_{name}", "runs"
    return "runs INDEXED BY runs_started", "runs"


def _before(selection: RunFilter, after: tuple[Instant, str] | None) -> tuple[Instant, str] | None:
    """The (time, sort key) below which rows are wanted: the lower of two bounds, as an index walk uses only one."""
    bounds = [] if selection.started_before is None else [(selection.started_before, "")]
    return min([*bounds, after] if after is not None else bounds, default=None)
