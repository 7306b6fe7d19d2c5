"""What is told of each operation when it ends: to metrics, to the log and to its trace."""

import asyncio
import logging
import time
from types import TracebackType
from typing import Any, Self

from schema.engine.phases import LISTENING
from server.telemetry.logs import OPERATION
from server.telemetry.metrics import Metrics
from server.telemetry.traces import Tracing
from storage import errors

FAULTS = (errors.SapwoodError.code, errors.Unavailable.code)
"""What refuses an operation of a valid document."""
logger = logging.getLogger("sapwood.operations")


class Observer:
    """Watches operations of all transports."""

    def __init__(self, metrics: Metrics, tracing: Tracing | None) -> None:
        self.metrics = metrics
        self.tracing = tracing

    def operation(self, kind: str, name: str | None) -> "Observation":
        """Watches an operation for as long as the context that is returned."""
        return Observation(self, kind, name)

    def refused(self, code: str) -> None:
        """Notes a request whose document names no operation."""
        self.metrics.operation("unknown", None, code, 0.0, known=False)


class Observation:
    """One operation, from before its validation to its last answer."""

    def __init__(self, observer: Observer, kind: str, name: str | None) -> None:
        self._observer = observer
        self._kind = kind
        self._name = name
        self._outcome = "ok"
        self._known = True

    def told(self, body: dict[str, Any], *, refused: bool) -> None:
        """Notes an answer. The outcome is that of the first error; a `refused` operation may not exist at all."""
        if faults := body.get("errors"):
            self._outcome = faults[0].get("extensions", {}).get("code", errors.SapwoodError.code)
            self._known = not refused or self._outcome in FAULTS
        elif self._kind == "subscription":
            self._observer.metrics.delivered()

    def __enter__(self) -> Self:
        tracing = self._observer.tracing
        self._span = None if tracing is None else tracing.begin(self._kind, self._name)
        # Each operation has a task of its own, which takes what is set here along when it ends.
        OPERATION.set((self._kind, self._name))
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = time.perf_counter() - self._began
        if kind is not None:
            stopped = issubclass(kind, (asyncio.CancelledError, GeneratorExit))
            self._outcome = "stopped" if stopped else errors.SapwoodError.code
        if (phases := LISTENING.get()) is not None:
            phases.execute = seconds - phases.validate
        self._observer.metrics.operation(self._kind, self._name, self._outcome, seconds, known=self._known)
        if self._span is not None and (tracing := self._observer.tracing) is not None:
            tracing.end(self._span, self._outcome)
        if logger.isEnabledFor(logging.INFO):
            logger.info("operation", extra={"outcome": self._outcome, "seconds": round(seconds, 6)})
