"""Pages of other origins, over HTTP and WebSocket."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.server.client import IN_TIME, begin
from tests.server.commands.runner import run
from tests.server.conftest import Serve
from tests.server.process import Server

VIEWER = "{ viewer { space } }"
ALLOWED, OTHER = "https://a.example", "https://b.example"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """These tests do not depend on the store, so one kind is enough."""
    return tmp_path / "data"


async def ask(server: Server, origin: str | None, method: str = "POST", **headers: str) -> httpx.Response:
    given = headers if origin is None else {"Origin": origin, **headers}
    async with httpx.AsyncClient(timeout=IN_TIME) as client:
        if method == "POST":
            return await client.post(server.graphql, json={"query": VIEWER}, headers=given)
        return await client.request(method, server.graphql, params={"query": VIEWER}, headers=given)


async def opens_socket(server: Server, origin: str | None) -> bool:
    headers: Any = None if origin is None else {"Origin": origin}
    try:
        connection = await begin(server.socket, additional_headers=headers)
    except InvalidStatus as error:
        assert error.response.status_code == 403
        return False
    await connection.close()
    return True


@pytest.mark.parametrize(
    "origin", [OTHER, "null", "http://127.0.0.1", "http://localhost:1", "file://", "", "https://[", "*"]
)
async def test_a_foreign_origin_is_refused(shared: Server, origin: str) -> None:
    for method in ("POST", "GET", "OPTIONS"):
        answer = await ask(shared, origin, method)
        assert answer.status_code == 403
        assert answer.json()["errors"][0]["extensions"] == {"code": "FORBIDDEN"}
        assert "access-control-allow-origin" not in answer.headers
    assert not await opens_socket(shared, origin)


async def test_pages_of_the_server_itself_and_other_clients_are_let_in(shared: Server) -> None:
    for origin in (None, shared.url):
        answer = await ask(shared, origin)
        assert answer.json()["data"] == {"viewer": {"space": "default"}}
        assert await opens_socket(shared, origin)
    assert (await ask(shared, OTHER, **{"Sec-Fetch-Site": "same-origin"})).status_code == 200


async def test_an_allowed_origin_is_let_in_and_gets_cors_headers(serve: Serve) -> None:
    server = serve("--allowed-origins", f"{ALLOWED}, http://c.example:8080")
    for origin in (ALLOWED, "http://c.example:8080"):
        answer = await ask(server, origin)
        assert answer.json()["data"] == {"viewer": {"space": "default"}}
        assert answer.headers["access-control-allow-origin"] == origin
        assert "access-control-allow-credentials" not in answer.headers
        assert await opens_socket(server, origin)
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    preflight = await ask(server, ALLOWED, "OPTIONS", **asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == ALLOWED
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    for origin in (OTHER, "http://a.example", "https://a.example:8443", "https://x.a.example", "null"):
        assert (await ask(server, origin)).status_code == 403
        assert (await ask(server, origin, "OPTIONS", **asked)).status_code == 403
        assert not await opens_socket(server, origin)


async def test_any_origin_can_be_allowed(serve: Serve) -> None:
    server = serve("--allowed-origins", "*")
    for origin in (OTHER, "null"):
        answer = await ask(server, origin)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert await opens_socket(server, origin)


@pytest.mark.parametrize("setting", ["a.example", "https://a.example/path", "https://a.example,nothing", "null"])
def test_a_setting_that_is_not_an_origin_is_an_error(tmp_path: Path, setting: str) -> None:
    done = run("serve", "--port", "0", "--workers", "2", "--data-dir", tmp_path, "--allowed-origins", setting)
    assert (done.returncode, done.stdout) == (1, "")
    assert "SAPWOOD_ALLOWED_ORIGINS" in done.stderr and len(done.stderr.splitlines()) == 1
