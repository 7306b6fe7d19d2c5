"""Processes that are killed at random moments under load, and what they leave."""

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest

from tests.conftest import MongoServer
from tests.effort import LONG
from tests.server.client import Client
from tests.server.load import Follower, Load, check_whole, running
from tests.server.operations import create, log
from tests.server.process import SAPWOOD, Server

ROUNDS = 20 if LONG else 8
SESSIONS = 4
WRITERS = 8
CATCH_UP_SECONDS = 300.0
SEED = int(os.environ.get("SAPWOOD_TEST_SEED", random.SystemRandom().randrange(2**32)))
"""Printed, so that a failed run can be repeated."""

Restart = Callable[[], None]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[MongoServer]:
    """A MongoDB server of the test's own, which it may kill."""
    server = MongoServer(tmp_path / "mongodb")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["server on sqlite", "server on mongodb", "mongodb"])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Path | str, Restart]]:
    """A server, the location of its data, and a function that kills and restarts what this test kills."""
    what, _, store = request.param.partition(" on ")
    database: MongoServer | None = None if store == "sqlite" else request.getfixturevalue("database")
    location: Path | str = tmp_path / "data" if database is None else f"{database.url}crashes"
    server = Server(location, tmp_path / "log")
    server.start()

    def restart() -> None:
        if what == "server":
            server.kill()
            if database is not None:
                _end_transactions(database)
            server.start()
        else:
            assert database is not None
            database.kill()
            database.start()

    yield server, location, restart
    server.end()
    print(server.output)


def _end_transactions(database: MongoServer) -> None:
    """Ends transactions of a killed server; MongoDB does that after a minute, and until then they block others."""
    client: pymongo.MongoClient[dict[str, Any]]
    with pymongo.MongoClient(database.url) as client:
        client.admin.command("killAllSessions", [])


async def test_acknowledged_writes_survive_kills_at_random_moments(
    killed: tuple[Server, Path | str, Restart],
) -> None:
    """No acknowledged event is lost or stored twice, no append is torn, and each subscriber sees the exact log."""
    server, location, restart = killed
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    async with Client(lambda: server.graphql) as client:
        root = await create(client, "root")
        sessions = [await create(client, f"s{number}", root) for number in range(SESSIONS)]
        forks = await create(client, "forks")
        load = Load(server, sessions, chance)
        followers = [Follower(server, [id]) for id in sessions]
        space = Follower(server, sessions)
        following = [asyncio.create_task(follower.of_session()) for follower in followers]
        following.append(asyncio.create_task(space.of_space(root)))
        writing = [asyncio.create_task(load.write(client, writer)) for writer in range(WRITERS)]
        writing.append(asyncio.create_task(load.fork(client, forks)))
        async with running(*following):
            async with running(*writing):
                for _ in range(ROUNDS):
                    await load.acknowledged(chance.randint(1, 40))
                    await asyncio.sleep(chance.uniform(0, 0.02))
                    await asyncio.to_thread(restart)
                await load.acknowledged(WRITERS)
                load.stopped = True
                await asyncio.gather(*writing)
            logs = {id: await log(client, id) for id in sessions}
            check_whole(logs, load)
            await _check_forks(client, forks, logs, load)
            async with asyncio.timeout(CATCH_UP_SECONDS):
                for follower in (*followers, space):
                    await follower.caught_up(logs)
        for follower in (*followers, space):
            assert follower.seen == {id: logs[id] for id in follower.seen}
    where = ["--data-dir", str(location)] if isinstance(location, Path) else ["--database-url", location]
    check = await asyncio.create_subprocess_exec(SAPWOOD, "check", *where, stdout=asyncio.subprocess.PIPE)
    output, _ = await check.communicate()
    assert check.returncode == 0, output.decode()
    assert await asyncio.to_thread(server.end) == 0


async def _check_forks(client: Client, parent_id: str, logs: dict[str, list[dict[str, object]]], load: Load) -> None:
    """Each acknowledged fork exists once and whole: a prefix of its source's log, then its prompt."""
    query = "query($id: ID!) { topologyNode(id: $id) { children { id sourceSessionId forkSeq } } }"
    children = (await client.run(query, id=parent_id))["topologyNode"]["children"]
    by_id = {child["id"]: child for child in children}
    assert sorted(by_id) == sorted(id for id, _ in load.forked.values())
    for key, (id, head) in load.forked.items():
        child, events = by_id[id], await log(client, id)
        assert len(events) == head == child["forkSeq"] + 1
        assert events[:-1] == logs[child["sourceSessionId"]][: child["forkSeq"]]
        assert events[-1]["content"] == key
