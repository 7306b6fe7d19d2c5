"""Logs a Codex rollout: its turns, and one step per response of the model.

A response ends with its token count or the first output of its calls. If the rollout marks turns, a turn starts with
the first message of the user or the model in it, so that what Codex inserts before is outside. Otherwise a turn runs
from one user message to the first response without calls, or to the next user message.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from storage import text
from storage.events import AssistantMessage, JsonText, RunStatus, SurfaceHide, SystemMessage, UserMessage
from storage.transfer.formats.codex.items import Call, Item, Message, OtherItem, Output, Reasoning
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import MAX_IDENTIFIER, LogBuilder, label_of

_REMEMBERED = 512
"""Limit for each of: messages that a compaction replaces one by one, user messages to roll back to, durations."""


class _MarkedTurn(NamedTuple):
    id: object
    time: int | None


class Rollout:
    """Logs the items of one rollout. `label` is a proposal; `counts` is false if the rollout has no token counts."""

    def __init__(self, builder: LogBuilder, warnings: ImportWarnings, *, agent: str | None = None) -> None:
        self.builder = builder
        self.label: str | None = None
        self.counts = True
        self.time: int | None = None
        self.model: dict[str, str] = {}
        self.error: str | None = None
        self._warnings = warnings
        self._agent = agent
        self._marked: _MarkedTurn | None = None
        self._turn: _MarkedTurn | None = None
        self._turn_ids: set[str] = set()
        self._quiet = False
        self._complete = False
        self._is_counted = False
        self._counted: float | None = None
        self._total: float | None = None
        self._answered = False
        self._called = False
        self._thoughts: list[str] = []
        self._durations: dict[str, float] = {}
        self._texts: list[int] = []
        self._asked: deque[int] = deque(maxlen=_REMEMBERED)

    @property
    def waits(self) -> bool:
        """Whether a turn was marked that is still empty."""
        return self._marked is not None

    def add(self, item: Item, time: int | None) -> None:
        """Log an item that the model sees."""
        match item:
            case Message(role="assistant"):
                self._assistant(item, time)
            case Message(role="user"):
                self._user(item, time)
            case Message():
                self._text(self.builder.system(item.content, time=time))
            case Reasoning():
                self._reasoning(item, time)
            case Call():
                self._respond(time)
                self._called = True
                self.builder.call(item.id, item.name, item.args, time=time)
            case Output():
                self._output(item, time)
            case OtherItem():
                if item.call:
                    self._respond(time)
                self.builder.custom(item.name, item.data, time=time)

    def mark_turn(self, id: object, time: int | None) -> None:
        """Mark the start of a turn; it is logged with the first message of the user or the model in it."""
        if self._marked is not None:
            self._start_turn(time)
        if self.builder.turn is not None:
            self._end_turn(self.time, "its end is not in the log" if self._turn is not None else None)
        self._marked = _MarkedTurn(id, time)

    def end_turn(self, id: object, time: int | None, error: str | None = None) -> bool:
        """End the open turn if it has this id, or if `id` is None. Return whether it ended. With an error it failed."""
        marked = self._marked or self._turn
        if id is not None and marked is not None and marked.id != id:
            return False
        if self._marked is not None:
            self._start_turn(time)
        if self.builder.turn is None:
            return False
        self._end_turn(time, error or self.error)
        return True

    def count(self, tokens: float | None, total: float | None, output: JsonText, time: int | None) -> None:
        """Record the tokens of a response, and end it. A repeated report (with the same total) counts once."""
        if total is not None and total == self._total:
            return
        self._total = total
        if self.builder.step is None:
            self._warnings.add("token count", "outside a step left out")
            return
        if tokens is not None:
            self._counted = (self._counted or 0) + tokens
        self.builder.record_step(token_count=self._counted, model_output=output)
        self._complete = self._is_counted = True
        if not self.builder.awaits:
            self.builder.end_step(time=time)
            if self._turn is None and self._answered and not self._called:
                self._end_turn(time)

    def record_duration(self, call_id: object, duration_ms: float | None) -> None:
        """Record the duration of a call whose output may still come."""
        if isinstance(call_id, str) and duration_ms is not None:
            self._durations[call_id] = duration_ms
            if len(self._durations) > _REMEMBERED:
                del self._durations[next(iter(self._durations))]

    def replace(self, messages: Sequence[Message], time: int | None) -> None:
        """Replace everything on the surface by messages, each of which replaces one part as far as there are parts."""
        end = self.builder.head - 1
        starts = [0, *self._texts[1:]]
        self._texts = []
        self._asked.clear()
        for index, message in enumerate(messages):
            replaces = None
            if index < len(starts) and end >= 0:
                last = index == len(messages) - 1 or index == len(starts) - 1
                replaces = (starts[index], end if last else starts[index + 1] - 1)
            seq = self.builder.add(_event(message, time), replaces)
            self._text(seq)
            if message.role == "user" and not message.injected:
                self._asked.append(seq)

    def roll_back(self, turns: int, time: int | None) -> None:
        """Hide the last user messages, and everything since, from the surface."""
        if not self._asked or turns < 1:
            return
        first = self._asked[-min(turns, len(self._asked))]
        reason = f"the last {turns} turns were rolled back"
        self.builder.add(SurfaceHide(from_seq=first, to_seq=self.builder.head, reason=reason, timestamp=time))
        while self._asked and self._asked[-1] >= first:
            self._asked.pop()
        self._texts = [seq for seq in self._texts if seq < first]

    def _user(self, message: Message, time: int | None) -> None:
        if not message.injected:
            goes_on = self.builder.turn is not None and (self._turn is not None or self._quiet)
            if self._marked is not None or not goes_on:
                self._start_turn(time)
            self._asked.append(self.builder.head)
            self.label = self.label or label_of(message.content)
        self._text(self.builder.user(message.content, blocks=message.blocks, time=time))

    def _assistant(self, message: Message, time: int | None) -> None:
        self._respond(time)
        self._answered = True
        reasoning = "\n\n".join(self._thoughts) or None
        self._thoughts = []
        self.builder.record_step(thought=None)
        self._text(self.builder.assistant(message.content, reasoning=reasoning, blocks=message.blocks, time=time))

    def _reasoning(self, item: Reasoning, time: int | None) -> None:
        self._respond(time)
        if item.content:
            self._thoughts.append(item.content)
            self.builder.record_step(thought="\n\n".join(self._thoughts))
        if item.sealed is not None:
            self._warnings.add("reasoning", "that cannot be read kept as custom")
            self.builder.custom("reasoning", item.sealed, time=time)

    def _output(self, item: Output, time: int | None) -> None:
        reported = self._durations.pop(item.id, None) if isinstance(item.id, str) else None
        self.builder.result(
            item.id,
            item.result,
            error=item.error,
            blocks=item.blocks,
            duration_ms=reported if item.duration_ms is None else item.duration_ms,
            time=time,
            ends_step=False,
        )
        self._complete = True
        if (self._is_counted or not self.counts) and not self.builder.awaits:
            self.builder.end_step(time=time)

    def _respond(self, time: int | None) -> None:
        """Start a step, unless the model's response continues."""
        if self._marked is not None:
            self._start_turn(time)
        if self.builder.turn is None:
            self._turn = None
        if self.builder.step is None or self._complete:
            self.builder.end_step(time=self.time)
            self.builder.start_step(agent=self._agent, time=time)
            if self.model:
                self.builder.record_step(model_output=text.to_json(self.model, "model"))
            self._complete = self._is_counted = self._called = self._answered = False
            self._counted = None
            self._thoughts = []
        self._quiet = False
        self.error = None

    def _start_turn(self, time: int | None) -> None:
        if self.builder.turn is not None:
            self._end_turn(self.time)
        self._turn, self._marked = self._marked, None
        if self._turn is None:
            self.builder.start_turn(time=time)
        else:
            self.builder.start_turn(id=self._unused(self._turn.id), time=self._turn.time)
        self._quiet = True
        self.error = None

    def _end_turn(self, time: int | None, error: str | None = None) -> None:
        status = RunStatus.SUCCESS if error is None else RunStatus.FAILED
        time = time or self.time
        self.builder.end_step(time=time)
        self.builder.end_turn(status=status, error=error, time=time)
        self._turn = None
        self.error = None

    def _unused(self, id: object) -> str | None:
        if not isinstance(id, str) or not 1 <= len(id) <= MAX_IDENTIFIER or id.startswith("turn-"):
            return None
        id = text.clean(id)
        if id in self._turn_ids:
            self._warnings.add("turn", "got another id, as an earlier one has the same")
            return None
        self._turn_ids.add(id)
        return id

    def _text(self, seq: int) -> None:
        if len(self._texts) < _REMEMBERED:
            self._texts.append(seq)


def _event(message: Message, time: int | None) -> UserMessage | AssistantMessage | SystemMessage:
    fields: dict[str, Any] = {"content": message.content, "timestamp": time}
    if message.role == "user":
        return UserMessage(blocks=message.blocks, **fields)
    if message.role == "assistant":
        return AssistantMessage(blocks=message.blocks, **fields)
    return SystemMessage(**fields)
