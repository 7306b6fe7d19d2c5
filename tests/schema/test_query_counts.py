"""The number of database queries of an operation does not depend on the number of sessions."""

import asyncio

import pytest

from schema.build import build_schema
from schema.context import Context
from storage.lifecycle import NewSession
from storage.store import Store
from tests.counting import counted

SPACE = "space"
IDS = [f"s{number}" for number in range(200)]


@pytest.mark.parametrize(
    "selection",
    [
        "id node { id refs referencedBy parent { id } children { id } } digest { id memory { content } }",
        "systemPrompt { content } config { skills } node { ancestors { id } siblings { id } }",
    ],
)
async def test_look_ups_for_many_sessions_take_as_many_queries_as_for_one(store: Store, selection: str) -> None:
    await store.tree.create(SPACE, NewSession(id="root"))
    for start in range(0, len(IDS), 50):
        made = (store.tree.create(SPACE, NewSession(id=id, parent_id="root")) for id in IDS[start : start + 50])
        await asyncio.gather(*made)
    schema = build_schema()
    counts = []
    for size in (1, 20, 200):
        async with counted(store) as count:
            query = f"query($ids: [ID!]!) {{ sessions(ids: $ids) {{ {selection} }} }}"
            answer = await schema.execute(query, {"ids": IDS[:size]}, context_value=Context(store, SPACE))
        assert answer.errors is None
        assert answer.data is not None
        assert len(answer.data["sessions"]) == size
        counts.append(count.queries)
    assert counts[0] > 0
    assert counts == counts[:1] * 3
