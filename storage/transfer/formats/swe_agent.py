"""Trajectories of SWE-agent: one object `{history, trajectory, info, environment, replay_config}` is one session.

`history` holds the messages. Newer logs have tool calls, answered by id; in older ones the command is part of the text,
and its output is a user message. `trajectory` holds the steps, with how long each command ran and the state after it,
which becomes a custom event. The whole run is one turn, from the first message that is not a demonstration to
`info.exit_status`. There are no times.
https://github.com/SWE-agent/SWE-agent
"""

from collections.abc import Sequence
from typing import Any

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats.shared import chat, facts
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.unreadable import keep_unreadable, objects_in
from storage.transfer.formats.shared.values import as_list, as_object, most

FORMAT = "swe-agent"

_MESSAGE = {"role", "content", "tool_calls", "agent", "thought", "reasoning_content", "tool_call_ids", "is_demo"}
_COPIES = {"action", "message_type"}
"""Fields that repeat the role, or the command in a text or call."""
_STEP = {"action", "observation", "response", "thought", "execution_time", "state", "messages", "query"}
_LOOK_AHEAD = 100
"""Number of trajectory steps to search for the one that belongs to a message."""


def fits(values: Sequence[object]) -> bool:
    """Whether the first records are trajectories."""
    return most(values, _is_trajectory)


def _is_trajectory(value: object) -> bool:
    match value:
        case {"trajectory": list(), "history": list(messages)}:
            return not messages or most(messages[:20], _has_role)
    return False


def _has_role(value: object) -> bool:
    return isinstance(value, dict) and "role" in value


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return TrajectoryReader(warnings)


class TrajectoryReader(Reader):
    """Yields a session per record."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._sessions = 0

    def add(self, record: Record) -> Sequence[Step]:
        """Return the session of a trajectory. Raises BadInput for a record without messages."""
        fields = as_object(record.value, record.location)
        history = as_list(fields.get("history"), f"{record.location} history")
        key = str(self._sessions)
        builder = LogBuilder(key, self._warnings)
        steps = objects_in(fields.get("trajectory") or [], f"{record.location} trajectory", self._warnings)
        run = _Run(builder, [step for step, _ in steps], self._warnings)
        for index, message in enumerate(history):
            location = f"{record.location} history[{index}]"
            with keep_unreadable(message, builder, self._warnings):
                run.add(as_object(message, location), location)
        self._sessions += 1
        info = fields.get("info")
        run.end(info.get("exit_status") if isinstance(info, dict) else None)
        rest = {field: value for field, value in fields.items() if field not in ("history", "trajectory")}
        return [
            ForeignSession(
                key=key,
                label=run.label,
                events=builder.take_events(),
                metadata=facts.metadata(rest, record.location, self._warnings),
            )
        ]

    def end(self) -> Sequence[Step]:
        """Return nothing: each record is a whole session."""
        return ()


class _Run:
    """Logs the messages of one history, with data of the trajectory steps that they belong to."""

    def __init__(self, builder: LogBuilder, trajectory: Sequence[dict[str, Any]], warnings: ImportWarnings) -> None:
        self._steps = trajectory
        self._next = 0
        self._matched = 0
        self._duration: float | None = None
        self._state: JsonText | None = None
        self._builder = builder
        self._warnings = warnings
        self.label: str | None = None

    def add(self, message: dict[str, Any], location: str) -> None:
        parsed = chat.parse_message(message, location)
        ids = message.get("tool_call_ids")
        if parsed.role == "tool" and ids is not None:
            ids = as_list(ids, f"{location}.tool_call_ids")
        self._log_state()
        demo = message.get("is_demo") is True
        if not demo and parsed.role != "system" and self._builder.turn is None:
            self._builder.start_turn()
        match parsed.role:
            case "system":
                chat.add_system(self._builder, parsed, self._warnings)
            case "user":
                self._user(parsed, demo)
            case "assistant":
                self._assistant(parsed, message, demo)
            case "tool":
                self._results(parsed, ids or [parsed.call_id], location)
            case _:
                chat.add_message(self._builder, message, location, self._warnings)
        self._warnings.lost_fields(f"{parsed.role} message", message, _MESSAGE | _COPIES)
        if demo:
            self._warnings.add("message", "of a demonstration logged like others")

    def end(self, exit_status: object) -> None:
        """End the turn if the run has ended."""
        if isinstance(exit_status, str) and exit_status:
            self._log_state()
            submitted = exit_status == "submitted"
            self._builder.end_turn(
                status=RunStatus.SUCCESS if submitted else RunStatus.FAILED, error=None if submitted else exit_status
            )
        if unmatched := len(self._steps) - self._matched:
            self._warnings.add("trajectory step", "without its message left out", unmatched)
        if self._state is not None:
            self._warnings.add("state", "at the end of the log held back until the next message")

    def _user(self, parsed: chat.ChatMessage, demo: bool) -> None:
        if not demo and self.label is None:
            self.label = label_of(parsed.content)
        self._builder.user(parsed.content, blocks=parsed.blocks)
        self._builder.end_step()

    def _assistant(self, parsed: chat.ChatMessage, message: dict[str, Any], demo: bool) -> None:
        if demo:
            chat.add_answer(self._builder, parsed, self._warnings)
            return
        agent, thought = message.get("agent"), message.get("thought")
        self._builder.start_step(agent=agent if isinstance(agent, str) else None)
        step = self._step(message)
        self._duration = facts.whole(facts.amount(step.get("execution_time"), 1000))
        self._builder.record_step(
            duration_ms=self._duration, thought=thought if isinstance(thought, str) and thought.strip() else None
        )
        chat.add_answer(self._builder, parsed, self._warnings)
        self._keep_state(step.get("state"))

    def _keep_state(self, state: object) -> None:
        """Keep the state after a step until the next message."""
        try:
            self._state = text.to_json(state, "state") if state else None
        except errors.BadInput:
            self._warnings.add("state", "that cannot be stored left out")

    def _log_state(self) -> None:
        if self._state is not None:
            self._builder.custom("state", self._state)
            self._state = None

    def _results(self, parsed: chat.ChatMessage, ids: Sequence[object], location: str) -> None:
        """Log one result per call id: a message may answer several calls."""
        for call_id in ids:
            self._builder.result(
                call_id, text.to_json(parsed.content, location), blocks=parsed.blocks, duration_ms=self._duration
            )
        self._duration = None

    def _step(self, message: dict[str, Any]) -> dict[str, Any]:
        """The next step of the trajectory with the command and thought of the message, not too far ahead."""
        command = _command(message)
        for index in range(self._next, min(self._next + _LOOK_AHEAD, len(self._steps))):
            step = self._steps[index]
            if command is not None and _command(step) == command:
                self._next = index + 1
                self._matched += 1
                self._warnings.lost_fields("trajectory step", step, _STEP)
                return step
        return {}


def _command(item: dict[str, Any]) -> tuple[str, str | None] | None:
    """The command of a message or step, and the thought before it."""
    action, thought = item.get("action"), item.get("thought")
    return (action, thought if isinstance(thought, str) else None) if isinstance(action, str) else None
