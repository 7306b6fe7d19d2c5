"""Rows and runs of imported real logs equal a fold of the whole log."""

import pytest

from storage.store import Store
from tests.contract.runs import assert_runs_match_log
from tests.storage.spaces import assert_whole, bring, nodes_of
from tests.storage.transfer.formats.logs import TAU_BENCH

GOAL = "deepseek-harness/goal-multi-turn-actions/session.jsonl"
FORK = [f"deepseek-harness/subagent-fork-in-process/{name}.jsonl" for name in ("session", "session.1")]


@pytest.mark.parametrize("names", [[GOAL], FORK], ids=["two turns", "fork"])
async def test_runs_of_real_logs(store: Store, names: list[str]) -> None:
    for name in names:
        await bring(store, name)
    for node in await nodes_of(store):
        await assert_runs_match_log(store, node.id)
    await assert_whole(store)


async def test_runs_of_a_hundred_conversations(store: Store) -> None:
    await bring(store, TAU_BENCH)
    nodes = await nodes_of(store)
    assert len(nodes) >= 100
    for node in nodes[:20]:
        await assert_runs_match_log(store, node.id)
