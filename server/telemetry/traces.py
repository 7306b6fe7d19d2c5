"""OpenTelemetry traces, one span per operation. Its packages are imported only if OTEL_* variables ask for traces."""

import importlib.util
import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from server.telemetry.metrics import LONGEST_NAME

if TYPE_CHECKING:
    from opentelemetry.trace import Span

REQUESTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")
"""Any of these variables requests traces."""
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
"""The packages that the extra `otel` installs."""
logger = logging.getLogger("sapwood.tracing")


class Tracing:
    """Starts spans and exports them by OTLP over HTTP, as the standard variables configure it."""

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
        """Makes this task's spans children of the span in a request's headers (traceparent)."""
        from opentelemetry import context, propagate

        context.attach(propagate.extract({name.decode("latin-1"): value.decode("latin-1") for name, value in headers}))

    def begin(self, kind: str, name: str | None) -> "Span":
        """Starts an operation's span, which holds neither its arguments nor its document: users wrote them."""
        attributes = {"graphql.operation.type": kind, "graphql.operation.name": (name or "")[:LONGEST_NAME]}
        return self._tracer.start_span(kind, kind=self._trace.SpanKind.SERVER, attributes=attributes)

    def end(self, span: "Span", outcome: str) -> None:
        """Ends a span. Its status is an error only where the server is at fault."""
        span.set_attribute("sapwood.outcome", outcome)
        if outcome in ("INTERNAL", "UNAVAILABLE"):
            span.set_status(self._trace.StatusCode.ERROR, outcome)
        span.end()

    def close(self) -> None:
        """Exports the spans that are left. Blocks."""
        self._provider.shutdown()


def from_environment() -> Tracing | None:
    """Tracing if the environment asks for it, else None."""
    requested = (
        any(os.environ.get(name) for name in REQUESTS) and os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
    )
    if not requested or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    except ModuleNotFoundError:
        missing = list(NEEDED)
    if missing:
        logger.warning("OTEL_* variables request traces, but packages are missing: pip install 'sapwood[otel]'")
        return None
    return Tracing()
