"""/metrics: what it counts, what it must never hold, and who may read it."""

import asyncio
import contextlib
import json

import httpx
import pytest

from tests.server.client import Client, Socket
from tests.server.commands.runner import run
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, texts
from tests.server.process import Server
from tests.server.telemetry.scrape import metrics_once, scrape

NOTHING = "query Nothing { viewer { space } }"


async def test_operations_are_counted_by_name_and_outcome(serve: Serve, name: str) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:
        for _ in range(3):
            await client.run(NOTHING)
        await client.run("{ viewer { space } }")
        await client.refusal('mutation Lost { renameSession(id: "no", label: "x") { session { id } } }')
        await create(client, name)
        await append(client, name, *texts(5))
        await append(client, name, *texts(2, 5))
        await client.refusal(NOTHING.replace("space", "nonsense"))
        found = await scrape(server)
    assert found.value("operations_total", kind="query", name="Nothing", outcome="ok") == 3
    assert found.value("operation_seconds_count", kind="query", name="Nothing") == 3
    assert found.value("operations_total", kind="query", name="(anonymous)", outcome="ok") == 1
    assert found.value("operations_total", kind="mutation", name="Lost", outcome="NOT_FOUND") == 1
    assert found.value("operations_total", kind="query", name="(refused)", outcome="BAD_INPUT") == 1
    assert (found.value("appends_total"), found.value("events_total")) == (2, 7)
    assert found.value("http_requests_total", path="/graphql", method="POST", status="200") >= 8
    assert found.value("database_call_seconds_count", call="transact", outcome="ok") >= 3
    assert found.value("database_call_seconds_count", call="transact", outcome="refused") >= 1


async def test_clients_can_not_make_labels_without_bound(serve: Serve) -> None:
    """Names of operations that are not valid are never labels, and of valid ones only so many."""
    server = serve()
    async with Client(lambda: server.graphql) as client:
        for place in range(250):
            await client.run(f"query Chosen{place} {{ viewer {{ space }} }}")
            await client.refusal(f"query Wrong{place} {{ nonsense }}")
            await client.refusal(f"query Broken{place} {{")
        await client.run(f"query {'x' * 1000} {{ viewer {{ space }} }}")
        async with httpx.AsyncClient(verify=False) as http:
            await http.get(f"{server.url}/no/such/path")
            await http.request("PROPFIND", server.graphql)
        found = await scrape(server)
    names = found.labels("operations_total", "name")
    assert len(names) == 202 and {"Chosen0", "Chosen199", "(other)", "(refused)"} <= names
    assert not any(name.startswith(("Wrong", "Broken", "xx")) for name in names)
    assert found.value("operations_total", name="(other)") == 51
    assert found.value("operations_total", name="(refused)", outcome="BAD_INPUT") == 500
    assert found.labels("http_requests_total", "path") <= {"/graphql", "/metrics", "(other)"}
    assert found.labels("http_requests_total", "method") == {"GET", "POST", "(other)"}


async def test_subscriptions_are_counted_while_they_last_and_when_they_end(serve: Serve, name: str) -> None:
    server = serve()
    follow = FOLLOW.replace("subscription(", "subscription Follow(")
    async with Client(lambda: server.graphql) as client:
        await create(client, name)
        async with Socket.open(server.socket) as socket:
            stream = await socket.subscribe(follow, id=name, **{"from": 0})
            await append(client, name, *texts(3))
            await stream.take(3)
            found = await scrape(server)
            assert (found.value("subscriptions"), found.value("sockets_open")) == (1, 1)
            assert found.value("delivered_total") == 3
            assert found.value("feed_buffer_bytes") > 0
            await stream.stop()
            await metrics_once(server, lambda found: found.value("subscriptions") == 0)
        found = await metrics_once(server, lambda found: found.value("sockets_open") == 0)
    assert found.value("operations_total", kind="subscription", name="Follow", outcome="stopped") == 1


async def test_a_scrape_of_several_workers_covers_all_of_them(serve: Serve, name: str) -> None:
    """Whichever worker answers; a worker that is killed leaves its counts behind, and none of its gauges."""
    server = serve("--workers", "2")

    async def ask(client: Client, count: int) -> None:
        for _ in range(count):
            await client.run(NOTHING)

    async with Client(lambda: server.graphql) as client:
        await create(client, name)
    async with contextlib.AsyncExitStack() as sockets:
        for _ in range(12):
            socket = await sockets.enter_async_context(Socket.open(server.socket))
            await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        await metrics_once(server, lambda found: found.value("subscriptions") == 12)
        for _ in range(10):  # each over connections of its own, so that both workers get some
            async with Client(lambda: server.graphql) as one, Client(lambda: server.graphql) as other:
                await asyncio.gather(ask(one, 5), ask(other, 5))
        for _ in range(4):
            assert (await scrape(server)).value("operations_total", name="Nothing") == 100
        workers = [child for child in server.process.children() if "spawn_main" in " ".join(child.cmdline())]
        assert len(workers) == 2
        workers[0].kill()
    found = await metrics_once(server, lambda found: not any(found.gauges.values()))
    assert found.value("operations_total", name="Nothing") == 100


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A server on a file of its own, whose metrics are for those that the test's parameter names."""
    folder = tmp_path_factory.mktemp("own")
    server = Server(folder / "data", folder / "log", "--metrics", request.param)
    server.start()
    request.addfinalizer(server.end)
    return server


@pytest.mark.parametrize(
    ("own", "headers", "status"),
    [
        ("off", {}, 404),
        ("open", {"x-forwarded-for": "192.0.2.1"}, 200),
        ("loopback", {}, 200),
        ("loopback", {"x-forwarded-for": "192.0.2.1"}, 403),
        ("loopback", {"forwarded": "for=192.0.2.1"}, 403),
        ("loopback", {"x-real-ip": "192.0.2.1"}, 403),
        ("loopback", {"via": "1.1 proxy.example"}, 403),
        ("loopback", {"host": "rebound.example"}, 403),
        ("a-token-of-16-or-more", {}, 401),
        ("a-token-of-16-or-more", {"authorization": "Bearer a-token-of-16-or-mor"}, 401),
        ("a-token-of-16-or-more", {"authorization": "Bearer a-token-of-16-or-more"}, 200),
    ],
    indirect=["own"],
)
def test_metrics_are_served_to_those_who_may_read_them(own: Server, headers: dict[str, str], status: int) -> None:
    assert httpx.get(f"{own.url}/metrics", headers=headers, verify=False).status_code == status


def test_a_word_that_is_no_token_is_refused_at_start() -> None:
    ended = run("serve", "--metrics", "opne")
    assert ended.returncode == 2
    assert "16" in ended.stderr and "--metrics" in ended.stderr


async def test_answers_tell_how_long_their_steps_took(client: Client) -> None:
    answer = await client.post(json.dumps({"query": NOTHING}))
    steps = dict(step.split(";dur=") for step in answer.headers["server-timing"].split(", "))
    assert list(steps) == ["parse", "validate", "execute", "total"]
    assert float(steps["total"]) >= float(steps["execute"]) > 0
