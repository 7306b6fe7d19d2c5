"""graphql-transport-ws: messages and close codes, compared with those of graphql-ws."""

import asyncio
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.server.client import IN_TIME, PROTOCOL, Client, Socket, begin, subscribe_message
from tests.server.conftest import Serve
from tests.server.operations import FOLLOW, append, create, texts
from tests.server.process import Server

INIT = '{"type": "connection_init"}'
HELLO = '{"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}}'


def subscribe(**given: Any) -> str:
    return json.dumps({"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}, **given})


def payload(**given: Any) -> str:
    return subscribe(payload={"query": "{ __typename }", **given})


CASES: dict[str, tuple[Sequence[str | bytes], int | None]] = {
    "init": ([INIT], None),
    "init with a payload": (['{"type": "connection_init", "payload": {"a": 1}}'], None),
    "init with null": (['{"type": "connection_init", "payload": null}'], None),
    "init with a list": (['{"type": "connection_init", "payload": []}'], 4400),
    "init with text": (['{"type": "connection_init", "payload": "x"}'], 4400),
    "two inits": ([INIT, INIT], 4429),
    "subscribe before init": ([HELLO], 4401),
    "no init": ([], 4408),
    "ping before init": (['{"type": "ping"}', INIT], None),
    "ping": ([INIT, '{"type": "ping"}'], None),
    "ping with a payload": ([INIT, '{"type": "ping", "payload": {"a": [1]}}'], None),
    "ping with an empty payload": ([INIT, '{"type": "ping", "payload": {}}'], None),
    "ping with null": ([INIT, '{"type": "ping", "payload": null}'], None),
    "ping with a number": ([INIT, '{"type": "ping", "payload": 1}'], 4400),
    "pong": ([INIT, '{"type": "pong"}', '{"type": "pong", "payload": {}}'], None),
    "pong with text": ([INIT, '{"type": "pong", "payload": "x"}'], 4400),
    "query": ([INIT, HELLO], None),
    "binary frame": ([INIT, HELLO.encode()], None),
    "binary frame that is no text": ([INIT, b"\xff\xfe"], 4400),
    "one id after the other": ([INIT, HELLO, '{"type": "complete", "id": "1"}', HELLO], None),
    "unknown id completed": ([INIT, '{"type": "complete", "id": "x"}', HELLO], None),
    "no JSON": ([INIT, "{"], 4400),
    "nothing": ([INIT, ""], 4400),
    "array": ([INIT, "[]"], 4400),
    "text": ([INIT, '"x"'], 4400),
    "number": ([INIT, "5"], 4400),
    "null": ([INIT, "null"], 4400),
    "deep JSON": ([INIT, "[" * 100_000 + "]" * 100_000], 4400),
    "no type": ([INIT, "{}"], 4400),
    "type null": ([INIT, '{"type": null}'], 4400),
    "type a number": ([INIT, '{"type": 1}'], 4400),
    "type a list": ([INIT, '{"type": ["ping"]}'], 4400),
    "type unknown": ([INIT, '{"type": "start"}'], 4400),
    "id missing": ([INIT, '{"type": "subscribe", "payload": {"query": "{ __typename }"}}'], 4400),
    "id empty": ([INIT, subscribe(id="")], 4400),
    "id null": ([INIT, subscribe(id=None)], 4400),
    "id a number": ([INIT, subscribe(id=1)], 4400),
    "id a list": ([INIT, subscribe(id=["1"])], 4400),
    "complete without id": ([INIT, '{"type": "complete"}'], 4400),
    "complete with an empty id": ([INIT, '{"type": "complete", "id": ""}'], 4400),
    "payload missing": ([INIT, '{"type": "subscribe", "id": "1"}'], 4400),
    "payload null": ([INIT, subscribe(payload=None)], 4400),
    "payload a list": ([INIT, subscribe(payload=[])], 4400),
    "query missing": ([INIT, subscribe(payload={})], 4400),
    "query null": ([INIT, payload(query=None)], 4400),
    "query a number": ([INIT, payload(query=1)], 4400),
    "query a list": ([INIT, payload(query=["{ __typename }"])], 4400),
    "variables null": ([INIT, payload(variables=None)], None),
    "variables empty": ([INIT, payload(variables={})], None),
    "variables a list": ([INIT, payload(variables=[])], 4400),
    "variables text": ([INIT, payload(variables="{}")], 4400),
    "operationName null": ([INIT, payload(operationName=None)], None),
    "operationName a number": ([INIT, payload(operationName=1)], 4400),
    "operationName an object": ([INIT, payload(operationName={})], 4400),
    "extensions null": ([INIT, payload(extensions=None)], None),
    "extensions an object": ([INIT, payload(extensions={"a": 1})], None),
    "extensions a list": ([INIT, payload(extensions=[])], 4400),
    "syntax error": ([INIT, payload(query="{")], None),
    "empty query": ([INIT, payload(query="")], None),
    "unknown field": ([INIT, payload(query="{ nonsense }")], None),
    "unknown operation": ([INIT, payload(query="query A { __typename }", operationName="B")], None),
    "one of two operations": ([INIT, payload(query="query A { __typename } query B { b: __typename }")], None),
    "named of two operations": (
        [INIT, payload(query="query A { __typename } query B { b: __typename }", operationName="B")],
        None,
    ),
}


WAITING = {"ours": "subscription { spaceEvents { seq } }", "reference": "subscription { waiting }"}
PARSED_LATER = {"syntax error", "empty query"}
"""Cases in which the reference closes the socket with 4500, and so ends its other operations."""


def running(id: str) -> str:
    """Starts an operation that stays open."""
    return subscribe(id=id, payload={"query": "WAITING"})


CASES |= {
    "id in use": ([INIT, running("1"), running("1")], 4409),
    "id in use by a query": ([INIT, running("1"), HELLO], 4409),
    "id free again": ([INIT, running("1"), '{"type": "complete", "id": "1"}', HELLO], None),
    "several": ([INIT, running("a"), running("b"), HELLO, '{"type": "complete", "id": "a"}'], None),
}


async def answers_to(url: str, waiting: str, frames: Sequence[str | bytes]) -> tuple[list[Any], int | None]:
    """A server's answers to these frames, sent one by one, and its close code."""
    answers: list[Any] = []
    ends = 0
    async with connect(url, subprotocols=[PROTOCOL], proxy=None, max_size=None) as connection:  # type: ignore[list-item]
        try:
            async with asyncio.timeout(IN_TIME):
                for frame in frames:
                    if isinstance(frame, bytes):
                        text = frame.decode(errors="ignore")
                    else:
                        frame = text = frame.replace("WAITING", waiting)
                    await connection.send(frame)
                    if '"subscribe"' not in text or waiting in text:
                        await connection.send('{"type": "ping", "payload": {"synced": true}}')
                    ends += 1
                    while sum(_ends(answer) for answer in answers) < ends:
                        answers.append(json.loads(await connection.recv()))
                await connection.recv() if not frames else None
        except ConnectionClosed:
            return answers, connection.close_code
    return answers, None


def _ends(answer: Any) -> bool:
    return answer["type"] in ("complete", "error") or answer.get("payload") == {"synced": True}


@pytest.mark.parametrize("case", CASES)
async def test_a_socket_is_closed_with_the_right_code_or_stays_open(shared: Server, case: str) -> None:
    frames, code = CASES[case]
    _, closed = await answers_to(shared.socket, WAITING["ours"], frames)
    assert closed == code


@pytest.fixture(scope="module")
def reference(node: Path) -> Iterator[str]:
    """The address of the reference server."""
    process = subprocess.Popen(["node", "reference.mjs"], cwd=node, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield f"ws://127.0.0.1:{int(process.stdout.readline())}/graphql"
    process.terminate()
    process.communicate()


@pytest.mark.parametrize("case", sorted(CASES.keys() - PARSED_LATER))
async def test_answers_equal_those_of_the_reference_server(reference: str, shared: Server, case: str) -> None:
    frames, _ = CASES[case]

    def known(answers: list[Any]) -> list[Any]:
        """Drops errors' details and extensions, in which servers may differ."""
        for answer in answers:
            if answer["type"] == "next":
                answer["payload"].pop("extensions", None)
        return [{**answer, "payload": "errors"} if answer["type"] == "error" else answer for answer in answers]

    ours, our_code = await answers_to(shared.socket, WAITING["ours"], frames)
    theirs, their_code = await answers_to(reference, WAITING["reference"], frames)
    assert (known(ours), our_code) == (known(theirs), their_code)


@pytest.mark.parametrize("protocols", [None, ["graphql-ws"], ["something", "graphql-ws"]])
async def test_other_protocols_are_refused(shared: Server, protocols: Any) -> None:
    """So is that of subscriptions-transport-ws, which let clients in without connection_init."""
    async with connect(shared.socket, subprotocols=protocols, proxy=None) as connection:
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(IN_TIME):
                await connection.recv()
    assert connection.close_code == 4406


async def test_errors_of_an_operation_have_codes_and_leave_the_others_running(
    client: Client, socket: Socket, name: str
) -> None:
    await create(client, name)
    live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
    for query in ("{", "", "{ nonsense }", "query A { viewer { space } } query B { viewer { space } }", "fragment"):
        refusal = await (await socket.subscribe(query)).refusal()
        assert refusal.code == "BAD_INPUT", query
    refusal = await (await socket.subscribe(FOLLOW, id=f"{name}-no")).refusal()
    assert refusal.code == "NOT_FOUND"
    result = await (await socket.subscribe('{ session(id: "") { head } viewer { space } }')).message()
    assert result["type"] in ("next", "error")
    await append(client, name, *texts(1))
    assert (await live.next())["sessionEvents"]["content"] == "message 0"


async def test_an_empty_list_of_types_is_refused(client: Client, socket: Socket, name: str) -> None:
    await create(client, name)
    refusals = [
        await client.refusal("query($id: ID!) { session(id: $id) { events(types: []) { head } } }", id=name),
        await (await socket.subscribe("subscription { spaceEvents(types: []) { id } }")).refusal(),
        await (
            await socket.subscribe(
                "subscription($id: ID!) { sessionEvents(sessionId: $id, types: []) { id } }", id=name
            )
        ).refusal(),
    ]
    assert [refusal.code for refusal in refusals] == ["BAD_INPUT"] * 3
    assert all("types: names no type" in refusal.message for refusal in refusals)


async def test_a_socket_holds_100_subscriptions_and_refuses_one_more(client: Client, shared: Server, name: str) -> None:
    """Queries and mutations still run, and a subscription that ends makes room."""
    await create(client, name)
    async with Socket.open(shared.socket) as socket:
        streams = [await socket.subscribe(FOLLOW, id=name, **{"from": 0}) for _ in range(100)]
        refusal = await (await socket.subscribe(FOLLOW, id=name, **{"from": 0})).refusal()
        assert (refusal.code, "100" in refusal.message) == ("RATE_LIMITED", True)
        assert await (await socket.subscribe("{ viewer { space } }")).rest() == [{"viewer": {"space": "default"}}]
        await streams[0].stop()
        await append(client, name, *texts(1))
        assert [(await stream.next())["sessionEvents"]["seq"] for stream in streams[1:]] == [0] * 99
        late = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        assert (await late.next())["sessionEvents"]["seq"] == 0


async def in_one_burst(connection: ClientConnection, messages: Sequence[Any]) -> None:
    """Sends messages in one piece of data."""
    for message in messages:
        connection.protocol.send_text(json.dumps(message).encode())
    connection.transport.write(b"".join(connection.protocol.data_to_send()))


@pytest.mark.parametrize("query", [FOLLOW, "{ viewer { space } }"])
async def test_operations_that_ended_in_a_burst_do_not_count(
    client: Client, shared: Server, name: str, query: str
) -> None:
    await create(client, name)
    variables = {"id": name, "from": 0} if query == FOLLOW else {}
    async with Socket.open(shared.socket) as socket:
        for round in range(3):
            started = [subscribe_message(f"{round}-{index}", query, variables) for index in range(101)]
            pairs = [(each, {"id": each["id"], "type": "complete"}) for each in started]
            await in_one_burst(socket.connection, [message for pair in pairs for message in pair])
        live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        await append(client, name, *texts(1))
        assert (await live.next())["sessionEvents"]["seq"] == 0
        assert not [message for message in socket.other if message["type"] == "error"]


@pytest.mark.parametrize("text", [b"\xff", b'{"type": "ping", "payload": {"a": "\xc3"}}', b"\xed\xa0\x80"])
async def test_a_text_message_that_is_not_utf_8_closes_the_socket_with_1007(serve: Serve, text: bytes) -> None:
    server = serve()
    connection = await begin(server.socket)
    connection.protocol.send_text(text)
    connection.transport.write(b"".join(connection.protocol.data_to_send()))
    await connection.wait_closed()
    assert connection.close_code == 1007
    assert connection.close_reason == "a text message must be UTF-8"
    assert "Traceback" not in server.output
    await (await begin(server.socket)).close()


async def refused_handshake(server: Server, path: str, *headers: str) -> tuple[int, Any]:
    """The status and the body of the response to a handshake."""
    host, port = urlsplit(server.url).netloc.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: Upgrade", "Upgrade: websocket", *headers]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    async with asyncio.timeout(IN_TIME):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.split("content-length: ")[1].split("\r\n")[0])
        content = await reader.readexactly(size)
    writer.close()
    assert "content-type: application/json" in head
    return int(head.split()[1]), json.loads(content)


KEY, VERSION = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/graphql", [VERSION], 400, "BAD_INPUT"),
        ("/graphql", [KEY, "Sec-WebSocket-Version: 7"], 400, "BAD_INPUT"),
        ("/elsewhere", [KEY, VERSION], 404, "NOT_FOUND"),
        ("/graphql", [KEY, VERSION, "Origin: https://elsewhere.example"], 403, "FORBIDDEN"),
    ],
)
async def test_a_refused_handshake_is_answered_in_json(
    shared: Server, path: str, headers: list[str], status: int, code: str
) -> None:
    found, body = await refused_handshake(shared, path, *headers)
    [error] = body["errors"]
    assert (found, error["extensions"]["code"]) == (status, code)
    assert error["message"]


@pytest.mark.parametrize("value", ["1" * 30, "[" * 254 + "]" * 254, "[" * 900 + "]" * 900])
async def test_a_pong_has_the_payload_of_its_ping_whatever_it_is(shared: Server, value: str) -> None:
    ping = f'{{"type": "ping", "payload": {{"a": {value}}}}}'
    answers, closed = await answers_to(shared.socket, WAITING["ours"], [ping])
    assert closed is None
    assert answers[0] == {"type": "pong", "payload": {"a": json.loads(value)}}


async def test_a_message_with_an_unreadable_integer_closes_the_socket(shared: Server) -> None:
    ping = f'{{"type": "ping", "payload": {{"a": {"1" * 5_000}}}}}'
    _, closed = await answers_to(shared.socket, WAITING["ours"], [ping])
    assert closed == 4400


async def test_a_message_over_the_size_limit_closes_the_socket(shared: Server) -> None:
    connection = await begin(shared.socket)
    with pytest.raises(ConnectionClosed):
        await connection.send(json.dumps(subscribe_message("1", "{ __typename }", {"x": "x" * 12 * 1024 * 1024})))
        async with asyncio.timeout(IN_TIME):
            await connection.recv()
    assert connection.close_code == 1009


async def test_a_mutation_finishes_without_its_client(client: Client, shared: Server, name: str) -> None:
    """Its client disconnects or sends `complete` at once; the write is done all the same."""
    await create(client, name)
    query = """mutation($id: ID!, $text: String!) {
      appendEvents(input: {sessionId: $id, events: [{userMessage: {content: $text}}]}) { head } }"""
    async with Socket.open(shared.socket) as socket:
        live = await socket.subscribe(FOLLOW, id=name, **{"from": 0})
        for index in range(10):
            connection = await begin(shared.socket)
            await connection.send(json.dumps(subscribe_message("1", query, {"id": name, "text": f"{index}"})))
            if index % 2:
                await connection.send('{"type": "complete", "id": "1"}')
            await connection.close()
        contents = [(await live.next())["sessionEvents"]["content"] for _ in range(10)]
    assert sorted(contents, key=int) == [f"{index}" for index in range(10)]
