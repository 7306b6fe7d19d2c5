"""OpenTelemetry traces: one span an operation. Nothing of it is imported unless its own variables ask for it."""

import importlib.util
import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from server.telemetry.metrics import LONGEST_NAME

if TYPE_CHECKING:
    from opentelemetry.trace import Span

ASKING = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
logger = logging.getLogger("sapwood.tracing")


class Tracing:
    """Begins spans and sends them where the standard variables say, by OTLP over HTTP."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create()
        if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "sapwood"}))
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("sapwood")
        self._trace = trace

    def join(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Makes this task's spans children of the span that a request's headers name (traceparent)."""
        from opentelemetry import context, propagate

        context.attach(propagate.extract({name.decode("latin-1"): value.decode("latin-1") for name, value in headers}))

    def begin(self, kind: str, name: str | None) -> "Span":
        """The span of an operation; it holds neither arguments nor the document, which are users' words."""
        attributes = {"graphql.operation.type": kind, "graphql.operation.name": (name or "")[:LONGEST_NAME]}
        return self._tracer.start_span(kind, kind=self._trace.SpanKind.SERVER, attributes=attributes)

    def end(self, span: "Span", outcome: str) -> None:
        """Ends a span. What the client caused is no error of the server's."""
        span.set_attribute("sapwood.outcome", outcome)
        if outcome in ("INTERNAL", "UNAVAILABLE"):
            span.set_status(self._trace.StatusCode.ERROR, outcome)
        span.end()

    def close(self) -> None:
        """Sends what waits. Blocks."""
        self._provider.shutdown()


def tracing() -> Tracing | None:
    """Tracing if the environment asks for it, else None."""
    asked = any(os.environ.get(name) for name in ASKING) and os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
    if not asked or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    except ModuleNotFoundError:
        missing = list(NEEDED)
    if missing:
        logger.warning("OTEL_* variables ask for traces, but their packages are missing: pip install 'sapwood[otel]'")
        return None
    return Tracing()
