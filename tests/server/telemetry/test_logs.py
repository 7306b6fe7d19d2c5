"""What a server writes to its log."""

import json
from typing import Any

from tests.server.client import Client
from tests.server.conftest import Serve
from tests.server.process import Server


def lines(server: Server) -> list[dict[str, Any]]:
    """Its log, behind the line that says where it listens."""
    return [json.loads(line) for line in server.output.splitlines()[1:]]


async def test_each_line_is_json_and_names_its_operation(serve: Serve) -> None:
    """Uvicorn's lines too, and whatever clients send stays within its line."""
    server = serve("--log-format", "json", "--log-level", "info")
    async with Client(lambda: server.graphql) as client:
        await client.run("query Seen { viewer { space } }")
        await client.refusal('mutation Lost { renameSession(id: "no\\n\\u2028no", label: "x") { session { id } } }')
        await client.refusal('query Wrong { session(id: "secret words") { nonsense } }')
    assert server.end() == 0
    found = lines(server)
    assert all({"message", "level", "logger", "timestamp"} <= line.keys() for line in found)
    assert any(line["logger"] == "uvicorn.error" for line in found)
    operations = {line["operation"]: line for line in found if line["logger"] == "sapwood.operations"}
    assert operations.keys() == {"Seen", "Lost", "Wrong"}
    assert [operations[name]["outcome"] for name in ("Seen", "Lost", "Wrong")] == ["ok", "NOT_FOUND", "BAD_INPUT"]
    assert operations["Lost"]["kind"] == "mutation" and operations["Lost"]["seconds"] > 0
    assert "secret words" not in server.output


async def test_a_server_whose_clients_do_well_logs_nothing(serve: Serve) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:
        await client.run("{ viewer { space } }")
    assert server.end() == 0
    assert lines(server) == []
