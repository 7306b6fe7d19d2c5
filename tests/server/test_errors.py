"""Errors in the log: a client's mistake is one line at INFO, the server's own has a traceback and an id."""

import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from server import trusted_documents
from server.auth.caller import Caller
from server.settings import Settings
from server.telemetry.metrics import Metrics
from server.telemetry.observer import Observer
from server.transport.answer import Refused
from server.transport.operations import Operations
from server.transport.request import Request
from storage.access_key import AccessRole
from storage.sqlite.database import FILE
from storage.store import Store
from tests.server.client import Client, Socket
from tests.server.operations import FOLLOW, append, create, texts
from tests.server.process import Server


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{", "BAD_INPUT"),
        ("{ nonsense }", "BAD_INPUT"),
        ('mutation { renameSession(id: "no", label: "x") { session { id } } }', "NOT_FOUND"),
        ('mutation { createSession(input: {id: "a\\nb"}) { session { id } } }', "BAD_INPUT"),
    ],
)
async def test_a_clients_mistake_is_one_line_at_info(
    store: Store, caplog: pytest.LogCaptureFixture, query: str, code: str
) -> None:
    caplog.set_level(logging.INFO, "sapwood")
    schema, trusted = trusted_documents.build(Settings())
    operations = Operations(schema, store, 30, trusted, Observer(Metrics(), None))
    caller = Caller("default", AccessRole.ADMIN, open=True)
    try:
        answer = await operations.answer(operations.identify(Request(query), caller))
    except Refused as refused:
        answer = refused.answer
    assert answer.code == code
    ours = [record for record in caplog.records if record.name.startswith(("sapwood", "strawberry"))]
    assert {(record.levelname, record.exc_info) for record in ours} == {("INFO", None)}
    [line] = [record.getMessage() for record in ours if code in record.getMessage()]
    assert "\n" not in line


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server on an SQLite file that a test can damage."""
    server = Server(tmp_path / "data", tmp_path / "log")
    server.start()
    yield server
    server.end()


async def test_an_internal_error_is_masked_and_logged_under_its_id(tmp_path: Path, server: Server) -> None:
    """Over HTTP and over a WebSocket, for a row that no server wrote."""
    async with Client(lambda: server.graphql) as client:
        await create(client, "x")
        await append(client, "x", *texts(3))
    server.end()
    with closing(sqlite3.connect(tmp_path / "data" / FILE)) as connection, connection:
        connection.execute("UPDATE commits SET doc = '{\"secret\": 1}'")
    server.start()  # without recent commits in memory
    async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
        query = '{ session(id: "x") { events { events { seq } } } }'
        refusals = [
            await client.refusal(query),
            await (await socket.subscribe(FOLLOW, id="x", **{"from": 0})).refusal(),
        ]
    for refusal in refusals:
        assert refusal.code == "INTERNAL"
        id = refusal.errors[0]["extensions"]["id"]
        assert id in refusal.message and "secret" not in refusal.message
        assert re.search(rf"internal error {id}.*\nTraceback", server.output)
