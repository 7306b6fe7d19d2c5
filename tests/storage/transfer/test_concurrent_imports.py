"""Interleaved logs and concurrent writers: every log is imported whole, in order and once."""

import asyncio
import itertools
from random import Random

import pytest

from storage.events import (
    UserMessage,
)
from storage.store import Store
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, ImportWarnings, Step
from storage.transfer.importing import Import, Target
from storage.transfer.importing.engine import OPEN_LOGS
from tests.conftest import OpenStore
from tests.effort import LONG
from tests.storage.spaces import SPACE, assert_whole, bring, contents, nodes_of
from tests.storage.transfer.formats.logs import DATA, OASST
from tests.storage.transfer.imports import import_steps, lines_of, texts, untimed, user_messages


@pytest.mark.parametrize("seed", [1, 2, 3] if LONG else [1])
async def test_interleaved_logs_are_imported_whole_and_in_order(store: Store, seed: int) -> None:
    random = Random(seed)
    keys = [f"s{number}" for number in range(OPEN_LOGS * 2 + 7)]
    steps: list[Step] = []
    expected: dict[str, list[str]] = {}
    children: dict[str | None, list[str]] = {}
    for number in itertools.count():
        fresh = len(expected) < len(keys) and random.random() < 0.3
        if fresh:
            key = keys[len(expected)]
            parent = random.choice([None, *expected])
            source = random.choice([None, *expected])
            at_seq = random.randint(0, len(expected[source])) if source is not None else 0
            steps.append(ForeignSession(key, key, id=key, parent=parent, source=source, at_seq=at_seq))
            expected[key] = expected[source][:at_seq] if source is not None else []
            children.setdefault(parent, []).append(key)
        elif expected:
            key = random.choice(list(expected))
            content = str(number) * random.choice([1, 1, 1, 20_000])
            steps.append(ForeignEvent(key, UserMessage(content=content)))
            expected[key].append(content)
        if len(expected) == len(keys) and number > 1_500:
            break
    done = await import_steps(store, steps)
    assert done.sessions == len(keys)
    assert {key: await texts(store, key) for key in keys} == expected
    found = await nodes_of(store)
    assert {parent: [node.id for node in found if node.parent_id == parent] for parent in children} == children
    again = await import_steps(store, steps)
    assert (again.sessions, again.known, again.events) == (0, len(keys), 0)
    await assert_whole(store)


async def test_two_imports_of_a_growing_log_append_nothing_twice(store: Store) -> None:
    runs = [Import(Target(store, SPACE), "made", ImportWarnings(), merge=True) for _ in range(2)]
    events = user_messages("one", "two", "three", "four")
    for run in runs:
        await run.apply([ForeignSession("a", None, id="a")])
    for event in events:
        for run in runs:
            await run.apply([ForeignEvent("a", event)])
            await run.flush()
    done = [await run.finish() for run in runs]
    assert await texts(store, "a") == ["one", "two", "three", "four"]
    assert sum(each.events for each in done) == 4
    assert [each.known for each in done] == [0, 1]
    await assert_whole(store)


async def test_concurrent_imports_of_the_same_logs_create_each_session_once(
    store: Store, open_store: OpenStore
) -> None:
    trees = b"".join((DATA / OASST).read_bytes().splitlines(keepends=True)[:5])
    logs = {"trees": trees, "claude-code/session-624a4a58.jsonl": None, "codex": lines_of("a", *map(str, range(3_000)))}
    stores = [store, await open_store(), await open_store()]
    done = await asyncio.gather(*(bring(each, name, content) for each in stores for name, content in logs.items()))
    assert [each.refused for each in done] == [{}] * len(done)
    alone = [await bring(store, name, content, space="alone") for name, content in logs.items()]
    found, expected = await contents(store), await contents(store, "alone")
    assert {id: untimed(each["events"]) for id, each in found.items()} == {
        id: untimed(each["events"]) for id, each in expected.items()
    }
    for count in ("events", "sessions", "forks", "nodes"):
        assert sum(getattr(each, count) for each in done) == sum(getattr(each, count) for each in alone)
    await assert_whole(store)


async def test_an_append_by_someone_else_makes_the_log_continue_in_a_fork(store: Store) -> None:
    run = Import(Target(store, SPACE), "made", ImportWarnings(), merge=True)
    await run.apply([ForeignSession("a", None, id="a"), ForeignEvent("a", user_messages("one")[0])])
    await run.flush()
    await store.sessions.append(SPACE, "a", user_messages("between"))
    await run.apply([ForeignEvent("a", user_messages("two")[0])])
    done = await run.finish()
    assert await texts(store, "a") == ["one", "between"]
    assert await texts(store, "a.2") == ["one", "two"]
    assert (done.sessions, done.forks, done.known, done.events) == (2, 1, 0, 2)
    assert done.warnings == ["1 session differed from the stored one and became a fork of it"]
    await assert_whole(store)
