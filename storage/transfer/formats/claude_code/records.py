"""Decodes a record of a Claude Code log: its position in the tree, and a message, tool results or something else.

Nothing here has state, so a record that breaks the format leaves no traces.
https://github.com/anthropics/claude-code writes the logs; their format is not documented there.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from storage import text
from storage.events import JsonText
from storage.transfer.formats.claude_code.content import (
    Answer,
    Content,
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
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_list, as_object, as_text, nonempty_text

FACTS = ("cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
"""Fields of records that describe the session rather than the record."""
_TREE = {"uuid", "parentUuid", "sourceToolAssistantUUID", "sourceToolUseID", "sessionId", "isSidechain", "agentId"}
_ENVELOPE = {"type", "timestamp", "forkedFrom", *_TREE, *FACTS}
_USER = _ENVELOPE | {"message", "toolUseResult", "isCompactSummary", "isVisibleInTranscriptOnly", "isMeta"}
_ASSISTANT = _ENVELOPE | {"message", "requestId", "isApiErrorMessage", "error"}
_MESSAGE = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
_OUTPUT: tuple[str, ...] = ("model", "id", "stop_reason", "stop_sequence", "usage")
_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), "summary": ("summary", 1)}
_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_WRAPPED = re.compile(r"\s*<(?:command-(?:name|message|args)|local-command-\w+|bash-(?:input|stdout|stderr))>")
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_INTERRUPTED = "[Request interrupted by user"
_LARGEST = 2**53


def read_entry(record: Record, warnings: ImportWarnings) -> Entry:
    """Decode a record. Raises BadInput, with the location, if it breaks the format."""
    location = record.location
    fields = as_object(record.value, location)
    kind = as_text(fields.get("type"), f"{location}: type")
    content: Content
    match kind:
        case "user":
            content = _user(fields, location, warnings)
        case "assistant":
            content = _assistant(fields, location, warnings)
        case _:
            content = _other(kind, fields, location, warnings)
    forked = fields.get("forkedFrom")
    return Entry(
        location=location,
        content=content,
        uuid=nonempty_text(fields.get("uuid")),
        parent=nonempty_text(fields.get("parentUuid")),
        rooted="parentUuid" in fields and fields["parentUuid"] is None,
        session=nonempty_text(fields.get("sessionId")),
        agent=nonempty_text(fields.get("agentId")),
        sidechain=fields.get("isSidechain") is True,
        time=_time(fields, warnings),
        facts={name: found for name in FACTS if (found := nonempty_text(fields.get(name)))},
        forked_from=nonempty_text(forked.get("sessionId")) if isinstance(forked, dict) else None,
    )


def _user(fields: dict[str, Any], location: str, warnings: ImportWarnings) -> Content:
    message = as_object(fields.get("message"), f"{location}: message")
    parts = _parts(message.get("content"), f"{location}: message.content")
    warnings.lost_fields("user record", fields, _USER)
    warnings.lost_fields("user message", message, {"role", "content"})
    results = [part for part in parts if part["type"] == "tool_result"]
    user_text = _user_text(Role.ADDED, [part for part in parts if part["type"] != "tool_result"], location)
    if results:
        rest = user_text if user_text.content or user_text.blocks else None
        return _results(results, fields.get("toolUseResult"), rest, location, warnings)
    if fields.get("isCompactSummary") is True:
        return UserText(Role.SUMMARY, user_text.content, user_text.blocks)
    prompt = UserText(Role.PROMPT, user_text.content, user_text.blocks)
    if fields.get("isMeta") is True:
        return CustomRecord("user/meta", _rest(fields, location), expansion=prompt, user=True)
    if _WRAPPED.match(user_text.content):
        return CustomRecord("user/command", _rest(fields, location), command=_command(user_text.content), user=True)
    return user_text if user_text.role is Role.INTERRUPTION else prompt


def _user_text(role: Role, parts: Sequence[dict[str, Any]], location: str) -> UserText:
    content = _joined(parts, location)
    if content.startswith(_INTERRUPTED):
        role = Role.INTERRUPTION
    return UserText(role, content, _unless_text(parts, location))


def _command(content: str) -> str | None:
    name, arguments = _COMMAND.search(content), _ARGUMENTS.search(content)
    if name is None:
        return None
    return " ".join(found[1].strip() for found in (name, arguments) if found and found[1].strip())


def _results(
    parts: Sequence[dict[str, Any]], copy: object, user_text: UserText | None, location: str, warnings: ImportWarnings
) -> ToolResults:
    more = copy if isinstance(copy, dict) and len(parts) == 1 else {}
    for part in parts:
        warnings.lost_fields("tool result", part, {"type", "tool_use_id", "content", "is_error"})
    return ToolResults(
        results=[_result(part, f"{location}: message.content") for part in parts],
        copy=None if copy is None else text.to_json(copy, f"{location}: toolUseResult"),
        duration_ms=_duration(more),
        truncated=more.get("truncated") is True,
        user_text=user_text,
    )


def _result(part: dict[str, Any], location: str) -> ToolResultPart:
    content, blocks = part.get("content"), None
    if isinstance(content, list):
        parts = _parts(content, f"{location}.content")
        content, blocks = _joined(parts, location), _unless_text(parts, location)
    if part.get("is_error") is True:
        error = content if isinstance(content, str) else text.to_json(content, location)
        return ToolResultPart(part.get("tool_use_id"), None, error, blocks)
    result = None if content is None else text.to_json(content, location)
    return ToolResultPart(part.get("tool_use_id"), result, None, blocks)


def _duration(copy: Mapping[str, Any]) -> float | None:
    for name, factor in (("durationMs", 1), ("totalDurationMs", 1), ("durationSeconds", 1000)):
        value = copy.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return float(value * factor)
    return None


def _assistant(fields: dict[str, Any], location: str, warnings: ImportWarnings) -> Content:
    message = as_object(fields.get("message"), f"{location}: message")
    parts = _parts(message.get("content"), f"{location}: message.content")
    warnings.lost_fields("assistant record", fields, _ASSISTANT)
    warnings.lost_fields("assistant message", message, _MESSAGE)
    output = {name: message[name] for name in _OUTPUT if name in message}
    if "requestId" in fields:
        output["requestId"] = fields["requestId"]
    failed = fields.get("isApiErrorMessage") is True
    return Answer(
        id=nonempty_text(message.get("id")),
        parts=_answer_parts(parts, location, warnings),
        tokens=_tokens(message.get("usage")),
        output=text.to_json(output, f"{location}: message"),
        stop=nonempty_text(message.get("stop_reason")),
        error=(_joined(parts, location) or nonempty_text(fields.get("error")) or "API error") if failed else None,
    )


def _answer_parts(
    parts: Sequence[dict[str, Any]], location: str, warnings: ImportWarnings
) -> list[ThinkingPart | TextPart | ToolCallPart]:
    """The parts in order, with adjacent text parts joined."""
    found: list[ThinkingPart | TextPart | ToolCallPart] = []
    texts: list[dict[str, Any]] = []

    def flush() -> None:
        if texts:
            found.append(TextPart(_joined(texts, location), _unless_text(texts, location)))
            texts.clear()

    for part in parts:
        match part["type"]:
            case "thinking" | "redacted_thinking":
                warnings.lost_fields("thinking", part, {"type", "thinking"})
                flush()
                found.append(ThinkingPart(as_text(part.get("thinking", ""), f"{location}: message.content: thinking")))
            case "tool_use":
                warnings.lost_fields("tool call", part, {"type", "id", "name", "input"})
                flush()
                name = as_text(part.get("name"), f"{location}: message.content: name of a call")
                found.append(
                    ToolCallPart(part.get("id"), name, text.to_json(part.get("input"), f"{location}: input of a call"))
                )
            case _:
                texts.append(part)
    flush()
    return found


def _tokens(usage: object) -> int | None:
    """The sum of input tokens, including cached ones, and output tokens."""
    if not isinstance(usage, dict):
        return None
    counts = [count for name in _TOKENS if type(count := usage.get(name)) is int and 0 <= count < _LARGEST]
    return sum(counts) if counts else None


def _other(kind: str, fields: dict[str, Any], location: str, warnings: ImportWarnings) -> Content:
    match kind, fields.get("attachment"):
        case "attachment", {"type": "queued_command", "prompt": str() | list() as prompt, "commandMode": "prompt"}:
            warnings.lost_fields("queued prompt", fields, _ENVELOPE | {"attachment"})
            return _user_text(Role.ADDED, _parts(prompt, f"{location}: attachment.prompt"), location)
    subtype = nonempty_text(fields.get("subtype"))
    name = f"{kind}/{subtype}" if kind == "system" and subtype else kind
    custom = CustomRecord(name, _rest(fields, location), ends_turn=name == "system/turn_duration")
    if name == "system/compact_boundary" and _keeps(fields.get("compactMetadata")):
        warnings.add("compaction", "kept the last messages, which are replaced here too")
    field, rank = _TITLES.get(kind, ("", 0))
    title = nonempty_text(fields.get(field))
    if title is None or (kind == "summary" and nonempty_text(fields.get("leafUuid")) is None):
        return custom
    return Title(title, rank, nonempty_text(fields.get("leafUuid")) if kind == "summary" else None, custom)


def _keeps(compaction: object) -> bool:
    return isinstance(compaction, dict) and bool(compaction.get("preservedSegment"))


def _rest(fields: Mapping[str, Any], location: str) -> JsonText:
    return text.to_json({name: value for name, value in fields.items() if name not in _ENVELOPE}, location)


def _parts(content: object, location: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = [as_object(part, f"{location}[{index}]") for index, part in enumerate(as_list(content, location))]
    for index, part in enumerate(parts):
        as_text(part.get("type"), f"{location}[{index}].type")
        if part["type"] == "text":
            as_text(part.get("text"), f"{location}[{index}].text")
    return parts


def _joined(parts: Sequence[dict[str, Any]], location: str) -> str:
    return "\n".join(as_text(part.get("text"), f"{location}: text") for part in parts if part["type"] == "text")


def _unless_text(parts: Sequence[dict[str, Any]], location: str) -> JsonText | None:
    """The parts as JSON, unless all are text."""
    return None if all(part["type"] == "text" for part in parts) else text.to_json(parts, location)


def _time(fields: Mapping[str, Any], warnings: ImportWarnings) -> int | None:
    given = fields.get("timestamp")
    time = times.iso(given)
    if time is None and given is not None:
        warnings.add("record", "lost its time, which cannot be read")
    return time
