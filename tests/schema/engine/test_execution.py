"""Compiled readers against graphql-core's own executor: equal answers and errors for random queries on stored data."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import graphql
import orjson
import pytest
from graphql import Executor, GraphQLSchema, build_schema, parse, validate
from hypothesis import HealthCheck, assume, given, settings

from schema import build, errors
from schema.context import Context
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    Event,
    SurfaceHide,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnStart,
    UserMessage,
)
from storage.lifecycle import Fork, NewSession
from storage.session import SessionConfig, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.sqlite.database import open_file
from storage.store import Store
from tests.contract.shorthand import SPACE
from tests.contract.shorthand import conversation as turns
from tests.schema.engine.random_queries import Query, queries
from tests.schema.engine.stock import stock_answer, stock_schema

SDL = build_schema(build.build_schema().as_str())
IDS = ["a", "f0", "f1", "f2", "f3", "root", "child", "leaf", "nobody"]
VALUES: dict[str, list[Any]] = {
    "ID": [*IDS, *IDS, "turn-0", "turn-1", "open"],
    "Int": [0, 1, 2, 3, 5, 8, 50, -1],
    "Float": [0.0, 1.5, -1.0],
    "String": ["", "a", "question 1", "planner", "search", "no cursor"],
    "Boolean": [True, False],
    "DateTime": ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00.5+02:00", "yesterday"],
}
CHANGING = ("DigestConnection.asOf", "DigestConnection.pageInfo", "DigestEdge.cursor")
"""Fields that depend on the time of the query."""
LEFT_OUT = (*CHANGING, "Query.exportSession")


def odd_events() -> list[Event]:
    """Events of every type that turns do not have, with edge-case values."""
    return [
        UserMessage(content="", blocks='[{"type": "text", "text": "x"}]', source_event_seqs=[0, 1]),
        SystemMessage(content="be brief"),
        CardEvent(card_type="Table", payload="type: Table\ntitle: T\n"),
        CardEvent(card_type="Form", payload="type: Form\nid: f\nformId: known\ntitle: F\n"),
        CardEvent(card_type="Unknown", payload=": no [YAML"),
        ToolCall(call_id="z", name="n", args='"text"', timestamp=-1),
        ToolResult(call_id="z", result="null", error="E", retrieval={"layer": "L0", "details": "[]"}),
        AssistantMessage(content="ä\u0000", reasoning="r"),
        SurfaceHide(from_seq=0, to_seq=2, reason="too old"),
        TurnStart(turn_id="open"),
        AssistantChunk(delta="partial"),
    ]


async def fill(store: Store) -> None:
    """A forest with forks, references and an archived session, all kinds of events, slots, runs and a form."""
    await store.tree.create(SPACE, NewSession(id="a", label="ä\u0000", metadata='{"b": [1, 2.5, null], "": "é"}'))
    await store.sessions.append(SPACE, "a", [*turns(2), *odd_events()])
    await store.forms.put(SPACE, "known", '{"fields": []}')
    for number in range(4):
        await store.tree.fork(SPACE, Fork(source_id="a", at_seq=number * 5, id=f"f{number}"))
    await store.sessions.append(SPACE, "f0", turns(1))
    await store.tree.create(SPACE, NewSession(id="root", config=SessionConfig(system_prompt="s", skills=["x"])))
    await store.tree.create(SPACE, NewSession(id="child", parent_id="root"))
    await store.tree.create(SPACE, NewSession(id="leaf", parent_id="child"))
    await store.tree.add_ref(SPACE, "leaf", "a")
    await store.tree.add_ref(SPACE, "f0", "root")
    for name in SlotName:
        await store.sessions.put_slot(SPACE, SlotWrite("f1", name, f"the {name}"))
    await store.sessions.put_slot(SPACE, SlotWrite("a", SlotName.INSIGHT, "once"))
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    await store.maintenance.give_feedback(SPACE, "a", "turn-1", "good", '{"score": 1}')
    await store.sessions.set_status(SPACE, "f2", SessionStatus.ARCHIVED)


def comparable(result: Any, query: Query) -> tuple[bytes, list[bytes]]:
    """The data, keys in order, and the errors as clients get them, sorted."""
    errors.publish(result.errors or (), parse(query.text))
    found = [orjson.dumps(error.formatted) for error in result.errors or ()]
    return orjson.dumps(result.data), sorted(found)


@pytest.mark.usefixtures("always_compiled")
def test_random_queries_on_stored_data_get_the_stock_executors_answer(tmp_path: Path) -> None:
    ours, stock = build.build_schema(), stock_schema()
    with asyncio.Runner() as runner:
        store = Store(runner.run(open_file(tmp_path)))
        runner.run(fill(store))

        @settings(max_examples=60, suppress_health_check=list(HealthCheck))
        @given(queries(SDL, VALUES, LEFT_OUT))
        def check(query: Query) -> None:
            assume(not validate(stock, parse(query.text)))
            found = runner.run(ours.execute(query.text, query.variables, Context(store, SPACE)))
            assume(not any((error.extensions or {})["code"] == "QUERY_TOO_COMPLEX" for error in found.errors or ()))
            expected = runner.run(stock_answer(stock, query, Context(store, SPACE)))
            assert comparable(found, query) == comparable(expected, query)

        try:
            check()
        finally:
            runner.run(store.close())
    executor: Any = ours.execution_context_class
    assert len(executor.readers) > 5
    assert any(plan.read is not None for plan in executor.plans.values())


def test_the_reference_is_graphql_cores_own_executor() -> None:
    assert inspect.signature(graphql.execute).parameters["executor_class"].default is None
    ran: list[type] = []

    def resolve(_: object, __: object) -> str:
        frame: Any = inspect.currentframe()
        while frame is not None:
            if isinstance(found := frame.f_locals.get("self"), Executor):
                ran.append(type(found))
            frame = frame.f_back
        return ""

    field = graphql.GraphQLField(graphql.GraphQLString, resolve=resolve)
    graphql.execute_sync(GraphQLSchema(graphql.GraphQLObjectType("Query", {"x": field})), parse("{ x }"))
    assert ran and {each.__module__.partition(".")[0] for each in ran} == {"graphql"}
