"""Small logs of DeepSeek Harness, made for a test."""

import json
from typing import Any

from storage.events import Event
from storage.transfer.formats.registry import ForeignSession, read_document

HEADER = {"type": "session", "version": 0, "id": "{{sessionId}}", "createdAt": 0, "cwd": "/"}


def record(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "data": fields}


def text_of(header: dict[str, Any], *records: dict[str, Any]) -> str:
    return "\n".join(json.dumps(line) for line in (header, *records))


def read_one(*records: dict[str, Any], **header: Any) -> tuple[ForeignSession, list[str]]:
    reading = read_document("log", text_of(HEADER | header, *records))
    [session] = reading.sessions
    return session, reading.warnings


def events(*records: dict[str, Any]) -> list[Event]:
    return list(read_one(*records)[0].events)
