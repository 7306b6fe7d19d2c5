"""What a record of a Claude Code log says: its place in the tree, and a message, results or something else.

Nothing here has a state, so that a record that breaks the format leaves none behind.
https://github.com/anthropics/claude-code writes the logs; their format is not documented there.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from storage import text
from storage.events import JsonText
from storage.transfer.formats import times
from storage.transfer.formats.claude_code.content import (
    Answer,
    Called,
    Content,
    Entry,
    Noted,
    Result,
    Results,
    Role,
    Said,
    Thought,
    Titled,
    Told,
)
from storage.transfer.formats.foreign import ImportWarnings
from storage.transfer.formats.records import Record
from storage.transfer.formats.values import as_list, as_object, as_text, some_text

FACTS = ("cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
"""Fields of records that tell of the session rather than of the record."""
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


def entry(record: Record, losses: ImportWarnings) -> Entry:
    """What a record says. Raises BadInput, naming the place, for what breaks the format."""
    place = record.place
    fields = as_object(record.value, place)
    kind = as_text(fields.get("type"), f"{place}: type")
    content: Content
    match kind:
        case "user":
            content = _user(fields, place, losses)
        case "assistant":
            content = _assistant(fields, place, losses)
        case _:
            content = _other(kind, fields, place, losses)
    forked = fields.get("forkedFrom")
    return Entry(
        place=place,
        content=content,
        uuid=some_text(fields.get("uuid")),
        parent=some_text(fields.get("parentUuid")),
        rooted="parentUuid" in fields and fields["parentUuid"] is None,
        session=some_text(fields.get("sessionId")),
        agent=some_text(fields.get("agentId")),
        sidechain=fields.get("isSidechain") is True,
        time=_time(fields, losses),
        facts={name: found for name in FACTS if (found := some_text(fields.get(name)))},
        forked_from=some_text(forked.get("sessionId")) if isinstance(forked, dict) else None,
    )


def _user(fields: dict[str, Any], place: str, losses: ImportWarnings) -> Content:
    message = as_object(fields.get("message"), f"{place}: message")
    parts = _parts(message.get("content"), f"{place}: message.content")
    losses.fields("user record", fields, _USER)
    losses.fields("user message", message, {"role", "content"})
    results = [part for part in parts if part["type"] == "tool_result"]
    said = _said(Role.ADDED, [part for part in parts if part["type"] != "tool_result"], place)
    if results:
        rest = said if said.content or said.blocks else None
        return _results(results, fields.get("toolUseResult"), rest, place, losses)
    if fields.get("isCompactSummary") is True:
        return Said(Role.SUMMARY, said.content, said.blocks)
    prompt = Said(Role.PROMPT, said.content, said.blocks)
    if fields.get("isMeta") is True:
        return Noted("user/meta", _rest(fields, place), expansion=prompt, user=True)
    if _WRAPPED.match(said.content):
        return Noted("user/command", _rest(fields, place), command=_command(said.content), user=True)
    return said if said.role is Role.INTERRUPTION else prompt


def _said(role: Role, parts: Sequence[dict[str, Any]], place: str) -> Said:
    content = _joined(parts, place)
    if content.startswith(_INTERRUPTED):
        role = Role.INTERRUPTION
    return Said(role, content, _unless_text(parts, place))


def _command(content: str) -> str | None:
    name, arguments = _COMMAND.search(content), _ARGUMENTS.search(content)
    if name is None:
        return None
    return " ".join(found[1].strip() for found in (name, arguments) if found and found[1].strip())


def _results(
    parts: Sequence[dict[str, Any]], copy: object, said: Said | None, place: str, losses: ImportWarnings
) -> Results:
    more = copy if isinstance(copy, dict) and len(parts) == 1 else {}
    for part in parts:
        losses.fields("tool result", part, {"type", "tool_use_id", "content", "is_error"})
    return Results(
        results=[_result(part, f"{place}: message.content") for part in parts],
        copy=None if copy is None else text.to_json(copy, f"{place}: toolUseResult"),
        duration_ms=_duration(more),
        truncated=more.get("truncated") is True,
        said=said,
    )


def _result(part: dict[str, Any], place: str) -> Result:
    content, blocks = part.get("content"), None
    if isinstance(content, list):
        parts = _parts(content, f"{place}.content")
        content, blocks = _joined(parts, place), _unless_text(parts, place)
    if part.get("is_error") is True:
        error = content if isinstance(content, str) else text.to_json(content, place)
        return Result(part.get("tool_use_id"), None, error, blocks)
    result = None if content is None else text.to_json(content, place)
    return Result(part.get("tool_use_id"), result, None, blocks)


def _duration(copy: Mapping[str, Any]) -> float | None:
    for name, factor in (("durationMs", 1), ("totalDurationMs", 1), ("durationSeconds", 1000)):
        value = copy.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return float(value * factor)
    return None


def _assistant(fields: dict[str, Any], place: str, losses: ImportWarnings) -> Content:
    message = as_object(fields.get("message"), f"{place}: message")
    parts = _parts(message.get("content"), f"{place}: message.content")
    losses.fields("assistant record", fields, _ASSISTANT)
    losses.fields("assistant message", message, _MESSAGE)
    output = {name: message[name] for name in _OUTPUT if name in message}
    if "requestId" in fields:
        output["requestId"] = fields["requestId"]
    failed = fields.get("isApiErrorMessage") is True
    return Answer(
        id=some_text(message.get("id")),
        parts=_answer_parts(parts, place, losses),
        tokens=_tokens(message.get("usage")),
        output=text.to_json(output, f"{place}: message"),
        stop=some_text(message.get("stop_reason")),
        error=(_joined(parts, place) or some_text(fields.get("error")) or "API error") if failed else None,
    )


def _answer_parts(parts: Sequence[dict[str, Any]], place: str, losses: ImportWarnings) -> list[Thought | Told | Called]:
    """The parts in order, neighbours that are told joined."""
    found: list[Thought | Told | Called] = []
    told: list[dict[str, Any]] = []

    def tell() -> None:
        if told:
            found.append(Told(_joined(told, place), _unless_text(told, place)))
            told.clear()

    for part in parts:
        match part["type"]:
            case "thinking" | "redacted_thinking":
                losses.fields("thinking", part, {"type", "thinking"})
                tell()
                found.append(Thought(as_text(part.get("thinking", ""), f"{place}: message.content: thinking")))
            case "tool_use":
                losses.fields("tool call", part, {"type", "id", "name", "input"})
                tell()
                name = as_text(part.get("name"), f"{place}: message.content: name of a call")
                found.append(Called(part.get("id"), name, text.to_json(part.get("input"), f"{place}: input of a call")))
            case _:
                told.append(part)
    tell()
    return found


def _tokens(usage: object) -> int | None:
    """What went into the model, from its cache too, and what came out."""
    if not isinstance(usage, dict):
        return None
    counts = [count for name in _TOKENS if type(count := usage.get(name)) is int and 0 <= count < _LARGEST]
    return sum(counts) if counts else None


def _other(kind: str, fields: dict[str, Any], place: str, losses: ImportWarnings) -> Content:
    match kind, fields.get("attachment"):
        case "attachment", {"type": "queued_command", "prompt": str() | list() as prompt, "commandMode": "prompt"}:
            losses.fields("queued prompt", fields, _ENVELOPE | {"attachment"})
            return _said(Role.ADDED, _parts(prompt, f"{place}: attachment.prompt"), place)
    subtype = some_text(fields.get("subtype"))
    name = f"{kind}/{subtype}" if kind == "system" and subtype else kind
    noted = Noted(name, _rest(fields, place), ends_turn=name == "system/turn_duration")
    if name == "system/compact_boundary" and _keeps(fields.get("compactMetadata")):
        losses.add("compaction", "kept the last messages, which are replaced here too")
    field, rank = _TITLES.get(kind, ("", 0))
    title = some_text(fields.get(field))
    if title is None or (kind == "summary" and some_text(fields.get("leafUuid")) is None):
        return noted
    return Titled(title, rank, some_text(fields.get("leafUuid")) if kind == "summary" else None, noted)


def _keeps(compaction: object) -> bool:
    return isinstance(compaction, dict) and bool(compaction.get("preservedSegment"))


def _rest(fields: Mapping[str, Any], place: str) -> JsonText:
    return text.to_json({name: value for name, value in fields.items() if name not in _ENVELOPE}, place)


def _parts(content: object, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = [as_object(part, f"{place}[{index}]") for index, part in enumerate(as_list(content, place))]
    for index, part in enumerate(parts):
        as_text(part.get("type"), f"{place}[{index}].type")
        if part["type"] == "text":
            as_text(part.get("text"), f"{place}[{index}].text")
    return parts


def _joined(parts: Sequence[dict[str, Any]], place: str) -> str:
    return "\n".join(as_text(part.get("text"), f"{place}: text") for part in parts if part["type"] == "text")


def _unless_text(parts: Sequence[dict[str, Any]], place: str) -> JsonText | None:
    """The parts as JSON, unless all are text."""
    return None if all(part["type"] == "text" for part in parts) else text.to_json(parts, place)


def _time(fields: Mapping[str, Any], losses: ImportWarnings) -> int | None:
    given = fields.get("timestamp")
    time = times.iso(given)
    if time is None and given is not None:
        losses.add("record", "lost its time, which cannot be read")
    return time
