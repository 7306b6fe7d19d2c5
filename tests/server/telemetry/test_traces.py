"""Traces, sent to a collector that is not ours to trust: it only keeps what comes."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from tests.server.process import Server

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    """Takes traces by OTLP over HTTP."""

    def __init__(self) -> None:
        self.taken: list[ResourceSpans] = []
        taken = self.taken

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                taken.extend(ExportTraceServiceRequest.FromString(content).resource_spans)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever)
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def test_each_operation_is_one_span(collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It continues the caller's trace, and holds no words of users."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    server = Server(tmp_path / "data", tmp_path / "log")
    server.start()
    try:
        for query in ("query Seen { viewer { space limits } }", 'query Lost { session(id: "words") { nonsense } }'):
            httpx.post(server.graphql, json={"query": query}, headers={"traceparent": PARENT}, verify=False)
    finally:
        assert server.end() == 0
    spans = [span for part in collector.taken for scope in part.scope_spans for span in scope.spans]
    assert [span.name for span in spans] == ["query", "query"]
    seen, lost = ({item.key: item.value.string_value for item in span.attributes} for span in spans)
    assert seen == {"graphql.operation.type": "query", "graphql.operation.name": "Seen", "sapwood.outcome": "ok"}
    assert lost["sapwood.outcome"] == "BAD_INPUT"
    assert {span.trace_id.hex() for span in spans} == {PARENT.split("-")[1]}
    assert {span.parent_span_id.hex() for span in spans} == {PARENT.split("-")[2]}
    assert b"words" not in b"".join(part.SerializeToString() for part in collector.taken)
    names = {item.key: item.value.string_value for part in collector.taken for item in part.resource.attributes}
    assert names["service.name"] == "sapwood"


def test_nothing_of_it_is_imported_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    code = """
import sys
from server.app import create_app
from server.settings import Settings
create_app(Settings())
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"
