"""Queries for the messages of a session, and checks of the answers."""

from typing import Any

from tests.server.client import Client
from tests.storage.views.validity import problems

MESSAGE = """
role content reasoning blocks toolCalls { id name arguments } toolCallId sourceEventSeqs repaired timestamp
"""
SURFACE = f"messages {{ {MESSAGE} }} openai atSeq"
CONTEXT = f"systemPrompt insight {{ content version updatedAt atSeq }} messages {{ {MESSAGE} }} openai atSeq"

# A turn with one step, then one with a calculator call and two steps.
SIXTEEN: list[dict[str, Any]] = [
    {"turnStart": {"turnId": "1"}},
    {"stepStart": {"stepId": "1"}},
    {"userMessage": {"content": "Hello."}},
    {"assistantMessage": {"content": "Hello, what can I do?"}},
    {"stepEnd": {"stepId": "1"}},
    {"turnEnd": {"turnId": "1"}},
    {"turnStart": {"turnId": "2"}},
    {"stepStart": {"stepId": "1"}},
    {"userMessage": {"content": "How much is 12 times 12?"}},
    {"toolCall": {"callId": "c", "name": "calculator", "args": {"a": 12, "op": "*", "b": 12}}},
    {"toolResult": {"callId": "c", "result": 144}},
    {"stepEnd": {"stepId": "1"}},
    {"stepStart": {"stepId": "2"}},
    {"assistantMessage": {"content": "It is 144."}},
    {"stepEnd": {"stepId": "2"}},
    {"turnEnd": {"turnId": "2"}},
]


async def session(client: Client, id: str, selection: str, **variables: Any) -> Any:
    """Query fields of a session. `variables` are those in `types`."""
    types = {"at": "Int", "role": "Role", "from": "Int", "guide": "String"}
    declared = "".join(f", ${name}: {types[name]}" for name in variables)
    query = f"query($id: ID!{declared}) {{ session(id: $id) {{ {selection} }} }}"
    return (await client.run(query, id=id, **variables))["session"]


async def surface(client: Client, id: str, at_seq: int | None = None) -> Any:
    """A session's surface, whose two forms must agree."""
    found = (await session(client, id, f"surface(atSeq: $at) {{ {SURFACE} }}", at=at_seq))["surface"]
    same_in_both(found["messages"], found["openai"])
    return found


def same_in_both(messages: list[dict[str, Any]], openai: list[dict[str, Any]]) -> None:
    """Check that the list ready to send is valid and agrees with the messages."""
    assert problems(openai) == []
    assert [
        {
            "role": message["role"].lower(),
            "content": message["content"],
            "tool_calls": [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in message["toolCalls"] or ()
            ],
            "tool_call_id": message["toolCallId"],
        }
        for message in messages
    ] == [{"tool_calls": [], "tool_call_id": None, **message} for message in openai]


def short(messages: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(message["role"], message["content"]) for message in messages]
