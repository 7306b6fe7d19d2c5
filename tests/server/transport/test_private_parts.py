"""What the server relies on in libraries beyond what they document.

Each part is compared by a digest of its source. When a test fails after an upgrade, read what changed in the library,
adapt the module that the list names, and enter the new digest. The upper bounds in pyproject.toml keep out releases
that nobody has read yet.
"""

import ast
import hashlib
import importlib.metadata
import inspect
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httptools
import pytest
from packaging.requirements import Requirement
from prometheus_client import values
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import Server
from websockets.server import ServerProtocol

from tests import paths

HTTP = {
    HttpToolsProtocol.__init__: "00443043bea6761e",
    HttpToolsProtocol._should_upgrade: "e196db021513b685",
    HttpToolsProtocol._unset_keepalive_if_required: "d4c38df8bf219cd5",
    HttpToolsProtocol.data_received: "acbe954a13ed6566",
    HttpToolsProtocol.handle_websocket_upgrade: "9c6683cbe91a5090",
    HttpToolsProtocol.on_body: "54275cb9f3e46b0a",
    HttpToolsProtocol.on_headers_complete: "ecff2e577ea27e2b",
    HttpToolsProtocol.on_message_begin: "4294ff927d3acca1",
    HttpToolsProtocol.on_message_complete: "2c5bf60e45208bd7",
    HttpToolsProtocol.send_400_response: "20bed2b9f5388abb",
    HttpToolsProtocol.shutdown: "54f6bb3a398194f7",
    FlowControl.pause_reading: "905b511c41fb7ebd",
}
"""Replaced or extended by server/transport/connections.py: HttpConnection."""
SOCKETS = {
    WebSocketsSansIOProtocol.__init__: "bb499899b1ad2576",
    WebSocketsSansIOProtocol.connection_lost: "b5ca288a0691dc05",
    WebSocketsSansIOProtocol.connection_made: "5c7390b062349e6f",
    WebSocketsSansIOProtocol.receive: "0d6aed2ff8e6b205",
    WebSocketsSansIOProtocol.send_receive_event_to_app: "67c86fe9b038ea1c",
    WebSocketsSansIOProtocol.shutdown: "7bb43120e99867ef",
    ServerProtocol.reject: "70dca598f92a214b",
}
"""Extended, or relied on by `_close`: server/transport/connections.py, SocketConnection."""
SERVER = {Server.startup: "cb6c4bc7e4ed98fc"}
"""Makes the connections, with the arguments that ours take."""
METRICS = {values.MultiProcessValue: "c7f9b60bed7982bc"}
"""Names the files of gauges, which server/telemetry/metrics.py finds those of dead workers by."""


def digest(part: Callable[..., Any]) -> str:
    """The source, whatever its comments and its layout."""
    tree = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(part))))
    return hashlib.sha256(tree.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("part", "known"), (HTTP | SOCKETS | SERVER | METRICS).items(), ids=lambda each: getattr(each, "__qualname__", "")
)
def test_a_private_part_of_a_library_is_as_we_know_it(part: Callable[..., Any], known: str) -> None:
    assert digest(part) == known


def test_httptools_says_where_a_request_for_an_upgrade_ends() -> None:
    """`HttpConnection` parses such a request again, from its headers on, and needs what came behind them."""
    request = b"POST / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 4\r\n\r\n"
    with pytest.raises(httptools.HttpParserUpgrade) as upgrade:
        httptools.HttpRequestParser(object()).feed_data(request + b"body")
    assert upgrade.value.args[0] == len(request)


@pytest.mark.parametrize("library", ["uvicorn", "httptools", "websockets", "prometheus-client"])
def test_a_library_with_private_parts_has_an_upper_bound(library: str) -> None:
    project = tomllib.loads(Path(paths.ROOT / "pyproject.toml").read_text())["project"]
    [requirement] = [found for found in map(Requirement, project["dependencies"]) if found.name == library]
    assert any(bound.operator == "<" for bound in requirement.specifier)
    assert importlib.metadata.version(library) in requirement.specifier
