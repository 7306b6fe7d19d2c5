"""The rules for lists that a chat completions endpoint accepts, independent of the code that builds them."""

from typing import Any

import orjson

from storage.views.surface import Surface

PARTS = {"text", "image_url", "input_audio", "file", "refusal"}


def problems(messages: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a list in the API's format; an empty list is valid."""
    found: list[str] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        found += [f"{position}: {problem}" for problem in _alone(message)]
        position += 1
        ids = [call["id"] for call in message.get("tool_calls", ())]
        answered = []
        while position < len(messages) and messages[position]["role"] == "tool":
            found += [f"{position}: {problem}" for problem in _alone(messages[position])]
            answered.append(messages[position].get("tool_call_id"))
            position += 1
        if message["role"] == "tool":
            found.append(f"{position}: a tool message at the start")
        if len(set(ids)) != len(ids):
            found.append(f"{position}: call ids {ids} are not distinct")
        if sorted(ids) != sorted(str(id) for id in answered):
            found.append(f"{position}: calls {ids} are answered by {answered}")
    return found


def _alone(message: dict[str, Any]) -> list[str]:
    found = []
    role, content = message.get("role"), message.get("content")
    allowed = {
        "system": {"role", "content"},
        "user": {"role", "content"},
        "assistant": {"role", "content", "tool_calls"},
        "tool": {"role", "content", "tool_call_id"},
    }
    if role not in allowed:
        return [f"role {role!r}"]
    if extra := set(message) - allowed[role]:
        found.append(f"fields {extra}")
    if isinstance(content, list):
        if not content or any(part.get("type") not in PARTS for part in content):
            found.append(f"content parts {content!r}")
    elif content is None:
        if role != "assistant" or not message.get("tool_calls"):
            found.append("neither content nor calls")
    elif not isinstance(content, str):
        found.append(f"content {content!r}")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        found.append("no tool_call_id")
    if "tool_calls" in message and not message["tool_calls"]:
        found.append("an empty list of calls")
    for call in message.get("tool_calls", ()):
        function = call.get("function", {})
        if call.get("type") != "function" or set(call) != {"id", "type", "function"}:
            found.append(f"call {call!r}")
        if not (isinstance(call.get("id"), str) and isinstance(function.get("name"), str)):
            found.append(f"id or name of call {call!r}")
        if not isinstance(function.get("arguments"), str):
            found.append(f"arguments of call {call!r}")
    return found


def check(surface: Surface) -> None:
    """Asserts that the surface is valid in both forms, and that they agree."""
    sent = orjson.loads(surface.openai_text())
    assert problems(sent) == []
    messages = surface.messages()
    assert len(messages) == len(sent)
    seen: list[int] = []
    for message, other in zip(messages, sent, strict=True):
        assert message.role.lower() == other["role"]
        assert message.content is None or isinstance(message.content, str)
        assert isinstance(other["content"], list) or other["content"] == message.content
        assert message.tool_call_id == other.get("tool_call_id")
        calls = [(call.id, call.name, call.arguments) for call in message.tool_calls or ()]
        told = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in other.get("tool_calls", ())]
        assert calls == told
        assert message.repaired or not message.supplied
        assert list(message.source_event_seqs) == sorted(message.source_event_seqs)
        seen += message.source_event_seqs
    assert len(set(seen)) == len(seen)
    assert all(0 <= seq < surface.head for seq in seen)
