"""API keys over HTTP and WebSocket: valid and revoked keys, and what each role may do."""

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from storage import access_key, access_keys
from storage.access_key import AccessRole
from storage.log.append import now
from storage.store import Store
from tests.server.client import IN_TIME, PROTOCOL, Client, Ended, Socket, authorization, begin
from tests.server.commands.runner import run, running, url
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, texts
from tests.server.process import Server, at

VIEWER = "{ viewer { space role } }"
ANY_ADDRESS = re.compile(r"listens on http://\S+:\d+/graphql")
SPACE_EVENTS = "subscription { spaceEvents { seq } }"


async def key(store: Store, space: str, role: AccessRole = AccessRole.ADMIN, **given: Any) -> str:
    """A new key's text."""
    return (await access_keys.create(store.database, space, role, **given)).text


async def revoke(store: Store, text: str) -> None:
    parts = access_key.split(text)
    assert parts is not None
    await access_keys.revoke(store.database, parts[0])


async def ask(server: Server, headers: dict[str, str], query: str = VIEWER) -> httpx.Response:
    async with httpx.AsyncClient(timeout=IN_TIME) as client:
        return await client.post(server.graphql, json={"query": query}, headers=headers)


async def close_code(server: Server, payload: Any = None, headers: Any = None) -> int | None:
    """The code that a socket is closed with on its connection_init; None if it is acknowledged."""
    async with connect(server.socket, subprotocols=[PROTOCOL], proxy=None, additional_headers=headers) as socket:  # type: ignore[list-item]
        await socket.send(json.dumps({"type": "connection_init", "payload": payload or {}}))
        async with asyncio.timeout(IN_TIME):
            with contextlib.suppress(ConnectionClosed):
                assert json.loads(await socket.recv()) == {"type": "connection_ack"}
                return None
            return socket.close_code


async def refused_from_now_on(server: Server, headers: dict[str, str]) -> None:
    """Returns once a request with these headers gets 401."""
    async with asyncio.timeout(IN_TIME):
        while (await ask(server, headers)).status_code != 401:  # noqa: ASYNC110  # another process's state
            await asyncio.sleep(0.05)


async def test_a_key_opens_its_space_with_its_role(store: Store, serve: Serve) -> None:
    server = serve()
    for space, role in (("a", AccessRole.VIEWER), ("b", AccessRole.ADMIN)):
        text = await key(store, space, role)
        async with Client(lambda: server.graphql, text) as client:
            assert await client.run(VIEWER) == {"viewer": {"space": space, "role": role.value}}
        async with Socket.open(server.socket, text) as socket:
            stream = await socket.subscribe(VIEWER)
            assert await stream.next() == {"viewer": {"space": space, "role": role.value}}


async def test_a_caller_without_a_valid_credential_is_refused(store: Store, serve: Serve) -> None:
    good = await key(store, "a")
    revoked, expiring = await key(store, "a"), await key(store, "a", expires_at=now() + 1_000)
    await revoke(store, revoked)
    server = serve()
    await refused_from_now_on(server, authorization(expiring))
    other = await key(store, "a")
    bad = [
        {},
        {"Authorization": "Basic dTpw"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {good[:-1]}"},
        {"Authorization": f"Bearer {good[:-1]}{'A' if good[-1] != 'A' else 'B'}"},
        {"Authorization": f"Bearer {good[:25]}{other[25:]}"},
        {"Authorization": "Bearer sapwood_0123456789abcdef_" + "A" * 43},
        {"Authorization": "Bearer x.y.z"},
        authorization(revoked),
        authorization(expiring),
    ]
    for headers in bad:
        answer = await ask(server, headers)
        assert answer.status_code == 401, headers
        assert answer.headers["www-authenticate"] == 'Bearer realm="sapwood"'
        [error] = answer.json()["errors"]
        assert error["extensions"] == {"code": "UNAUTHENTICATED"}
        assert good not in error["message"]
        assert await close_code(server, headers) == 4403
        assert await close_code(server, headers=headers) == 4403
    assert (await ask(server, {"Authorization": f"bearer {good}"})).status_code == 200
    assert await close_code(server, {"authorization": f"Bearer {good}"}) is None
    assert await close_code(server, headers=authorization(good)) is None
    assert await close_code(server, authorization(good), authorization(revoked)) is None
    assert await close_code(server, authorization(revoked), authorization(good)) == 4403
    for value in (["x"], f"Bearer {'x' * 17_000}"):
        assert await close_code(server, {"Authorization": value}) == 4403
    assert (await asyncio.to_thread(server.ready))[0] == 200


async def test_each_role_may_do_its_own_operations_and_no_others(store: Store, serve: Serve) -> None:
    server = serve()
    needed = {
        "{ roots { id } }": AccessRole.VIEWER,
        'mutation { createSession(input: {id: "x"}) { session { id } } }': AccessRole.AGENT,
        'mutation { archiveSession(id: "x") { session { id } } }': AccessRole.ORCHESTRATOR,
        'mutation { deleteSession(id: "x") { deletedIds } }': AccessRole.ADMIN,
    }
    for role in AccessRole:
        text = await key(store, f"space-{role}", role)
        async with Client(lambda: server.graphql, text) as client, Socket.open(server.socket, text) as socket:
            for query, need in needed.items():
                if role.includes(need):
                    await client.run(query)
                    continue
                refusals = [await client.refusal(query), await (await socket.subscribe(query)).refusal()]
                for refusal in refusals:
                    assert refusal.code == "FORBIDDEN"
                    assert re.match(rf"\w+: it needs the role {need}, the caller has {role}$", refusal.message)
            stream = await socket.subscribe("subscription { forestChanges { __typename } }")
            assert await stream.next() == {"forestChanges": {"__typename": "ForestSnapshot"}}


async def test_a_revoked_key_is_refused_and_its_sockets_are_closed(
    store: Store, serve: Serve, location: Path | str
) -> None:
    """Sockets of other keys stay open, also in the same space."""
    server = serve()
    going, staying = await key(store, "a"), await key(store, "a")
    async with (
        Client(lambda: server.graphql, staying) as client,
        Socket.open(server.socket, going) as idle,
        Socket.open(server.socket, going) as busy,
        Socket.open(server.socket, staying) as other,
    ):
        await create(client, "s")
        await append(client, "s", *texts(2))
        streams = [await socket.subscribe(FOLLOW, id="s", **{"from": 0}) for socket in (busy, other)]
        for stream in streams:
            await stream.take(2)
        done = await asyncio.to_thread(run, "keys", "revoke", going, *at(location))
        assert done.returncode == 0, done.stderr
        with pytest.raises(Ended, match="4403"):
            await streams[0].next()
        async with asyncio.timeout(IN_TIME):
            await idle.connection.wait_closed()
        assert (idle.connection.close_code, idle.connection.close_reason) == (4403, "the API key has been revoked")
        await refused_from_now_on(server, authorization(going))
        await append(client, "s", *texts(1, 2))
        assert (await streams[1].next())["sessionEvents"]["seq"] == 2


async def test_a_socket_is_closed_when_its_key_expires(store: Store, serve: Serve) -> None:
    server = serve()
    end = now() + 3_000
    ending, staying = await key(store, "a", expires_at=end), await key(store, "a")
    async with Socket.open(server.socket, ending) as socket, Socket.open(server.socket, staying) as other:
        stream = await socket.subscribe(SPACE_EVENTS)
        with pytest.raises(Ended, match="4403"):
            await stream.next()
        assert now() >= end
        assert socket.connection.close_reason == "the credential has expired"
        assert await (await other.subscribe(VIEWER)).next() == {"viewer": {"space": "a", "role": "ADMIN"}}


async def test_the_first_key_ends_open_access_for_good(store: Store, serve: Serve) -> None:
    server = serve()
    assert (await ask(server, {})).json()["data"] == {"viewer": {"space": "default", "role": "ADMIN"}}
    async with Socket.open(server.socket) as socket:
        stream = await socket.subscribe(SPACE_EVENTS)
        text = await key(store, "a")
        with pytest.raises(Ended, match="4403"):
            await stream.next()
    await refused_from_now_on(server, {})
    assert (await ask(server, authorization(text))).status_code == 200
    await revoke(store, text)
    await refused_from_now_on(server, authorization(text))
    assert (await ask(server, {})).status_code == 401
    assert (await ask(serve(), {})).status_code == 401


async def test_an_unknown_credential_is_refused_where_none_is_needed(shared: Server) -> None:
    """Its sender expects to be a certain caller, and must not work as the open one."""
    for headers in (authorization("sapwood_0123456789abcdef_" + "A" * 43), authorization("x.y.z")):
        assert (await ask(shared, headers)).status_code == 401


async def test_open_access_requires_a_host_header_of_this_machine(store: Store, serve: Serve) -> None:
    """A page whose name was made to resolve to this machine is refused; a request with a key is not."""
    server = serve()
    port = server.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "localhost", "api.localhost"):
        assert (await ask(server, {"Host": host})).status_code == 200, host
    for host in (f"evil.example:{port}", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::"):
        answer = await ask(server, {"Host": host})
        assert answer.status_code == 403, host
        assert answer.json()["errors"][0]["extensions"] == {"code": "FORBIDDEN"}
    with pytest.raises(ConnectionClosed):
        await begin(f"ws://evil.example:{port}/graphql", host="127.0.0.1", port=int(port))
    text = await key(store, "a")
    assert (await ask(server, {"Host": "sapwood.example", **authorization(text)})).status_code == 200


async def test_the_last_use_of_a_key_is_recorded(store: Store, serve: Serve) -> None:
    before = now()
    server = serve()
    used, unused = await key(store, "a"), await key(store, "a")
    assert (await ask(server, authorization(used))).status_code == 200
    async with asyncio.timeout(IN_TIME):
        found: dict[str, int | None] = {}
        while not any(found.values()):
            found = {one.id: one.last_used_at for one in await access_keys.list_all(store.database)}
            await asyncio.sleep(0.05)
    parts = [access_key.split(text) for text in (used, unused)]
    assert parts[0] is not None and parts[1] is not None
    last_used = found[parts[0][0]]
    assert last_used is not None and before <= last_used <= now()
    assert found[parts[1][0]] is None


async def test_nothing_runs_before_a_socket_is_acknowledged(store: Store, serve: Serve) -> None:
    server = serve()
    await key(store, "a")
    async with connect(server.socket, subprotocols=[PROTOCOL], proxy=None) as socket:  # type: ignore[list-item]
        await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": {"query": VIEWER}}))
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 4401


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_serve_refuses_other_machines_without_access_control(location: Path | str, host: str) -> None:
    for command in ("serve", "demo"):
        done = run(command, "--port", "0", "--host", host, *at(location))
        assert (done.returncode, done.stdout) == (1, "")
        assert "sapwood keys create" in done.stderr and "--insecure" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    with running("serve", "--port", "0", "--host", host, "--insecure", *at(location), address=ANY_ADDRESS) as (_, line):
        port = line.rpartition(":")[2].removesuffix("/graphql\n")
        answer = httpx.post(
            f"http://127.0.0.1:{port}/graphql", json={"query": VIEWER}, headers={"Host": "a.example"}, timeout=IN_TIME
        )
        assert answer.json()["data"] == {"viewer": {"space": "default", "role": "ADMIN"}}


def test_serve_accepts_other_machines_with_a_key(location: Path | str) -> None:
    made = json.loads(run("keys", "create", "--role", "viewer", "--space", "a", "--json", *at(location)).stdout)
    with running("serve", "--port", "0", "--host", "0.0.0.0", *at(location), address=ANY_ADDRESS) as (
        _,
        line,
    ):
        port = line.rpartition(":")[2].removesuffix("/graphql\n")
        for headers, status in (({}, 401), (authorization(made["key"]), 200)):
            answer = httpx.post(
                f"http://127.0.0.1:{port}/graphql", json={"query": VIEWER}, headers=headers, timeout=IN_TIME
            )
            assert answer.status_code == status


def test_workers_have_the_same_access(tmp_path: Path) -> None:
    made = json.loads(run("keys", "create", "--role", "viewer", "--json", "--data-dir", tmp_path).stdout)
    with running("serve", "--port", "0", "--workers", "2", "--data-dir", tmp_path) as (_, line):
        for _ in range(10):
            answer = httpx.post(
                f"{url(line)}/graphql", json={"query": VIEWER}, headers=authorization(made["key"]), timeout=IN_TIME
            )
            assert answer.json()["data"] == {"viewer": {"space": "default", "role": "VIEWER"}}
            assert httpx.post(f"{url(line)}/graphql", json={"query": VIEWER}).status_code == 401


def test_keys_are_made_listed_and_revoked_on_the_command_line(location: Path | str) -> None:
    made = run("keys", "create", "--space", "a", "--role", "Agent", "--name", "run[b]time", *at(location))
    text = made.stdout.strip()
    parts = access_key.split(text)
    assert parts is not None and made.returncode == 0
    assert "can't be shown again" in made.stderr
    expiring = run("keys", "create", "--role", "admin", "--expires-in", "2h", "--json", *at(location))
    found = json.loads(expiring.stdout)
    assert access_key.split(found["key"]) is not None
    assert found | {"space": "default", "role": "admin", "name": None, "state": "active"} == found
    listed = json.loads(run("keys", "list", "--json", *at(location)).stdout)
    assert {row["id"] for row in listed} == {parts[0], found["id"]}
    [row] = json.loads(run("keys", "list", "--space", "a", "--json", *at(location)).stdout)
    assert row | {"id": parts[0], "space": "a", "role": "agent", "name": "run[b]time", "lastUsedAt": None} == row
    assert "hash" not in row and "key" not in row
    shown = run("keys", "list", *at(location)).stdout
    assert parts[0] in shown and "run[b]time" in shown and parts[1] not in shown
    assert run("keys", "revoke", parts[0], *at(location)).stdout == f"{parts[0]} is revoked\n"
    again = json.loads(run("keys", "revoke", text, "--json", *at(location)).stdout)
    assert again["state"] == "revoked"
    unknown = run("keys", "revoke", "0" * 16, *at(location))
    assert (unknown.returncode, unknown.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--role", "king"],
        ["--role", "admin", "--space", "a/b"],
        ["--role", "admin", "--expires-in", "0d"],
        ["--role", "admin", "--expires-in", "tomorrow"],
    ],
)
def test_wrong_options_for_a_key_are_an_error_and_make_no_store(tmp_path: Path, options: list[str]) -> None:
    done = run("keys", "create", *options, "--data-dir", tmp_path / "data")
    assert (done.returncode, done.stdout) == (2, "")
    assert not (tmp_path / "data").exists()
