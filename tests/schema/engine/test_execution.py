"""Compiled lists against the stock executor: the same answer, and the same errors."""

import orjson
import pytest

from schema.build import build_schema
from schema.context import Context
from schema.engine import execution
from storage.events import CardEvent, ToolCall, ToolResult, UserMessage
from storage.lifecycle import Fork, NewSession
from storage.session import SlotName
from storage.slots import SlotWrite
from storage.store import Store
from tests.contract.shorthand import conversation

SPACE = "space"
QUERIES = [
    """{ session(id: "a") { events(first: 100) { events {
        __typename id sessionId seq kind: type timestamp turnId stepId
        ... on TurnStart { query agentFlow } ... on StepEnd { tokenCount modelOutput }
        ... on UserMessage { content blocks surfaceOp { op start end __typename } sourceEventSeqs }
        ... on ToolCall { callId args } ...Result ... on CustomEvent { name data } } } } }
    fragment Result on ToolResult { callId result retrieval { layer details } surfaceOp { op } }""",
    """{ session(id: "a") { events(first: 100) { events { ... on SessionEvent { seq }
        ... on ToolCall @skip(if: true) { name } } } } }""",
    """{ session(id: "a") { surface { openai messages { role content toolCalls { id name arguments } sourceEventSeqs
        repaired timestamp } } records(role: TOOL) { content toolCallId } } }""",
    """{ forest { nodes { id label status parentId depth refs turnCount createdAt } refs { fromId toId } } }""",
    """{ sessions(ids: ["a", "s1", "nobody", "s2", "s3", "s4", "s5", "s6", "s7", "s8"]) { id label metadata } }""",
    """{ digests { nodes { id memory { content version updatedAt } insight { content } head } } }""",
    """{ forest { nodes { id node: session { id } } } }""",
]


@pytest.fixture
async def filled(store: Store) -> Store:
    """A store with a session of all kinds of events, forks, and slots."""
    await store.tree.create(SPACE, NewSession(id="a", label="ä\u0000", metadata='{"b": [1, 2.5, null], "": "é"}'))
    odd = [
        UserMessage(content="", blocks='[{"type": "text", "text": "x"}]', source_event_seqs=[0, 1]),
        CardEvent(card_type="Table", payload="type: Table\ntitle: T\n"),
        ToolCall(call_id="z", name="n", args='"text"', timestamp=-1),
        ToolResult(call_id="z", result="null", error="E", retrieval={"layer": "L0", "details": "[]"}),
    ]
    await store.sessions.append(SPACE, "a", [*conversation(10), *odd])
    for number in range(9):
        await store.tree.fork(SPACE, Fork(source_id="a", at_seq=number * 3, id=f"s{number}"))
    await store.sessions.put_slot(SPACE, SlotWrite("s1", SlotName.MEMORY, "remembered"))
    return store


async def answer(store: Store, query: str) -> tuple[bytes, list[str]]:
    found = await build_schema().execute(query, context_value=Context(store, SPACE))
    return orjson.dumps(found.data), [f"{error.path} {error.message}" for error in found.errors or ()]


@pytest.mark.parametrize("query", QUERIES)
async def test_the_answer_is_the_stock_executors(filled: Store, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = await answer(filled, query)
    assert not compiled[1]
    monkeypatch.setattr(execution, "MIN_ITEMS", 10**9)
    assert compiled == await answer(filled, query)


async def test_a_list_of_an_interface_is_compiled_for_each_type_in_it(filled: Store) -> None:
    schema = build_schema()
    await schema.execute(QUERIES[0], context_value=Context(filled, SPACE))
    executor = schema.execution_context_class
    assert issubclass(executor, execution.ListExecutor)
    compiled = {type_name for type_name, _ in executor.readers}
    assert {"TurnStart", "UserMessage", "ToolCall", "ToolResult", "CardEvent", "CustomEvent"} <= compiled
