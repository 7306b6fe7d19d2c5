"""Metrics for Prometheus: counters, durations, and gauges that read the current state.

With several workers, prometheus-client keeps the numbers of each in files, and a scrape gets the sums over all of them,
whichever worker answers.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from storage.database import Notification
from storage.log.commit import Commit

M = TypeVar("M", Counter, Histogram)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus-client's variable for the folder of the workers' files."""
SAMPLE_SECONDS = 5
"""How old the gauges of other workers can be."""
MAX_NAMES = 200
LONGEST_NAME = 64
OTHER = "(other)"
ANONYMOUS = "(anonymous)"
REFUSED = "(refused)"
"""Labels that no GraphQL name can equal."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Names:
    """Operation names as labels. Clients choose the names, so only the first MAX_NAMES short ones become labels."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def label(self, name: str | None) -> str:
        """The label of an operation's name."""
        if name is None:
            return ANONYMOUS
        if name not in self._known:
            if len(self._known) >= MAX_NAMES or len(name) > LONGEST_NAME:
                return OTHER
            self._known.add(name)
        return name


class Metrics:
    """All metrics of one application."""

    def __init__(self) -> None:
        self._shared = os.environ.get(FOLDER)
        self._registry = CollectorRegistry()
        self._names = Names()
        self._gauges: list[Callable[[], None]] = []
        self._labelled: dict[tuple[Counter | Histogram, tuple[str, ...]], Any] = {}
        self._requests = self._counter("http_requests", "HTTP requests answered", "path", "method", "status")
        self._request_seconds = self._histogram("http_request_seconds", "Until an answer began", "path")
        self._operations = self._counter(
            "operations", "GraphQL operations ended; outcome is ok, stopped or an error code", "kind", "name", "outcome"
        )
        self._operation_seconds = self._histogram(
            "operation_seconds", "Valid queries and mutations, to their answer", "kind", "name"
        )
        self._delivered = self._counter("delivered", "Results sent to subscriptions")
        self._appends = self._counter("appends", "Commits stored by this server")
        self._events = self._counter("events", "Events stored by this server")
        self._database = self._histogram(
            "database_call_seconds", "Reads and transactions of the store", "call", "outcome"
        )

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"sapwood_{name}", help, labels, registry=self._registry)

    def _histogram(self, name: str, help: str, *labels: str) -> Histogram:
        return Histogram(f"sapwood_{name}", help, labels, buckets=SECONDS, registry=self._registry)

    def _one(self, metric: M, *labels: str) -> M:
        """The metric with these labels. Its own look-up takes longer than counting."""
        key = (metric, labels)
        if (found := self._labelled.get(key)) is None:
            found = self._labelled[key] = metric.labels(*labels)
        return cast(M, found)

    def gauge(self, name: str, help: str, value: Callable[[], float], *, largest: bool = False) -> None:
        """Adds a gauge that reads `value` on each scrape. Several workers show the sum of theirs, or the `largest`."""
        gauge = Gauge(
            f"sapwood_{name}",
            help,
            registry=self._registry,
            multiprocess_mode="livemax" if largest else "livesum",
        )
        self._gauges.append(lambda: gauge.set(value()))

    def request(self, path: str, method: str, status: int, seconds: float) -> None:
        """Counts an HTTP request; `seconds` is the time until its answer began."""
        self._one(self._requests, path, method, str(status)).inc()
        self._one(self._request_seconds, path).observe(seconds)

    def operation(self, kind: str, name: str | None, outcome: str, seconds: float, *, known: bool) -> None:
        """Counts an operation that has ended, by name if it is `known` to be valid."""
        label = self._names.label(name) if known else REFUSED
        self._one(self._operations, kind, label, outcome).inc()
        if known and kind != "subscription":
            self._one(self._operation_seconds, kind, label).observe(seconds)

    def delivered(self) -> None:
        """Counts a result of a subscription."""
        self._delivered.inc()

    def committed(self, _: Sequence[Notification], commits: Sequence[Commit]) -> None:
        """Counts commits. A listener of the database."""
        if commits:
            self._appends.inc(len(commits))
            self._events.inc(sum(commit.last - commit.first + 1 for commit in commits))

    def database_call(self, call: str, outcome: str, seconds: float) -> None:
        """Records a call of the database."""
        self._one(self._database, call, outcome).observe(seconds)

    @contextlib.asynccontextmanager
    async def sampled(self) -> AsyncIterator[None]:
        """Writes the gauges to this worker's file regularly, for scrapes that other workers answer."""
        if self._shared is None:
            yield
            return
        sampling = asyncio.create_task(self._sample())
        try:
            yield
        finally:
            sampling.cancel()

    async def _sample(self) -> None:
        while True:
            self._refresh()
            await asyncio.sleep(SAMPLE_SECONDS)

    def _refresh(self) -> None:
        for write in self._gauges:
            write()

    async def exposed(self, accept: str) -> tuple[bytes, str]:
        """The metrics in the format that the Accept header asks for, and its media type."""
        self._refresh()
        encode, media_type = choose_encoder(accept)
        return await asyncio.to_thread(lambda: encode(self._collected())), media_type

    def _collected(self) -> CollectorRegistry:
        if self._shared is None:
            return self._registry
        _forget_dead(Path(self._shared))
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._shared)  # type: ignore[no-untyped-call]  # the package types only parts
        return registry


def _forget_dead(folder: Path) -> None:
    """Removes the gauges of workers that have ended; their counters stay."""
    for path in folder.glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]  # as above
