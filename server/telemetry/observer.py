"""Reports each operation to metrics, the log and its trace."""

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
"""Codes that a valid document can be refused with."""
logger = logging.getLogger("sapwood.operations")


class Observer:
    """Observes the operations of all transports."""

    def __init__(self, metrics: Metrics, tracing: Tracing | None) -> None:
        self.metrics = metrics
        self.tracing = tracing

    def operation(self, kind: str, name: str | None) -> "Observation":
        """A context that observes one operation."""
        return Observation(self, kind, name)

    def refused(self, code: str) -> None:
        """Counts a request that names no operation that can be run."""
        self.metrics.operation("unknown", None, code, 0.0, known=False)


class Observation:
    """One operation, from before its validation to its last answer."""

    def __init__(self, observer: Observer, kind: str, name: str | None) -> None:
        self._observer = observer
        self._kind = kind
        self._name = name
        self._outcome = "ok"
        self._known = True

    def answered(self, body: dict[str, Any], *, refused: bool) -> None:
        """Records an answer. The outcome is its first error's code; a `refused` operation may not be a valid one."""
        if faults := body.get("errors"):
            self._outcome = faults[0].get("extensions", {}).get("code", errors.SapwoodError.code)
            self._known = not refused or self._outcome in FAULTS
        elif self._kind == "subscription":
            self._observer.metrics.delivered()

    def __enter__(self) -> Self:
        tracing = self._observer.tracing
        self._span = None if tracing is None else tracing.begin(self._kind, self._name)
        # Each operation runs in a task of its own, so the variable needs no reset.
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
