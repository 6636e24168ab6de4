"""Counters of this process, served on a loopback listener of their own, never on the public port."""

import time
from collections.abc import Iterable
from typing import Any, Literal

from prometheus_client import REGISTRY, Counter, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

# Routes come from the table, so that labels are few and never hold an id.
REQUESTS = Counter("custody_http_requests_total", "Requests by route and status", ["method", "route", "status"])
SECONDS = Histogram(
    "custody_http_request_seconds",
    "Time to answer",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
_labelled: dict[tuple[str, str, int], Any] = {}
_timed: dict[tuple[str, str], Any] = {}


def observe(method: str, route: str, status: int, seconds: float) -> None:
    """Count one request."""
    # Looking labels up costs more than counting, so the children are kept.
    key = (method, route, status)
    if key not in _labelled:
        _labelled[key] = REQUESTS.labels(method, route, str(status))
        _timed[key[:2]] = SECONDS.labels(method, route)
    _labelled[key].inc()
    _timed[key[:2]].observe(seconds)


_NAMES = {
    "signer": ("custody_signer_messages", "custody_signer_heard_timestamp_seconds"),
    "identity": ("custody_identity_messages", "custody_identity_heard_timestamp_seconds"),
}


class WorkerFigures(Collector):
    """What a worker last said of itself; it has no listener of its own."""

    def __init__(self, worker: Literal["signer", "identity"]) -> None:
        self.worker = worker
        self.counters: dict[str, int] = {}
        self.heard_at = 0.0

    def hear(self, counters: dict[str, int]) -> None:
        """Keep a fresh status."""
        self.counters = counters
        self.heard_at = time.time()  # noqa: TID251 - shown as it is

    def collect(self) -> Iterable[Metric]:
        """For the registry."""
        messages, heard = _NAMES[self.worker]
        family = CounterMetricFamily(messages, f"Messages and incidents counted by {self.worker}", labels=["name"])
        for name, count in self.counters.items():
            family.add_metric([name], count)
        yield family
        yield GaugeMetricFamily(heard, f"When {self.worker} last answered", value=self.heard_at)


def serve(port: int, *figures: WorkerFigures) -> None:
    """Listen on loopback."""
    for one in figures:
        REGISTRY.register(one)
    start_http_server(port, addr="127.0.0.1")
