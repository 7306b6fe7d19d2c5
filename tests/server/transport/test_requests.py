"""GraphQL over HTTP beyond the audits of graphql-http: invalid requests and their answers."""

import asyncio
import contextlib
import gzip
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.server.client import IN_TIME, Client, Socket
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, texts
from tests.server.process import Server

JSON = {"content-type": "application/json"}
RESPONSE = "application/graphql-response+json"
QUERY = b'{"query": "{ viewer { space } }"}'
QUERY_REQUEST = (
    b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(QUERY), QUERY)
)
MAX_BODY = 12 * 1024 * 1024


async def ask(server: Server, method: str = "POST", **given: Any) -> httpx.Response:
    async with httpx.AsyncClient(timeout=IN_TIME, verify=False) as http:
        return await http.request(method, server.graphql, **given)


def check(answer: httpx.Response, status: int, code: str = "BAD_INPUT") -> str:
    """Asserts that this is a refusal in JSON, and returns its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] in ("application/json; charset=utf-8", f"{RESPONSE}; charset=utf-8")
    body = answer.json()
    assert list(body) == ["errors"] and len(body["errors"]) == 1
    assert body["errors"][0]["extensions"]["code"] == code
    message: str = body["errors"][0]["message"]
    return message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"5",
        b'"{ viewer { space } }"',
        b'[{"query": "{ viewer { space } }"}]',
        b'{"query": "\xff"}',
        b"\xff\xfe{\0}\0",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"query": "{ viewer { space } }", "variables": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"query": "{ viewer { space } }", "variables": {"a": NaN}}',
        b'{"query": "{ viewer { space } }", "variables": {"a": ' + b"1" * 5_000 + b"}}",
        '{"query": "{ viewer { space } }"}'.encode("utf-16"),
        b"{}",
        b'{"query": null}',
        b'{"query": ["{ viewer { space } }"]}',
        b'{"query": "{ viewer { space } }", "variables": "{}"}',
        b'{"query": "{ viewer { space } }", "variables": []}',
        b'{"query": "{ viewer { space } }", "operationName": {}}',
        b'{"query": "{ viewer { space } }", "extensions": []}',
    ],
)
@pytest.mark.parametrize("accept", ["application/json", RESPONSE])
async def test_a_body_that_is_not_a_request_is_refused(shared: Server, body: bytes, accept: str) -> None:
    check(await ask(shared, content=body, headers={**JSON, "accept": accept}), 400)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("{", None),
        ("", None),
        ("{ nonsense }", None),
        ("query A { viewer { space } } query B { viewer { space } }", None),
        ("query A { viewer { space } }", "B"),
        ("query A { viewer { space } }", ""),
        ("fragment F on Viewer { space }", None),
        ("query($a: Int!) { viewer { space } }", None),
        ('{ session(id: "a") { events(first: ' + "1" * 5_000 + ") { events { seq } } } }", None),
    ],
)
async def test_a_document_that_can_not_be_run_is_refused(shared: Server, query: str, name: str | None) -> None:
    """The status is 400 for clients that accept the newer media type, else 200, which older ones expect."""
    body = json.dumps({"query": query, "operationName": name})
    check(await ask(shared, content=body, headers={**JSON, "accept": RESPONSE}), 400)
    check(await ask(shared, content=body, headers=JSON), 200)


async def test_a_named_one_of_several_operations_is_run(shared: Server) -> None:
    query = "query A { viewer { space } } query B { viewer { role } }"
    answer = await ask(shared, json={"query": query, "operationName": "B"})
    assert answer.json()["data"] == {"viewer": {"role": "ADMIN"}}


async def test_an_error_during_execution_is_200_with_data(shared: Server, name: str) -> None:
    query = "query($id: ID!) { viewer { space } session(id: $id) { events(first: -1) { head } } }"
    await ask(shared, json={"query": f'mutation {{ createSession(input: {{id: "{name}"}}) {{ session {{ id }} }} }}'})
    body = json.dumps({"query": query, "variables": {"id": name}})
    for accept in ("application/json", RESPONSE):
        answer = await ask(shared, content=body, headers={**JSON, "accept": accept})
        assert answer.status_code == 200
        assert answer.json()["data"] == {"viewer": {"space": "default"}, "session": None}
        assert answer.json()["errors"][0]["extensions"]["code"] == "BAD_INPUT"


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("*/*", "application/json"),
        ("", "application/json"),
        ("application/*", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        (f"{RESPONSE}, application/json;q=0.9", RESPONSE),
        (f"application/json;q=0.9, {RESPONSE}", RESPONSE),
        (f"{RESPONSE};q=0.2, application/json;q=0.9", "application/json"),
        (f"{RESPONSE}; charset=utf-8, application/json", RESPONSE),
        (f"{RESPONSE};q=0, */*", "application/json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
        ("text/event-stream;q=0.1, application/json", "application/json"),
    ],
)
async def test_the_answer_has_the_media_type_that_is_preferred(shared: Server, accept: str, media: str) -> None:
    answer = await ask(shared, content=QUERY, headers={**JSON, "accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, f"{media}; charset=utf-8")
    assert answer.json()["data"] == {"viewer": {"space": "default"}}


@pytest.mark.parametrize("accept", ["text/html", "image/png", "application/json;q=0", "*/*;q=0"])
async def test_an_accept_header_without_a_supported_type_is_406(shared: Server, accept: str) -> None:
    message = check(await ask(shared, content=QUERY, headers={**JSON, "accept": accept}), 406)
    assert "application/json" in message


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_other_methods_are_405_and_allow_names_the_right_ones(shared: Server, method: str) -> None:
    answer = await ask(shared, method, content=QUERY, headers=JSON)
    check(answer, 405)
    assert answer.headers["allow"] == "GET, POST"


async def test_a_mutation_by_get_is_405_and_nothing_is_done(shared: Server, name: str) -> None:
    query = f'mutation {{ createSession(input: {{id: "{name}"}}) {{ session {{ id }} }} }}'
    answer = await ask(shared, "GET", params={"query": query})
    check(answer, 405)
    assert answer.headers["allow"] == "POST"
    found = await ask(shared, "GET", params={"query": f'{{ session(id: "{name}") {{ id }} }}'})
    assert found.json()["data"] == {"session": None}


async def test_a_query_can_be_sent_by_get(shared: Server) -> None:
    query = "query A($id: ID!) { session(id: $id) { id } } query B { viewer { space } }"
    variables = {"query": query, "operationName": "A", "variables": '{"id": "no-such-session"}'}
    assert (await ask(shared, "GET", params=variables)).json()["data"] == {"session": None}


@pytest.mark.parametrize(
    "address", ["", "?query", "?query=%ff", "?query={__typename}&variables={", "?query={__typename}&variables=[]"]
)
async def test_an_address_that_is_not_a_request_is_refused(shared: Server, address: str) -> None:
    async with httpx.AsyncClient(timeout=IN_TIME, verify=False) as http:
        answer = await http.get(f"{shared.graphql}{address}", headers={"accept": RESPONSE})
    check(answer, 400)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/graphql"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
async def test_other_content_is_415(shared: Server, headers: Mapping[str, str]) -> None:
    content = gzip.compress(QUERY) if "content-encoding" in headers else QUERY
    check(await ask(shared, content=content, headers=headers), 415)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'])
async def test_json_may_name_its_charset(shared: Server, kind: str) -> None:
    assert (await ask(shared, content=QUERY, headers={"content-type": kind})).status_code == 200


@pytest.mark.parametrize("accept", ["*/*", RESPONSE])
async def test_a_subscription_by_a_plain_request_is_refused_with_the_right_ways(shared: Server, accept: str) -> None:
    body = {"query": "subscription { spaceEvents { seq } }"}
    message = check(await ask(shared, json=body, headers={"accept": accept}), 400)
    assert "text/event-stream" in message and "graphql-transport-ws" in message


async def test_a_body_of_12_mib_is_accepted(shared: Server) -> None:
    start, end = b'{"query": "{ viewer { space } }", "variables": {"x": "', b'"}}'
    content = start + b"x" * (MAX_BODY - len(start) - len(end)) + end
    answer = await ask(shared, content=content, headers=JSON)
    assert answer.json()["data"] == {"viewer": {"space": "default"}}


@pytest.mark.parametrize("way", ["announced", "in chunks"])
async def test_a_larger_body_is_refused_before_it_is_read(shared: Server, way: str) -> None:
    """The answer is sent though most of the body never arrives, and the connection is closed."""
    where = urlsplit(shared.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    head = "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    if way == "announced":
        writer.write(f"{head}content-length: 1000000000\r\n\r\n".encode())
    else:
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        for _ in range(13):
            writer.write(b"100000\r\n" + b"x" * 2**20 + b"\r\n")
    async with asyncio.timeout(IN_TIME):
        answer = await reader.read()
    head, body = answer.decode().split("\r\n\r\n")
    assert " 413 " in head.splitlines()[0] and "connection: close" in head.lower()
    error = json.loads(body)["errors"][0]
    assert (error["extensions"]["code"], str(MAX_BODY) in error["message"]) == ("PAYLOAD_TOO_LARGE", True)
    writer.close()


async def test_a_client_that_sends_a_larger_body_whole_gets_the_refusal(shared: Server) -> None:
    answer = await ask(shared, content=b"x" * 20_000_000, headers=JSON)
    check(answer, 413, "PAYLOAD_TOO_LARGE")


async def test_a_connection_serves_requests_after_a_refused_one(shared: Server) -> None:
    async with httpx.AsyncClient(timeout=IN_TIME, verify=False) as http:
        for content, status in ((b"{", 400), (QUERY, 200), (b"null", 400), (QUERY, 200)):
            assert (await http.post(shared.graphql, content=content, headers=JSON)).status_code == status


async def test_half_a_request_harms_nobody(shared: Server, client: Client, name: str) -> None:
    """A client that disconnects in the middle of its body leaves nothing behind."""
    where = urlsplit(shared.url)
    for _ in range(20):
        _, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(
            b"POST /graphql HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\ncontent-length: 99\r\n\r\n{"
        )
        await writer.drain()
        writer.transport.abort()
    await create(client, name)
    assert (await append(client, name, *texts(1)))["head"] == 1


async def exchange(server: Server, sent: bytes) -> tuple[int, Any]:
    """Status and JSON of the answer to these bytes."""
    where = urlsplit(server.graphql)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    async with asyncio.timeout(IN_TIME):
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        content = await reader.readexactly(length)
    writer.close()
    return int(head.split()[1]), json.loads(content)


async def test_bytes_that_are_not_http_are_refused_in_json(shared: Server) -> None:
    status, answer = await exchange(shared, b"no request\r\n\r\n")
    assert (status, answer["errors"][0]["extensions"]["code"]) == (400, "BAD_INPUT")


@pytest.mark.parametrize("start", [b"GET /graphql?query=", b"GET /graphql HTTP/1.1\r\nhost: localhost\r\nlong: "])
async def test_headers_without_an_end_are_refused(shared: Server, start: bytes) -> None:
    status, answer = await exchange(shared, start + b"a" * (600 * 1024 - len(start)))
    assert (status, answer["errors"][0]["extensions"]["code"]) == (431, "BAD_INPUT")


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("parted", [False, True])
async def test_a_request_for_an_upgrade_keeps_its_body(shared: Server, protocol: bytes, parted: bool) -> None:
    length = b"content-length: %d\r\n" % len(QUERY)
    body = QUERY
    if parted:
        length, body = b"transfer-encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(QUERY), QUERY)
    asked = b"connection: upgrade, http2-settings\r\nupgrade: %s\r\nhttp2-settings: AAMAAABk\r\n" % protocol
    head = b"POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    status, answer = await exchange(shared, head + asked + length + b"\r\n" + body)
    assert (status, answer["data"]) == (200, {"viewer": {"space": "default"}})


HEAD = b"POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", b"P", HEAD, HEAD + b"\r\n", HEAD + b"\r\n{", QUERY_REQUEST + HEAD + b"\r\n{"],
    ids=["nothing", "a letter", "headers", "no body", "half a body", "half of a second request"],
)
async def test_a_request_that_stops_halfway_is_ended(serve: Serve, sent: bytes) -> None:
    server = serve("--request-timeout", "0.5")
    reader, writer = await connection_to(server)
    writer.write(sent)
    async with asyncio.timeout(IN_TIME):
        received = await reader.read()
    writer.close()
    response = received[received.rindex(b"HTTP/1.1 ") :]
    assert response.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    [error] = json.loads(response.partition(b"\r\n\r\n")[2])["errors"]
    assert error["extensions"]["code"] == "BAD_INPUT"
    assert "too slow" in error["message"]
    assert (await ask(server, content=QUERY, headers=JSON)).status_code == 200


async def test_headers_that_trickle_in_are_ended(serve: Serve) -> None:
    server = serve("--request-timeout", "0.5")
    reader, writer = await connection_to(server)

    async def trickle() -> None:
        with contextlib.suppress(OSError):
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            while True:
                writer.write(b"X-A: b\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)  # the pace of the attack; any other would do

    trickling = asyncio.create_task(trickle())
    async with asyncio.timeout(IN_TIME):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    trickling.cancel()
    writer.close()


async def test_a_slow_body_that_makes_progress_is_read(serve: Serve) -> None:
    server = serve("--request-timeout", "2")
    padding = b" " * 8192
    parts = 6
    reader, writer = await connection_to(server)
    size = len(QUERY) + parts * len(padding)
    writer.write(b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
    writer.write(b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % size)
    for _ in range(parts):
        writer.write(padding)
        await writer.drain()
        await asyncio.sleep(0.5)  # the pace of the client: longer than the timeout in all, a quarter of it at a time
    writer.write(QUERY)
    async with asyncio.timeout(IN_TIME):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_an_event_stream_outlasts_the_timeout_of_requests(serve: Serve, name: str) -> None:
    server = serve("--request-timeout", "0.5")
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        await create(client, name)
        live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        reader, writer = await connection_to(server)
        async with asyncio.timeout(IN_TIME):
            assert (await reader.read()).startswith(b"HTTP/1.1 408")  # so the timeout has passed
        await append(client, name, *texts(1))
        assert (await live.next())["sessionEvents"]["seq"] == 0
        writer.close()


async def connection_to(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(server.url)
    return await asyncio.open_connection(address.hostname, address.port)
