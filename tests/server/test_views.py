"""Messages for models over HTTP: surface, context, records and prompt."""

from typing import Any

from tests.server.client import Client
from tests.server.operations import append, create, fork, log, texts, user
from tests.server.views import CONTEXT, MESSAGE, SIXTEEN, SURFACE, session, short, surface
from tests.storage.views.validity import problems

AT = "2026-11-29T19:21:07.250Z"


async def test_the_sixteen_events_give_six_messages(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *SIXTEEN)
    found = await surface(client, name)
    assert found["atSeq"] == 16
    assert [
        (message["role"], message["content"], message["toolCalls"], message["toolCallId"], message["sourceEventSeqs"])
        for message in found["messages"]
    ] == [
        ("USER", "Hello.", None, None, [2]),
        ("ASSISTANT", "Hello, what can I do?", None, None, [3]),
        ("USER", "How much is 12 times 12?", None, None, [8]),
        ("ASSISTANT", None, [{"id": "c", "name": "calculator", "arguments": '{"a":12,"op":"*","b":12}'}], None, [9]),
        ("TOOL", "144", None, "c", [10]),
        ("ASSISTANT", "It is 144.", None, None, [13]),
    ]
    assert not any(message["repaired"] for message in found["messages"])
    stats = (await session(client, name, "stats { eventCount byType { type count } turnCount stepCount }"))["stats"]
    assert {row["type"]: row["count"] for row in stats["byType"]} == {
        "TURN_START": 2,
        "TURN_END": 2,
        "STEP_START": 3,
        "STEP_END": 3,
        "USER_MESSAGE": 2,
        "ASSISTANT_MESSAGE": 2,
        "TOOL_CALL": 1,
        "TOOL_RESULT": 1,
    }
    assert (stats["eventCount"], stats["turnCount"], stats["stepCount"]) == (16, 2, 3)
    child = await fork(client, name, f"{name}-child", atSeq=6)
    events = await log(client, child)
    assert len(events) == 6
    assert events == (await log(client, name))[:6]
    assert await surface(client, child) == await surface(client, name, 6)
    assert len((await surface(client, child))["messages"]) == 2


async def test_a_message_has_every_field(client: Client, name: str) -> None:
    await create(client, name)
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    await append(
        client,
        name,
        {"systemMessage": {"content": "Rules.", "timestamp": AT}},
        {"userMessage": {"content": "Look.", "blocks": [image], "timestamp": AT}},
        {"assistantMessage": {"content": "I see.", "reasoning": "Hm.", "timestamp": AT}},
        {"toolCall": {"callId": "x", "name": "f", "args": '{"not json', "timestamp": AT}},
        {"toolCall": {"callId": "y", "name": "g", "args": {}, "timestamp": AT}},
        {"toolResult": {"callId": "y", "result": {"a": 1}, "error": "late", "timestamp": AT}},
        {"assistantChunk": {"delta": "And", "timestamp": AT}},
    )
    found = (await session(client, name, f"surface {{ {SURFACE} }}"))["surface"]
    nothing = {"reasoning": None, "blocks": None, "toolCalls": None, "toolCallId": None, "repaired": False}
    assert found["messages"] == [
        {**nothing, "role": "SYSTEM", "content": "Rules.", "sourceEventSeqs": [0], "timestamp": AT},
        {
            **nothing,
            "role": "USER",
            "content": "Look.",
            "blocks": [image],
            "sourceEventSeqs": [1],
            "timestamp": AT,
        },
        {
            **nothing,
            "role": "ASSISTANT",
            "content": "I see.",
            "reasoning": "Hm.",
            "toolCalls": [
                {"id": "x", "name": "f", "arguments": '{"not json'},
                {"id": "y", "name": "g", "arguments": "{}"},
            ],
            "sourceEventSeqs": [2, 3, 4],
            "timestamp": AT,
        },
        {
            **nothing,
            "role": "TOOL",
            "content": 'late\n\n{"a":1}',
            "toolCallId": "y",
            "sourceEventSeqs": [5],
            "timestamp": AT,
        },
        {
            **nothing,
            "role": "TOOL",
            "content": "No result was recorded for this call; its outcome is unknown.",
            "toolCallId": "x",
            "sourceEventSeqs": [],
            "repaired": True,
            "timestamp": None,
        },
        {**nothing, "role": "ASSISTANT", "content": "And", "sourceEventSeqs": [6], "repaired": True, "timestamp": AT},
    ]
    assert problems(found["openai"]) == []
    assert found["openai"][1] == {"role": "user", "content": [{"type": "text", "text": "Look."}, image]}


async def test_a_long_surface_is_complete(client: Client, name: str) -> None:
    """Long enough to be completed by a compiled reader."""
    await create(client, name)
    for _ in range(10):
        await append(client, name, *texts(2), {"toolCall": {"callId": "c", "name": "f", "args": {}}})
    found = await surface(client, name)
    assert len(found["messages"]) == 40
    assert sum(message["repaired"] for message in found["messages"]) == 10


async def test_a_seq_beyond_the_log_is_refused(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(2))
    query = "query($id: ID!, $at: Int) { session(id: $id) { surface(atSeq: $at) { atSeq } } }"
    for wrong in (-1, 3):
        refusal = await client.refusal(query, id=name, at=wrong)
        assert (refusal.code, refusal.message) == ("BAD_INPUT", f"atSeq: must be 0 to the head 2, is {wrong}")
    assert (await surface(client, name, 0))["messages"] == []
    assert (await surface(client, name, 1))["atSeq"] == 1


async def test_a_replacement_of_no_nodes_is_refused_with_its_path(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(3))
    query = "mutation($input: AppendEventsInput!) { appendEvents(input: $input) { head } }"
    for start, end, path in ((9, 9, ".start: 9"), (0, 9, ".end: 9"), (2, 0, ": start 2, end 0: start stands after")):
        op = {"op": "REPLACE", "start": start, "end": end}
        refusal = await client.refusal(query, input={"sessionId": name, "events": [user("q"), user("r", surfaceOp=op)]})
        assert refusal.code == "BAD_INPUT"
        assert refusal.message.startswith(f"events[1].userMessage.surfaceOp{path}")
    assert len(await log(client, name)) == 3
    await append(client, name, user("short", surfaceOp={"op": "REPLACE", "start": 0, "end": 1}))
    assert short((await surface(client, name))["messages"]) == [("USER", "short"), ("USER", "message 2")]


async def test_the_context_has_every_field_in_sending_order(client: Client, name: str) -> None:
    await create(client, name, config={"systemPrompt": "Be brief."})
    await client.run(
        """mutation($id: ID!) {
          putInsight(input: {sessionId: $id, content: "Look left."}) { sessionId }
          putMemory(input: {sessionId: $id, content: "outside"}) { sessionId }
        }""",
        id=name,
    )
    await append(client, name, {"turnStart": {"turnId": "t"}}, user("hello"))

    async def context() -> Any:
        found = await session(client, name, f"context {{ {CONTEXT} }} insight {{ content version updatedAt atSeq }}")
        assert problems(found["context"]["openai"]) == []
        return found["context"], found["insight"]

    found, slot = await context()
    assert (found["systemPrompt"], found["insight"], found["atSeq"]) == ("Be brief.", slot, 2)
    assert short(found["messages"]) == [("USER", "hello")]
    assert found["openai"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Look left."},
        {"role": "user", "content": "hello"},
    ]
    consume = "mutation($id: ID!) { consumeInsight(sessionId: $id) { event { seq } } }"
    assert (await client.run(consume, id=name))["consumeInsight"]["event"] == {"seq": 2}
    delivered, slot = await context()
    assert slot is None
    assert (delivered["insight"]["content"], delivered["insight"]["version"]) == ("Look left.", 1)
    assert delivered["openai"] == found["openai"]
    await append(client, name, {"turnEnd": {"turnId": "t"}})
    after, _ = await context()
    assert after["insight"] is None
    assert [message["content"] for message in after["openai"]] == ["Be brief.", "hello"]


async def test_records_apply_all_arguments(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *SIXTEEN)

    async def records(arguments: str) -> list[tuple[str, str | None]]:
        found = await session(client, name, f"records{arguments} {{ {MESSAGE} }}")
        return short(found["records"])

    everything = await records("")
    assert len(everything) == 6
    assert await records("(role: USER)") == [everything[0], everything[2]]
    assert await records("(role: USER, offset: 1, limit: 5)") == [everything[2]]
    assert await records("(fromSeq: 10)") == everything[4:]
    assert await records("(role: null, fromSeq: null, limit: null)") == everything
    assert await records("(limit: 0)") == []
    remember = 'mutation($id: ID!) { putMemory(input: {sessionId: $id, content: "m", atSeq: 9}) { sessionId } }'
    await client.run(remember, id=name)
    assert await records("(sinceMemory: true)") == everything[3:]
    for wrong in ("fromSeq", "offset", "limit"):
        query = f"query($id: ID!) {{ session(id: $id) {{ records({wrong}: -1) {{ role }} }} }}"
        refusal = await client.refusal(query, id=name)
        assert (refusal.code, refusal.message) == ("BAD_INPUT", f"{wrong}: must not be negative, is -1")


async def test_the_prompt_is_texts_with_a_line_for_each_card(client: Client, name: str) -> None:
    await create(client, name)
    card = {"type": "Form", "formId": "f", "title": "Well parameters"}
    await append(client, name, {"systemMessage": {"content": "Rules."}}, {"card": {"cardType": "Form", "card": card}})
    await append(client, name, {"toolCall": {"callId": "x", "name": "f", "args": {}}}, user("done"))
    found = await session(client, name, f"prompt {{ {MESSAGE} }}")
    lines = [("ASSISTANT", "[Form shown: Well parameters]"), ("USER", "done")]
    assert short(found["prompt"]) == [("SYSTEM", "Rules."), *lines]
    found = await session(client, name, f"prompt(guidePrompt: $guide) {{ {MESSAGE} }}", guide="Guide\ud800.")
    assert [text for _, text in short(found["prompt"])][1:] == [text for _, text in lines]
    assert found["prompt"][0]["role"] == "SYSTEM"
    assert found["prompt"][0]["content"].startswith("Guide")
