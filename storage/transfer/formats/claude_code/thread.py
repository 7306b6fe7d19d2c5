"""The log of one line of a Claude Code conversation: a session, a sub-agent, or a branch of one of them."""

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
    """A model's message whose parts are being read; `held` are thoughts that wait for what they lead to."""

    id: str | None
    scope: tuple[str | None, str | None]
    held: list[str] = field(default_factory=list)
    calls: bool = False
    told: bool = False
    complete: bool = False

    def copy(self) -> "_Message":
        return _Message(self.id, self.scope, list(self.held), self.calls, self.told, self.complete)


class Thread:
    """The session `key`, whose records name `session` and, in a sub-agent's log, `agent`.

    A turn runs from a prompt to the answer that ends it. A step is a message of the model, which several records may
    tell, with the results of its calls.
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
        """The same state for another session, which begins where this one stands."""
        other = copy(self)
        other.key = key
        other.builder = self.builder.fork(key)
        other.label, other._rank = None, 0
        other._message = self._message and self._message.copy()
        return other

    def moved(self, entry: Entry) -> None:
        """From here on the records are those of another session."""
        self.session, self.agent, self.sidechain = entry.session, entry.agent, entry.sidechain
        self.root = self.key

    def expanded(self, entry: Entry) -> Entry:
        """The entry, or where it tells what the command before it stands for, the prompt that it is."""
        match entry.content:
            case CustomRecord(expansion=UserText() as said) if (
                self._command is not None and self._command[0] == entry.parent
            ):
                return replace(entry, content=replace(said, query=self._command[1]))
        return entry

    def label_by(self, entry: Entry) -> str | None:
        """The label that an entry gives; it is kept."""
        match entry.content:
            case UserText(role=Role.PROMPT) if self.label is None:
                self.label = label_of(text.clean(entry.content.query or entry.content.content))
        return self.label

    def rename(self, titled: Title) -> list[Step]:
        """The step that gives the session a title, if it is a new one that counts."""
        title = label_of(text.clean(titled.title))
        if title is None or titled.rank < self._rank or title == self.label:
            return []
        self.label, self._rank = title, titled.rank
        return [ForeignLabel(self.key, title)]

    def settle(self) -> None:
        """Nothing is to come before the next prompt: what is open ends."""
        self._tell(interrupted=False)
        self._message = None
        self.builder.end_step(time=self._last)
        if self._answered:
            self.builder.end_turn(time=self._last)
        else:
            self.builder.end_turn(status=RunStatus.FAILED, error="ended without an answer", time=self._last)

    def add(self, entry: Entry) -> list[Step]:
        """The steps of an entry."""
        known = self.label
        content = entry.content
        match content:
            case UserText():
                self._say(content, entry.time)
            case Answer():
                self._answer(content, entry.agent, entry.time)
            case ToolResults():
                self._take(content, entry.time)
            case CustomRecord():
                self._note(content, entry.time)
                if content.command is not None and entry.uuid is not None:
                    self._command = entry.uuid, content.command
            case Title():
                return self._title(content, entry.time)
            case _:
                assert_never(content)
        if not isinstance(content, CustomRecord):
            self._last = self._last if entry.time is None else entry.time
        self._facts(entry)
        label = self.label_by(entry)
        renamed: list[Step] = [ForeignLabel(self.key, label)] if label is not None and label != known else []
        return renamed + self.builder.take_steps()

    def end(self) -> None:
        """Counts what waits for more."""
        if self._message is not None and self._message.held:
            self._warnings.add("record", HELD_BACK, len(self._message.held))

    def _say(self, said: UserText, time: int | None) -> None:
        match said.role:
            case Role.PROMPT:
                self.settle()
                self._answered = False
                self.builder.start_turn(said.query, time=time)
                self.builder.user(said.content, blocks=said.blocks, time=time)
            case Role.ADDED:
                self._tell(interrupted=False)
                self.builder.user(said.content, blocks=said.blocks, time=time)
            case Role.INTERRUPTION:
                self._tell(interrupted=True)
                self._message = None
                error = said.content.strip().strip("[]")
                self.builder.end_step(time=time, error=error)
                self.builder.user(said.content, blocks=said.blocks, time=time)
                self.builder.end_turn(status=RunStatus.FAILED, error=error, time=time)
            case Role.SUMMARY:
                self._tell(interrupted=False)
                self._message = None
                self.builder.end_step(time=self._last)
                before = (0, self.builder.head - 1) if self.builder.head else None
                self.builder.add(UserMessage(content=said.content, blocks=said.blocks, timestamp=time), before)

    def _answer(self, answer: Answer, agent: str | None, time: int | None) -> None:
        if answer.error is not None:
            self._fail(answer, answer.error, agent, time)
            return
        message = self._message
        if message is None or answer.id is None or message.id != answer.id:
            self._tell(interrupted=False)
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
                if message.told:
                    self._warnings.add("answer", "in several texts became as many messages")
                message.told = True
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

    def _tell(self, *, interrupted: bool) -> None:
        """What was held back for a part of the message that does not come."""
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
        """The model could not be reached; the text that says so is no message of the model's."""
        self._tell(interrupted=False)
        self._message = None
        self.builder.end_step(time=self._last)
        self.builder.start_step(agent=agent, time=time)
        self.builder.record_step(model_output=answer.output)
        self.builder.end_step(time=time, error=error)
        self.builder.end_turn(status=RunStatus.FAILED, error=error, time=time)

    def _take(self, results: ToolResults, time: int | None) -> None:
        if results.copy is not None:
            self.builder.custom("toolUseResult", results.copy, time=time)
        for result in results.results:
            self._result(result, results, time)
        if results.said is not None:
            self._say(results.said, time)

    def _result(self, result: ToolResultPart, results: ToolResults, time: int | None) -> None:
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

    def _note(self, noted: CustomRecord, time: int | None) -> None:
        self.builder.custom(noted.name, noted.data, time=time)
        if noted.ends_turn and self.builder.turn is not None:
            self._last = self._last if time is None else time
            self.settle()

    def _title(self, titled: Title, time: int | None) -> list[Step]:
        renamed = self.rename(titled) if titled.leaf is None else []
        if not renamed and label_of(text.clean(titled.title)) != self.label:
            self._note(titled.noted, time)
        return renamed + self.builder.take_steps()

    def _facts(self, entry: Entry) -> None:
        """Facts that differ from those that the session began with, or that are new, each under its own name."""
        for name, value in entry.facts.items():
            if self.facts.get(name) != value:
                self.facts = {**self.facts, name: value}
                self.builder.add(CustomEvent(name=name, data=text.to_json(value, entry.location), timestamp=entry.time))

    @property
    def _scope(self) -> tuple[str | None, str | None]:
        return self.builder.turn, self.builder.step
