"""Converts the messages of ChatGPT's exports to events. An assistant message whose recipient is a tool is a tool call.

A tool message does not name its call: it answers the open call to the tool that wrote it, or else the last one.
Thoughts are messages of their own before the answer that they led to, and are held back until it comes.
"""

from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText, RunStatus
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.conversations import Models
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.unreadable import keep_unreadable
from storage.transfer.formats.shared.values import as_object, as_text

_FIELDS = ("id", "author", "create_time", "update_time", "content", "status", "end_turn", "weight", "recipient")
_METADATA = (
    "is_visually_hidden_from_conversation",
    "finish_details",
    "attachments",
    "model_slug",
    "default_model_slug",
    "parent_id",
    "is_complete",
    "timestamp_",
)
_CONTENT = ("content_type", "parts", "text")
_SPOKEN = frozenset({"text", "multimodal_text", "code"})
_OUTPUTS = frozenset({"text", "multimodal_text", "execution_output"})
_FINISHED = frozenset({"finished_successfully", None})
_CUT_OFF = frozenset({"interrupted", "max_tokens"})


class Node(NamedTuple):
    """A node of a conversation's mapping."""

    id: str
    fields: dict[str, Any]


class _Message(NamedTuple):
    """A message of the export. `kind` is its content type, `whole` all of it as JSON, `time` is in ms since 1970."""

    id: str
    role: str
    name: str | None
    kind: str
    content: dict[str, Any]
    metadata: dict[str, Any]
    fields: dict[str, Any]
    whole: JsonText
    time: int | None
    location: str


class _Content(NamedTuple):
    text: str
    blocks: JsonText | None


class MessageWriter:
    """Logs the messages of one path through a conversation."""

    def __init__(self, builder: LogBuilder, warnings: ImportWarnings, models: Models, location: str) -> None:
        self.builder = builder
        self._warnings = warnings
        self._models = models
        self._location = location
        self._thoughts: list[_Message] = []
        self._waiting: list[tuple[str, str]] = []
        self._answered: tuple[str, str] | None = None

    def fork(self, key: str) -> "MessageWriter":
        """Return a writer in the same state, for another session."""
        other = MessageWriter(self.builder.fork(key), self._warnings, self._models, self._location)
        other._thoughts = self._thoughts.copy()
        other._waiting = self._waiting.copy()
        other._answered = self._answered
        return other

    def end(self) -> None:
        """Count the thoughts that have no answer yet."""
        if self._thoughts:
            self._warnings.add("message", "with thoughts held back until its answer arrives", len(self._thoughts))

    def add(self, node: Node) -> None:
        """Log the message of a node, if it has one."""
        given = node.fields.get("message")
        if given is None:
            return
        location = f"{self._location} {node.id}"
        with keep_unreadable(given, self.builder, self._warnings):
            message = _message(node.id, given, text.to_json(given, location), location)
            self._log(message)
            self._warnings.lost_fields("message", message.fields, (*_FIELDS, "metadata"))
            self._warnings.lost_fields("metadata record", message.metadata, _METADATA)

    def _log(self, message: _Message) -> None:
        match message.role:
            case "assistant":
                self._assistant(message)
            case "user":
                self._user(message)
            case "tool":
                self._tool(message)
            case "system" if message.kind in _SPOKEN:
                content = self._content_of(message)
                self._release()
                self.builder.system(content.text, time=message.time)
                if content.blocks is not None:
                    self._warnings.add("system message", "lost its parts other than text")
            case _:
                self._custom(message)

    def _custom(self, message: _Message) -> None:
        self._warnings.add("message", "of a kind that has no event kept as custom")
        self.builder.custom(message.kind, message.whole, time=message.time)

    def _user(self, message: _Message) -> None:
        if message.kind == "user_editable_context":
            given = [message.content.get("user_profile"), message.content.get("user_instructions")]
            self._release()
            self.builder.system(
                "\n\n".join(each for each in given if isinstance(each, str) and each), time=message.time
            )
            self._warnings.add("user message", "with custom instructions became a system message")
            return
        if message.kind not in _SPOKEN:
            self._custom(message)
            return
        content = self._content_of(message)
        self._release()
        if message.metadata.get("is_visually_hidden_from_conversation") is not True:
            self.builder.start_turn(time=message.time)
        self.builder.user(content.text, blocks=content.blocks, time=message.time)

    def _assistant(self, message: _Message) -> None:
        recipient = message.fields.get("recipient")
        calls = isinstance(recipient, str) and recipient not in ("all", "")
        if message.kind == "thoughts":
            self._thoughts.append(message)
            return
        if message.kind not in _SPOKEN:
            self._custom(message)
            return
        content = self._content_of(message)
        reasoning = "\n\n".join(filter(None, map(_thoughts, self._thoughts))) or None
        began = self._thoughts[0].time if self._thoughts else message.time
        self._thoughts.clear()
        if isinstance(slug := message.metadata.get("model_slug"), str) and slug:
            self._models[text.clean(slug)] = None
        stop = _stop(message)
        self.builder.start_step(agent=message.name, time=began)
        self.builder.assistant(
            "" if calls else content.text,
            reasoning=reasoning,
            blocks=content.blocks,
            interrupted=stop is not None,
            time=message.time,
        )
        if calls:
            self.builder.call(
                message.id, str(recipient), text.to_json(content.text, message.location), time=message.time
            )
            self._waiting.append((str(recipient), message.id))
            return
        self.builder.end_step(time=times.seconds(message.fields.get("update_time")))
        if stop is not None:
            self.builder.end_turn(status=RunStatus.FAILED, error=stop, time=message.time)
        elif message.fields.get("end_turn") is not False:
            self.builder.end_turn(time=message.time)

    def _tool(self, message: _Message) -> None:
        plain = message.kind in _OUTPUTS
        content = (
            self._content_of(message) if plain else _Content(text.to_json(message.content, message.location), None)
        )
        result = text.to_json(content.text, message.location) if plain else content.text
        self._release()
        error = message.content.get("text") if message.kind == "system_error" else None
        self.builder.result(
            self._call_of(message),
            None if isinstance(error, str) else result,
            error=error if isinstance(error, str) else None,
            blocks=content.blocks,
            duration_ms=_duration(message.metadata.get("aggregate_result")),
            time=message.time,
        )

    def _call_of(self, message: _Message) -> str:
        for index, (recipient, id) in enumerate(self._waiting):
            if message.name is None or _tool_of(recipient) == _tool_of(message.name):
                del self._waiting[index]
                self._answered = (_tool_of(recipient), id)
                return id
        if self._answered is not None and (message.name is None or self._answered[0] == _tool_of(message.name)):
            self._warnings.add("tool message", "that answers a call again is not on the surface")
            return self._answered[1]
        self._warnings.add("tool message", "without a call")
        return message.id

    def _release(self) -> None:
        """Log thoughts that led to no answer."""
        for message in self._thoughts:
            self._custom(message)
        self._thoughts.clear()

    def _content_of(self, message: _Message) -> _Content:
        content = message.content
        parts = content.get("parts")
        if not isinstance(parts, list):
            parts = [as_text(content.get("text"), f"{message.location}.content")]
        self._warnings.lost_fields("message content", content, _CONTENT)
        if message.role == "user" and isinstance(attached := message.metadata.get("attachments"), list):
            parts = [*parts, *({"type": "attachment", "attachment": each} for each in attached)]
        texts = [_text_of(part) for part in parts]
        blocks = None
        if not all(isinstance(part, str) for part in parts):
            known = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
            blocks = text.to_json(known, message.location)
        return _Content("\n".join(filter(None, texts)), blocks)


def _message(id: str, value: object, whole: JsonText, location: str) -> _Message:
    fields = as_object(value, location)
    author = as_object(fields.get("author"), f"{location}.author")
    content = as_object(fields.get("content"), f"{location}.content")
    kind = content.get("content_type", "text")
    if not isinstance(kind, str) or not isinstance(name := author.get("name"), str | None):
        raise errors.BadInput(f"{location}: content_type and the author's name must be strings")
    metadata = fields.get("metadata")
    return _Message(
        id=id or "message",
        role=as_text(author.get("role"), f"{location}.author.role"),
        name=name or None,
        kind=kind,
        content=content,
        metadata=metadata if isinstance(metadata, dict) else {},
        fields=fields,
        whole=whole,
        time=times.seconds(fields.get("create_time")),
        location=location,
    )


def _text_of(part: object) -> str | None:
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
        part = part.get("text")
    return part if isinstance(part, str) else None


def _thoughts(message: _Message) -> str:
    given = message.content.get("thoughts")
    thoughts = [thought for thought in given if isinstance(thought, dict)] if isinstance(given, list) else []
    texts = [thought.get(name) for thought in thoughts for name in ("summary", "content")]
    return "\n\n".join(each for each in texts if isinstance(each, str) and each)


def _stop(message: _Message) -> str | None:
    """Why an answer was cut off, if it was."""
    details = message.metadata.get("finish_details")
    kind = details.get("type") if isinstance(details, dict) else None
    if isinstance(kind, str) and kind in _CUT_OFF:
        return kind
    status = message.fields.get("status")
    return status if isinstance(status, str) and status not in _FINISHED else None


def _duration(run: object) -> float | None:
    """How long the execution of code took, in ms."""
    if not isinstance(run, dict):
        return None
    start, end = times.seconds(run.get("start_time")), times.seconds(run.get("end_time"))
    return None if start is None or end is None or end < start else end - start


def _tool_of(name: str) -> str:
    return name.partition(".")[0]
