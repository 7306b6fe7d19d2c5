"""Logs one thread of a Claude Code conversation: a session, a sub-agent, or a branch of either."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import assert_never

from storage import text
from storage.events import CustomEvent, RunStatus, UserMessage
from storage.transfer.formats.claude_code.content import (
    Answer,
    CustomRecord,
    Entry,
    Role,
    TextPart,
    ThinkingPart,
    Title,
    ToolCallPart,
    ToolResultPart,
    ToolResults,
    UserText,
)
from storage.transfer.formats.shared.foreign import ForeignLabel, ImportWarnings, Step
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of

_ANSWERED = ("end_turn", "stop_sequence")
_REFUSED = "refusal"
HELD_BACK = "at the end of the log held back until its message is complete"


@dataclass(slots=True)
class _Message:
    """A model's message whose parts are being read; `held` are thoughts that wait for the text or call after them."""

    id: str | None
    scope: tuple[str | None, str | None]
    held: list[str] = field(default_factory=list)
    calls: bool = False
    has_text: bool = False
    complete: bool = False

    def copy(self) -> "_Message":
        return _Message(self.id, self.scope, list(self.held), self.calls, self.has_text, self.complete)


class Thread:
    """The session `key`, whose records name `session` and, in a sub-agent's log, `agent`.

    A turn runs from a prompt to the answer that ends it. A step is a message of the model, which may take several
    records, with the results of its calls.
    """

    __slots__ = (
        "_answered",
        "_command",
        "_last",
        "_message",
        "_rank",
        "_warnings",
        "agent",
        "builder",
        "facts",
        "key",
        "label",
        "root",
        "session",
        "sidechain",
        "tip",
    )

    def __init__(self, key: str, entry: Entry, warnings: ImportWarnings) -> None:
        self.key = key
        self.session = entry.session
        self.agent = entry.agent
        self.sidechain = entry.sidechain
        self.root = key
        self.tip: int | None = None
        self.facts: Mapping[str, str] = entry.facts
        self.label: str | None = None
        self.builder = LogBuilder(key, warnings)
        self._command: tuple[str, str] | None = None
        self._rank = 0
        self._message: _Message | None = None
        self._last: int | None = None
        self._answered = False
        self._warnings = warnings

    def fork(self, key: str) -> "Thread":
        """Return a thread in the same state for another session, which continues from here."""
        other = copy(self)
        other.key = key
        other.builder = self.builder.fork(key)
        other.label, other._rank = None, 0
        other._message = self._message and self._message.copy()
        return other

    def switch_session(self, entry: Entry) -> None:
        """Expect the records of another session from here on."""
        self.session, self.agent, self.sidechain = entry.session, entry.agent, entry.sidechain
        self.root = self.key

    def expand(self, entry: Entry) -> Entry:
        """Return the entry; if it expands the command before it, return it as the prompt that it stands for."""
        match entry.content:
            case CustomRecord(expansion=UserText() as user_text) if (
                self._command is not None and self._command[0] == entry.parent
            ):
                return replace(entry, content=replace(user_text, query=self._command[1]))
        return entry

    def label_by(self, entry: Entry) -> str | None:
        """Return the label, which the first prompt sets."""
        match entry.content:
            case UserText(role=Role.PROMPT) if self.label is None:
                self.label = label_of(text.clean(entry.content.query or entry.content.content))
        return self.label

    def rename(self, title: Title) -> list[Step]:
        """Return the step that renames the session, unless a title of a higher rank was set or nothing changes."""
        label = label_of(text.clean(title.title))
        if label is None or title.rank < self._rank or label == self.label:
            return []
        self.label, self._rank = label, title.rank
        return [ForeignLabel(self.key, label)]

    def end_open_turn(self) -> None:
        """End the open step and turn: nothing else comes before the next prompt."""
        self._flush_thoughts(interrupted=False)
        self._message = None
        self.builder.end_step(time=self._last)
        if self._answered:
            self.builder.end_turn(time=self._last)
        else:
            self.builder.end_turn(status=RunStatus.FAILED, error="ended without an answer", time=self._last)

    def add(self, entry: Entry) -> list[Step]:
        """Log an entry and return its steps."""
        known = self.label
        content = entry.content
        match content:
            case UserText():
                self._add_user_text(content, entry.time)
            case Answer():
                self._answer(content, entry.agent, entry.time)
            case ToolResults():
                self._add_results(content, entry.time)
            case CustomRecord():
                self._custom(content, entry.time)
                if content.command is not None and entry.uuid is not None:
                    self._command = entry.uuid, content.command
            case Title():
                return self._add_title(content, entry.time)
            case _:
                assert_never(content)
        if not isinstance(content, CustomRecord):
            self._last = self._last if entry.time is None else entry.time
        self._facts(entry)
        label = self.label_by(entry)
        renamed: list[Step] = [ForeignLabel(self.key, label)] if label is not None and label != known else []
        return renamed + self.builder.take_steps()

    def end(self) -> None:
        """Count what is held back."""
        if self._message is not None and self._message.held:
            self._warnings.add("record", HELD_BACK, len(self._message.held))

    def _add_user_text(self, user_text: UserText, time: int | None) -> None:
        match user_text.role:
            case Role.PROMPT:
                self.end_open_turn()
                self._answered = False
                self.builder.start_turn(user_text.query, time=time)
                self.builder.user(user_text.content, blocks=user_text.blocks, time=time)
            case Role.ADDED:
                self._flush_thoughts(interrupted=False)
                self.builder.user(user_text.content, blocks=user_text.blocks, time=time)
            case Role.INTERRUPTION:
                self._flush_thoughts(interrupted=True)
                self._message = None
                error = user_text.content.strip().strip("[]")
                self.builder.end_step(time=time, error=error)
                self.builder.user(user_text.content, blocks=user_text.blocks, time=time)
                self.builder.end_turn(status=RunStatus.FAILED, error=error, time=time)
            case Role.SUMMARY:
                self._flush_thoughts(interrupted=False)
                self._message = None
                self.builder.end_step(time=self._last)
                before = (0, self.builder.head - 1) if self.builder.head else None
                self.builder.add(
                    UserMessage(content=user_text.content, blocks=user_text.blocks, timestamp=time), before
                )

    def _answer(self, answer: Answer, agent: str | None, time: int | None) -> None:
        if answer.error is not None:
            self._fail(answer, answer.error, agent, time)
            return
        message = self._message
        if message is None or answer.id is None or message.id != answer.id:
            self._flush_thoughts(interrupted=False)
            self.builder.end_step(time=self._last)
            self.builder.start_step(agent=agent, time=time)
            message = self._message = _Message(answer.id, self._scope)
            self._answered = False
        for part in answer.parts:
            self._part(message, part, time)
        self._measure(message, answer)
        self._stop(message, answer, time)

    def _part(self, message: _Message, part: ThinkingPart | TextPart | ToolCallPart, time: int | None) -> None:
        match part:
            case ThinkingPart():
                message.held.append(part.content)
            case TextPart():
                if message.has_text:
                    self._warnings.add("answer", "with several texts became several messages")
                message.has_text = True
                self._answered = not message.calls
                self._assistant(message, part.content, part.blocks, time)
            case ToolCallPart():
                if message.held:
                    self._assistant(message, "", None, time)
                message.calls = True
                self._answered = False
                self.builder.call(part.call_id, part.name, part.args, time=time)

    def _assistant(
        self,
        message: _Message,
        content: str,
        blocks: str | None,
        time: int | None,
        *,
        interrupted: bool = False,
    ) -> None:
        reasoning = "\n".join(filter(None, message.held)) or None
        message.held.clear()
        if content or blocks or reasoning or interrupted:
            self.builder.assistant(content, reasoning=reasoning, blocks=blocks, interrupted=interrupted, time=time)

    def _flush_thoughts(self, *, interrupted: bool) -> None:
        """Log the thoughts held back for a part of the message that does not come."""
        if self._message is not None and self._message.held:
            self._assistant(self._message, "", None, self._last, interrupted=interrupted)

    def _measure(self, message: _Message, answer: Answer) -> None:
        if message.scope == self._scope:
            self.builder.record_step(token_count=answer.tokens, model_output=answer.output)

    def _stop(self, message: _Message, answer: Answer, time: int | None) -> None:
        message.complete = message.complete or answer.stop is not None
        last = any(isinstance(part, TextPart) for part in answer.parts) and not message.calls
        if not last or message.scope != self._scope:
            return
        if answer.stop in _ANSWERED:
            self.builder.end_step(time=time)
            self.builder.end_turn(time=time)
        elif answer.stop == _REFUSED:
            self.builder.end_step(time=time)
            self.builder.end_turn(status=RunStatus.FAILED, error=_REFUSED, time=time)

    def _fail(self, answer: Answer, error: str, agent: str | None, time: int | None) -> None:
        """Log a failed model call; the text that reports it is not a message of the model."""
        self._flush_thoughts(interrupted=False)
        self._message = None
        self.builder.end_step(time=self._last)
        self.builder.start_step(agent=agent, time=time)
        self.builder.record_step(model_output=answer.output)
        self.builder.end_step(time=time, error=error)
        self.builder.end_turn(status=RunStatus.FAILED, error=error, time=time)

    def _add_results(self, results: ToolResults, time: int | None) -> None:
        if results.copy is not None:
            self.builder.custom("toolUseResult", results.copy, time=time)
        for result in results.results:
            self._add_result(result, results, time)
        if results.user_text is not None:
            self._add_user_text(results.user_text, time)

    def _add_result(self, result: ToolResultPart, results: ToolResults, time: int | None) -> None:
        self.builder.result(
            result.call_id,
            result.result,
            error=result.error,
            blocks=result.blocks,
            duration_ms=results.duration_ms,
            truncated=results.truncated,
            time=time,
            ends_step=self._message is None or self._message.complete,
        )

    def _custom(self, record: CustomRecord, time: int | None) -> None:
        self.builder.custom(record.name, record.data, time=time)
        if record.ends_turn and self.builder.turn is not None:
            self._last = self._last if time is None else time
            self.end_open_turn()

    def _add_title(self, title: Title, time: int | None) -> list[Step]:
        renamed = self.rename(title) if title.leaf is None else []
        if not renamed and label_of(text.clean(title.title)) != self.label:
            self._custom(title.record, time)
        return renamed + self.builder.take_steps()

    def _facts(self, entry: Entry) -> None:
        """Log session facts that changed or are new, each as a custom event under its own name."""
        for name, value in entry.facts.items():
            if self.facts.get(name) != value:
                self.facts = {**self.facts, name: value}
                self.builder.add(CustomEvent(name=name, data=text.to_json(value, entry.location), timestamp=entry.time))

    @property
    def _scope(self) -> tuple[str | None, str | None]:
        return self.builder.turn, self.builder.step
