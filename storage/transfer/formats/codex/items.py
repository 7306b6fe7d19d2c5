"""Decodes the items of Codex rollouts that the model sees: messages, reasoning, calls and their outputs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from storage import errors, text
from storage.events import JsonText
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.json_decoding import decode
from storage.transfer.formats.shared.values import as_text, measure

_CALLS = {
    "function_call": ("name", "arguments"),
    "custom_tool_call": ("name", "input"),
    "local_shell_call": (None, "action"),
}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_KNOWN = {
    "message": ("role", "content"),
    "reasoning": ("summary", "content", "encrypted_content"),
    "function_call": ("name", "arguments", "call_id"),
    "custom_tool_call": ("name", "input", "call_id"),
    "local_shell_call": ("action", "call_id"),
    **dict.fromkeys(_OUTPUTS, ("call_id", "output")),
}
_WALL_TIME = re.compile(r"^Wall time: ([0-9]+(?:\.[0-9]+)?) seconds$", re.MULTILINE)
_HEADER = 400
"""Number of characters at the start of an output in which the tool reports its duration."""
_INJECTED = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<skill>",
    "<user_shell_command>",
)


class Message(NamedTuple):
    """A message of `role`; `blocks` are its parts unless they are a single text."""

    role: str
    content: str
    blocks: JsonText | None

    @property
    def injected(self) -> bool:
        """Whether Codex wrote it in the user's name: instructions, the environment, notices."""
        return self.content.lstrip().startswith(_INJECTED)


class Reasoning(NamedTuple):
    """The readable part of the model's reasoning; `sealed` is the item as JSON if some of it is not readable."""

    content: str
    sealed: JsonText | None


class Call(NamedTuple):
    """A tool call that an output will answer."""

    id: object
    name: str
    args: JsonText


class Output(NamedTuple):
    """The output of a call: either `result` or `error`."""

    id: object
    result: JsonText | None
    error: str | None
    blocks: JsonText | None
    duration_ms: float | None


class OtherItem(NamedTuple):
    """An item without an event type; `call` is true if the model's provider ran a tool."""

    name: str
    data: JsonText
    call: bool


Item = Message | Reasoning | Call | Output | OtherItem


def item(payload: Mapping[str, Any], location: str, warnings: ImportWarnings, *known: str) -> Item:
    """Decode an item and count its fields that are lost, other than `known`. Raises BadInput with the location."""
    kind = as_text(payload.get("type"), f"{location}: type")
    found: Item
    match kind:
        case "message":
            content, blocks = content_of(payload.get("content"), f"{location}: content")
            found = Message(as_text(payload.get("role"), f"{location}: role"), content, blocks)
        case "reasoning":
            found = _reasoning(payload, location)
        case _ if kind in _CALLS:
            found = _call(kind, payload, location)
        case _ if kind in _OUTPUTS:
            found = _output(payload, location)
        case _:
            warnings.add("record", "of another type kept as custom")
            return OtherItem(kind, text.to_json(_without_type(payload), location), kind.endswith("_call"))
    warnings.lost_fields(kind, payload, (*known, "type", *_KNOWN[kind]))
    return found


def content_of(content: object, location: str) -> tuple[str, JsonText | None]:
    """Return the text of a message or an output, and its parts unless they are a single text."""
    match content:
        case None:
            return "", None
        case str():
            return content, None
        case list():
            texts = [part["text"] for part in content if _is_text(part)]
            single = len(texts) == len(content) == 1
            return "\n".join(texts), None if single or not content else text.to_json(content, location)
    raise errors.BadInput(f"{location}: must be a string, a list of parts or null")


def tokens(info: object) -> tuple[float | None, float | None]:
    """Return the tokens of the last call, input plus output, and those of all calls, from a token count."""
    match info:
        case {"last_token_usage": {"input_tokens": given, "output_tokens": got}, **rest}:
            total = rest.get("total_token_usage")
            counts = [count for count in map(measure, (given, got)) if count is not None]
            return sum(counts) if counts else None, _total(total)
    return None, None


def duration_ms(value: object) -> float | None:
    """Convert `{secs, nanos}` to ms."""
    match value:
        case {"secs": secs, "nanos": nanos}:
            whole, part = measure(secs), measure(nanos)
            return None if whole is None or part is None else whole * 1000 + round(part / 1_000_000)
    return None


def _total(usage: object) -> float | None:
    return measure(usage.get("total_tokens")) if isinstance(usage, dict) else None


def _reasoning(payload: Mapping[str, Any], location: str) -> Reasoning:
    parts = [*_parts(payload.get("summary")), *_parts(payload.get("content"))]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    sealed = payload.get("encrypted_content") is not None or len(texts) < len(parts)
    return Reasoning("\n\n".join(texts), text.to_json(_without_type(payload), location) if sealed else None)


def _parts(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _call(kind: str, payload: Mapping[str, Any], location: str) -> Call:
    name, args = _CALLS[kind]
    return Call(
        payload.get("call_id") or payload.get("id"),
        "local_shell" if name is None else as_text(payload.get(name), f"{location}: {name}"),
        text.to_json(payload.get(args), f"{location}: {args}"),
    )


def _output(payload: Mapping[str, Any], location: str) -> Output:
    output = payload.get("output")
    failed = False
    if isinstance(output, dict) and "content" in output:
        failed = output.get("success") is False
        output = output["content"]
    if isinstance(output, dict):
        return Output(
            payload.get("call_id"), text.to_json(output, f"{location}: output"), None, None, _metadata_duration(output)
        )
    content, blocks = content_of(output, f"{location}: output")
    return Output(
        payload.get("call_id"),
        None if failed else text.to_json(content, location),
        (content or "failed") if failed else None,
        blocks,
        _reported_duration(content, location),
    )


def _reported_duration(output: str, location: str) -> float | None:
    """The duration in ms that the text of an output reports, as JSON metadata or in the lines before the output."""
    if output.startswith("{") and '"duration_seconds"' in output:
        try:
            return _metadata_duration(decode(output, location))
        except errors.BadInput:
            return None
    head, _, _ = f"\n{output[:_HEADER]}".partition("\nOutput:")
    found = _WALL_TIME.search(head)
    return _milliseconds(float(found[1])) if found else None


def _metadata_duration(output: object) -> float | None:
    match output:
        case {"metadata": {"duration_seconds": seconds}}:
            return _milliseconds(seconds)
    return None


def _milliseconds(seconds: object) -> float | None:
    duration = measure(seconds)
    return None if duration is None else round(duration * 1000, 3)


def _without_type(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != "type"}


def _is_text(part: object) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") in ("input_text", "output_text", "text")
        and isinstance(part.get("text"), str)
    )
