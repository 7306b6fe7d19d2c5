"""Small logs of Claude Code, made for a test."""

import json
from typing import Any

from storage.events import Event
from storage.transfer.formats.shared.foreign import ForeignLabel, ForeignSession, Step
from tests.storage.transfer.formats.logs import records_of, steps_of, visible_logs

SESSION = "0a000000-0000-4000-8000-000000000001"
START = 1_767_225_600_000
"""The time of second 0, 2026-01-01T00:00:00Z."""


def record(kind: str, uuid: str, parent: str | None, /, second: int = 0, **fields: Any) -> dict[str, Any]:
    envelope = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "isSidechain": False}
    return envelope | {"timestamp": f"2026-01-01T00:00:{second:02}.000Z", "cwd": "/w"} | fields


def user(uuid: str, parent: str | None, content: Any, /, second: int = 0, **fields: Any) -> dict[str, Any]:
    return record("user", uuid, parent, second, message={"role": "user", "content": content}, **fields)


def result(uuid: str, parent: str | None, call: Any, /, second: int = 0, **fields: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": call, "content": "ok"} | fields.pop("part", {})
    return user(uuid, parent, [part], second, **fields)


def answer(
    uuid: str, parent: str | None, message: str | None, /, *parts: dict[str, Any], second: int = 0, **fields: Any
) -> dict[str, Any]:
    more = {name: fields.pop(name) for name in ("stop_reason", "usage", "model") if name in fields}
    said = {"id": message, "role": "assistant", "type": "message", "content": list(parts)} | more
    return record("assistant", uuid, parent, second, message=said, **fields)


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thought(content: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": content}


def call(id: Any, name: str = "Read") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {"path": "x"}}


def steps_and_warnings(*values: Any, lenient: bool = False) -> tuple[list[Step], list[str]]:
    found = records_of("log", "\n".join(json.dumps(value) for value in values))
    steps, warnings = steps_of(found, "claude-code", lenient=lenient)
    return steps, warnings.messages()


def sessions(*values: Any) -> list[ForeignSession]:
    return [step for step in steps_and_warnings(*values)[0] if isinstance(step, ForeignSession)]


def labels(*values: Any) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for step in steps_and_warnings(*values)[0]:
        if isinstance(step, ForeignSession | ForeignLabel):
            found[step.key] = step.label
    return found


def logs(*values: Any) -> dict[str, list[Event]]:
    """The visible events of each session."""
    return visible_logs(steps_and_warnings(*values)[0])


def outline(log: list[Event]) -> list[str]:
    """A short description of each event of a log."""
    return [_short(event) for event in log]


def _short(event: Event) -> str:
    kind = event.type.removesuffix("/message")
    for field in ("content", "call_id", "name", "error"):
        if (value := getattr(event, field, None)) is not None:
            return f"{kind} {value}"
    return kind
