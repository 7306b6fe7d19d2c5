"""The messages of LibreChat's exports into events: one of an agent holds its thoughts, texts and tool calls in order.

https://github.com/danny-avila/LibreChat/blob/main/packages/data-provider/src/types/runs.ts
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats import times
from storage.transfer.formats.conversations import Models
from storage.transfer.formats.dialogue import Dialogue
from storage.transfer.formats.foreign import ImportWarnings
from storage.transfer.formats.unreadable import kept
from storage.transfer.formats.values import as_list, as_object, as_text

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
    """The message of that number, from 0; `holder` is the number of the one whose `children` hold it, else -1."""

    number: int
    fields: dict[str, Any]
    place: str
    holder: int


class _Call(NamedTuple):
    id: object
    name: str
    args: JsonText
    output: JsonText | None


@dataclass
class _Answer:
    """One model call: what it said, then the tools that it called."""

    thoughts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)


class MessageWriter:
    """Logs the messages of one path through a conversation."""

    def __init__(self, dialogue: Dialogue, losses: ImportWarnings, models: Models) -> None:
        self.dialogue = dialogue
        self._losses = losses
        self._models = models

    def fork(self, key: str) -> "MessageWriter":
        """A writer in the same state for another session."""
        return MessageWriter(self.dialogue.fork(key), self._losses, self._models)

    def end(self) -> None:
        """Nothing waits at the end of a path."""

    def add(self, node: Message) -> None:
        """Logs a message."""
        time = times.iso(node.fields.get("createdAt"))
        with kept(node.fields, self.dialogue, self._losses, without="children", time=time):
            if node.fields.get("isCreatedByUser") is True:
                self._user(node, time)
            else:
                self._assistant(node, time)
            self._losses.fields("message", node.fields, _FIELDS)

    def _user(self, message: Message, time: int | None) -> None:
        answers = _answers(message)
        said = "".join(each for answer in answers for each in answer.texts)
        blocks = [block for answer in answers for block in answer.blocks]
        if any(answer.calls or answer.thoughts for answer in answers):
            raise errors.BadInput(f"{message.place}: a user's message holds thoughts or calls")
        encoded = _blocks(said, blocks, message)
        self.dialogue.start_turn(time=time)
        self.dialogue.user(said, blocks=encoded, time=time)

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
            self.dialogue.start_step(agent=sender if isinstance(sender, str) and sender else None, time=time)
            self.dialogue.assistant(
                "".join(answer.texts),
                reasoning="\n\n".join(answer.thoughts) or None,
                blocks=blocks,
                interrupted=last and unfinished,
                time=time,
            )
            if last and (tokens := _tokens(fields)) is not None:
                self.dialogue.measure(token_count=tokens)
            self._calls(answer)
        if fields.get("error") is True:
            self.dialogue.end_turn(status=RunStatus.FAILED, error="".join(answers[-1].texts) or "error", time=time)
        elif unfinished:
            self.dialogue.end_turn(status=RunStatus.FAILED, error="unfinished", time=time)
        else:
            self.dialogue.end_turn(time=time)

    def _calls(self, answer: _Answer) -> None:
        for call in answer.calls:
            self.dialogue.call(call.id, call.name, call.args)
        for call in answer.calls:
            if call.output is not None:
                self.dialogue.result(call.id, call.output)


def _answers(message: Message) -> list[_Answer]:
    """What a message holds, a new answer where something is said after calls; at least one."""
    content = message.fields.get("content")
    if not isinstance(content, list) or not content:
        spoken = message.fields.get("text")
        return [_Answer(texts=[as_text("" if spoken is None else spoken, f"{message.place}.text")])]
    answers = [_Answer()]
    for index, part in enumerate(content):
        place = f"{message.place}.content[{index}]"
        _add_part(answers, as_object(part, place), place)
    return answers


def _add_part(answers: list[_Answer], part: dict[str, Any], place: str) -> None:
    kind = part.get("type")
    if kind == "tool_call":
        answers[-1].calls.append(_call(as_object(part.get("tool_call"), f"{place}.tool_call"), f"{place}.tool_call"))
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


def _call(call: dict[str, Any], place: str) -> _Call:
    function = call.get("function")
    given = function if isinstance(function, dict) else call
    args = given.get("args", given.get("arguments"))
    output = given.get("output")
    return _Call(
        id=call.get("id"),
        name=as_text(given.get("name"), f"{place}.name"),
        args=text.to_json("" if args is None else args, f"{place}.args"),
        output=None if output is None else text.to_json(output, f"{place}.output"),
    )


def _blocks(said: str, blocks: list[Any], message: Message) -> JsonText | None:
    """The parts other than texts, after the text; files of the message are some of them."""
    for name in ("files", "attachments"):
        given = as_list(message.fields.get(name) or [], f"{message.place}.{name}")
        blocks = [*blocks, *({"type": "attachment", "attachment": each} for each in given)]
    if not blocks:
        return None
    return text.to_json([*([{"type": "text", "text": said}] if said else []), *blocks], message.place)


def _tokens(fields: dict[str, Any]) -> int | None:
    given = [fields.get("promptTokens"), fields.get("tokenCount")]
    counts = [each for each in given if isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**53]
    return sum(counts) if counts else None
