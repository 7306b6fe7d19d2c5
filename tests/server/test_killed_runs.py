"""An agent runtime that continues after the server was killed between two of its requests."""

from typing import Any

from tests.server.client import Client
from tests.server.conftest import Serve
from tests.server.operations import append, create, log, user
from tests.server.views import CONTEXT, session, short, surface

CONSUME = """
mutation($id: ID!, $key: String) { consumeInsight(sessionId: $id, idempotencyKey: $key) {
  insight { content version } event { seq } session { head }
} }
"""
PUT = "mutation($id: ID!, $text: String!) { putInsight(input: {sessionId: $id, content: $text}) { sessionId } }"
REPAIR = "mutation($id: ID!) { repairSession(sessionId: $id) { events { seq type } } }"


async def test_chunks_become_a_marked_answer_that_the_whole_one_replaces(serve: Serve) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:
        await create(client, "a")
        await append(client, "a", {"turnStart": {"turnId": "t"}}, user("q"))
        for delta in ("The ", "answer"):
            await append(client, "a", {"assistantChunk": {"delta": delta}})
        server.kill()
        server.start()
        found = await surface(client, "a")
        assert short(found["messages"]) == [("USER", "q"), ("ASSISTANT", "The answer")]
        assert [message["repaired"] for message in found["messages"]] == [False, True]
        await append(client, "a", {"assistantMessage": {"content": "The answer is 5."}})
        found = await surface(client, "a")
        assert short(found["messages"]) == [("USER", "q"), ("ASSISTANT", "The answer is 5.")]
        assert not any(message["repaired"] for message in found["messages"])
        assert (await surface(client, "a", 4)) != found


async def test_a_consumed_insight_is_in_the_same_context_again(serve: Serve) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:

        async def context() -> Any:
            return (await session(client, "a", f"context {{ {CONTEXT} }}"))["context"]

        await create(client, "a", config={"systemPrompt": "Be brief."})
        await append(client, "a", {"turnStart": {"turnId": "t"}}, user("q"))
        await client.run(PUT, id="a", text="first")
        pending = await context()
        consumed = (await client.run(CONSUME, id="a", key="k"))["consumeInsight"]
        server.kill()
        server.start()
        assert (await context())["openai"] == pending["openai"]
        await client.run(PUT, id="a", text="second")
        again = (await client.run(CONSUME, id="a", key="k"))["consumeInsight"]
        assert again == consumed
        assert (await context())["openai"] == pending["openai"]
        await append(client, "a", {"turnEnd": {"turnId": "t"}})
        assert (await context())["insight"]["content"] == "second"


async def test_an_interrupted_turn_is_ended_once(serve: Serve) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:
        await create(client, "a")
        await append(client, "a", {"turnStart": {"turnId": "t"}}, {"stepStart": {"stepId": "s"}}, user("q"))
        await append(client, "a", {"toolCall": {"callId": "c", "name": "f", "args": {}}})
        server.kill()
        server.start()
        first, second = [(await client.run(REPAIR, id="a"))["repairSession"]["events"] for _ in range(2)]
        assert [event["type"] for event in first] == ["TOOL_RESULT", "STEP_END", "TURN_END"]
        assert second == []
        assert [event["seq"] for event in await log(client, "a")] == list(range(7))
