"""A server's metrics, parsed by Prometheus's own client."""

import asyncio
from collections.abc import Callable

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.server.client import IN_TIME
from tests.server.process import Server

GAUGES = ("requests_open", "sockets_open", "operations_running", "subscriptions", "feed_lag_seconds")


class Metrics:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def value(self, name: str, /, **labels: str) -> float:
        """The sum over all samples of a name that have these labels."""
        found = [sample for sample in self.samples if sample.name == f"sapwood_{name}"]
        return sum(sample.value for sample in found if labels.items() <= sample.labels.items())

    def labels(self, name: str, label: str) -> set[str]:
        """The values of a label."""
        return {sample.labels[label] for sample in self.samples if sample.name == f"sapwood_{name}"}

    @property
    def gauges(self) -> dict[str, float]:
        """What must be zero when nobody is there."""
        return {name: self.value(name) for name in GAUGES}


async def scrape(server: Server) -> Metrics:
    """A scrape of a server."""
    async with httpx.AsyncClient(verify=False, timeout=IN_TIME) as http:
        answer = await http.get(f"{server.url}/metrics")
    assert answer.status_code == 200
    return Metrics(answer.text)


async def metrics_once(server: Server, holds: Callable[[Metrics], bool]) -> Metrics:
    """The first scrape of which something holds."""
    async with asyncio.timeout(IN_TIME):
        while not holds(found := await scrape(server)):  # noqa: ASYNC110  # another process's state
            await asyncio.sleep(0.05)
        return found
