"""The memory that readers keep for the records read so far, as the next one may continue from any of them."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from storage.transfer.formats.registry import MODULES
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.record import Record
from tests.storage.transfer.formats import claude_logs

RECORDS = 5_000
MOST = 400
"""Bytes per record."""
USAGE = {"input": 3, "output": 151, "cacheRead": 49204, "totalTokens": 50961, "cost": {"input": 5e-05, "total": 0.0357}}


def of_pi() -> Iterator[dict[str, Any]]:
    """Turns of ten calls, one of which gets no result."""
    yield {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
    for number in range(RECORDS):
        turn, location = divmod(number, 20)
        call = f"toolu_{turn:010}{location // 2:010}"
        message: dict[str, Any] = {"role": "user", "content": "go"}
        if location % 2:
            part = {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": "ls"}}
            message = {"role": "assistant", "content": [part], "usage": USAGE | {"output": number}, "stopReason": "x"}
        elif location > 2:
            before = f"toolu_{turn:010}{location // 2 - 1:010}"
            message = {"role": "toolResult", "toolCallId": before, "content": "ok", "isError": False}
        parent = f"{number - 1:08x}" if number else None
        outline = {"id": f"{number:08x}", "parentId": parent, "timestamp": "2026-01-01T00:00:05.000Z"}
        yield {"type": "message", **outline, "message": message}


def of_claude_code() -> Iterator[dict[str, Any]]:
    """Turns of ten calls, one of which gets no result."""
    parent = None
    for number in range(RECORDS):
        location, uuid = number % 20, f"{number:032x}"
        if not location:
            yield claude_logs.user(uuid, parent, "go")
        elif location % 2:
            yield claude_logs.answer(uuid, parent, f"m{number}", claude_logs.call(f"c{number}"), usage={"in": number})
        else:
            yield (
                claude_logs.result(uuid, parent, f"c{number - 1}")
                if location > 2
                else claude_logs.user(uuid, parent, [claude_logs.text("and")])
            )
        parent = uuid


@pytest.mark.parametrize(("format", "values"), [("pi", of_pi), ("claude-code", of_claude_code)])
def test_a_reader_keeps_little_of_each_record(format: str, values: Any) -> None:
    reader = MODULES[format].reader("log", ImportWarnings())
    tracemalloc.start()
    for number, value in enumerate(values(), 1):
        reader.add(Record(f"log line {number}", value))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < MOST * RECORDS
