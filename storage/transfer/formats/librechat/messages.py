"""Converts the messages of LibreChat's exports to events. An agent's message has its thoughts, texts and tool calls.

https://github.com/danny-avila/LibreChat/blob/main/packages/data-provider/src/types/runs.ts
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.conversations import Models
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.unreadable import keep_unreadable
from storage.transfer.formats.shared.values import as_list, as_object, as_text

_FIELDS = (
    "messageId",
    "parentMessageId",
    "conversationId",
    "isCreatedByUser",
    "sender",
    "text",
    "content",
    "children",
    "createdAt",
    "tokenCount",
    "promptTokens",
    "error",
    "unfinished",
    "files",
    "attachments",
    "model",
)


class Message(NamedTuple):
    """A message and its number from 0. `container` is the number of the message whose `children` hold it, else -1."""

    number: int
    fields: dict[str, Any]
    location: str
    container: int


class _Call(NamedTuple):
    id: object
    name: str
    args: JsonText
    output: JsonText | None


@dataclass
class _Answer:
    """One model call: its thoughts and texts, then its tool calls."""

    thoughts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)


class MessageWriter:
    """Logs the messages of one path through a conversation."""

    def __init__(self, builder: LogBuilder, warnings: ImportWarnings, models: Models) -> None:
        self.builder = builder
        self._warnings = warnings
        self._models = models

    def fork(self, key: str) -> "MessageWriter":
        """Return a writer in the same state, for another session."""
        return MessageWriter(self.builder.fork(key), self._warnings, self._models)

    def end(self) -> None:
        """Do nothing: no message waits for another."""

    def add(self, node: Message) -> None:
        """Log a message."""
        time = times.iso(node.fields.get("createdAt"))
        with keep_unreadable(node.fields, self.builder, self._warnings, without="children", time=time):
            if node.fields.get("isCreatedByUser") is True:
                self._user(node, time)
            else:
                self._assistant(node, time)
            self._warnings.lost_fields("message", node.fields, _FIELDS)

    def _user(self, message: Message, time: int | None) -> None:
        answers = _answers(message)
        content = "".join(each for answer in answers for each in answer.texts)
        blocks = [block for answer in answers for block in answer.blocks]
        if any(answer.calls or answer.thoughts for answer in answers):
            raise errors.BadInput(f"{message.location}: a user's message holds thoughts or calls")
        encoded = _blocks(content, blocks, message)
        self.builder.start_turn(time=time)
        self.builder.user(content, blocks=encoded, time=time)

    def _assistant(self, message: Message, time: int | None) -> None:
        fields = message.fields
        answers = _answers(message)
        encoded = [_blocks("".join(answer.texts), answer.blocks, message) for answer in answers]
        sender = fields.get("sender")
        if isinstance(model := fields.get("model"), str) and model:
            self._models[text.clean(model)] = None
        unfinished = fields.get("unfinished") is True
        for answer, blocks in zip(answers, encoded, strict=True):
            last = answer is answers[-1]
            self.builder.start_step(agent=sender if isinstance(sender, str) and sender else None, time=time)
            self.builder.assistant(
                "".join(answer.texts),
                reasoning="\n\n".join(answer.thoughts) or None,
                blocks=blocks,
                interrupted=last and unfinished,
                time=time,
            )
            if last and (tokens := _tokens(fields)) is not None:
                self.builder.record_step(token_count=tokens)
            self._calls(answer)
        if fields.get("error") is True:
            self.builder.end_turn(status=RunStatus.FAILED, error="".join(answers[-1].texts) or "error", time=time)
        elif unfinished:
            self.builder.end_turn(status=RunStatus.FAILED, error="unfinished", time=time)
        else:
            self.builder.end_turn(time=time)

    def _calls(self, answer: _Answer) -> None:
        for call in answer.calls:
            self.builder.call(call.id, call.name, call.args)
        for call in answer.calls:
            if call.output is not None:
                self.builder.result(call.id, call.output)


def _answers(message: Message) -> list[_Answer]:
    """The model calls of a message, at least one; content after tool calls begins a new one."""
    content = message.fields.get("content")
    if not isinstance(content, list) or not content:
        content = message.fields.get("text")
        return [_Answer(texts=[as_text("" if content is None else content, f"{message.location}.text")])]
    answers = [_Answer()]
    for index, part in enumerate(content):
        location = f"{message.location}.content[{index}]"
        _add_part(answers, as_object(part, location), location)
    return answers


def _add_part(answers: list[_Answer], part: dict[str, Any], location: str) -> None:
    kind = part.get("type")
    if kind == "tool_call":
        answers[-1].calls.append(
            _call(as_object(part.get("tool_call"), f"{location}.tool_call"), f"{location}.tool_call")
        )
        return
    if answers[-1].calls:
        answers.append(_Answer())
    held = part.get(kind) if isinstance(kind, str) else None
    if isinstance(held, dict) and isinstance(held.get("value"), str):
        held = held["value"]
    if kind == "text" and isinstance(held, str):
        answers[-1].texts.append(held)
    elif kind == "think" and isinstance(held, str):
        answers[-1].thoughts.append(held)
    else:
        answers[-1].blocks.append(part)


def _call(call: dict[str, Any], location: str) -> _Call:
    function = call.get("function")
    given = function if isinstance(function, dict) else call
    args = given.get("args", given.get("arguments"))
    output = given.get("output")
    return _Call(
        id=call.get("id"),
        name=as_text(given.get("name"), f"{location}.name"),
        args=text.to_json("" if args is None else args, f"{location}.args"),
        output=None if output is None else text.to_json(output, f"{location}.output"),
    )


def _blocks(content: str, blocks: list[Any], message: Message) -> JsonText | None:
    """The content as JSON if there are parts other than text: the text, then those parts and the message's files."""
    for name in ("files", "attachments"):
        given = as_list(message.fields.get(name) or [], f"{message.location}.{name}")
        blocks = [*blocks, *({"type": "attachment", "attachment": each} for each in given)]
    if not blocks:
        return None
    return text.to_json([*([{"type": "text", "text": content}] if content else []), *blocks], message.location)


def _tokens(fields: dict[str, Any]) -> int | None:
    given = [fields.get("promptTokens"), fields.get("tokenCount")]
    counts = [each for each in given if isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**53]
    return sum(counts) if counts else None
