"""Operations that many tests run."""

import asyncio
import contextlib
from typing import Any

from tests.server.client import Client, Stream

CREATE = "mutation($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }"
FORK = "mutation($input: ForkSessionInput!) { forkSession(input: $input) { session { id head } } }"
APPEND = """
mutation($input: AppendEventsInput!) { appendEvents(input: $input) { sessionId firstSeq head duplicate } }
"""
EVENTS = """
query($id: ID!, $from: Int) { session(id: $id) { head events(fromSeq: $from, first: 1000) { head nextSeq events {
  id seq type sessionId
  ... on UserMessage { content } ... on AssistantMessage { content } ... on CustomEvent { name data }
} } } }
"""
FOLLOW = """
subscription($id: ID!, $from: Int) { sessionEvents(sessionId: $id, fromSeq: $from) {
  id seq type sessionId ... on UserMessage { content }
} }
"""


async def create(client: Client, id: str, parent_id: str | None = None, **given: Any) -> str:
    """Creates a session and returns its id."""
    made = await client.run(CREATE, input={"id": id, "parentId": parent_id, **given})
    assert made["createSession"]["session"]["id"] == id
    return id


async def fork(client: Client, source_id: str, id: str, **given: Any) -> str:
    """Forks a session and returns the child's id."""
    await client.run(FORK, input={"sourceId": source_id, "id": id, **given})
    return id


async def append(client: Client, id: str, *events: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Appends events and returns their position."""
    made = await client.run(APPEND, input={"sessionId": id, "events": events, **given})
    appended: dict[str, Any] = made["appendEvents"]
    return appended


def user(content: str, **given: Any) -> dict[str, Any]:
    """A user message."""
    return {"userMessage": {"content": content, **given}}


def texts(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Messages that contain their seq, if the first one gets seq `first`."""
    return [user(f"message {seq}") for seq in range(first, first + count)]


async def log(client: Client, id: str) -> list[dict[str, Any]]:
    """All events of the visible log, read in pages."""
    events: list[dict[str, Any]] = []
    while True:
        session = (await client.run(EVENTS, id=id, **{"from": len(events)}))["session"]
        page = session["events"]
        events += page["events"]
        if len(events) >= page["head"]:
            return events
        assert page["events"], f"the log of {id} ends at {len(events)}, its head is {page['head']}"


async def slot_writes_until_sent(client: Client, stream: Stream, id: str) -> None:
    """Writes a session's system prompt until a subscription of slots sends it, up to its newest version.

    Nothing else shows when such a subscription is registered.
    """
    query = 'mutation($id: ID!) { putSystemPrompt(sessionId: $id, content: "x") { slot { version } } }'
    seen, written = 0, -1
    while seen != written:
        if seen == 0:
            written = (await client.run(query, id=id))["putSystemPrompt"]["slot"]["version"]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                change = (await stream.next())["slotChanges"]
                assert change["name"] == "SYSTEM_PROMPT" and change["slot"]["version"] > seen
                seen = change["slot"]["version"]
