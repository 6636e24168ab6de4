"""Counters of this process, served on a listener of their own, never on the public port."""

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from custody.kit.metrics import serve_metrics
from custody.protocol.command import WorkerName
from custody.protocol.common import Health

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


# What alerts look at is there from the first answer on: of a counter that begins at 1 Prometheus sees no rise.
_INCIDENTS: dict[WorkerName, tuple[str, ...]] = {
    "signer": ("stale", "broken_commits", "bad_frames", "refused_peers", "audit_logs_stopped"),
    "identity": ("bad_frames", "refused_peers"),
}


class WorkerFigures(Collector):
    """The last figures from the workers; they have no listener of their own."""

    def __init__(self) -> None:
        self._said: dict[WorkerName, Health] = {}
        self._heard_at: dict[WorkerName, float] = {}

    def hear(self, worker: WorkerName, said: Health) -> None:
        """Keep a fresh status."""
        self._said[worker] = said
        self._heard_at[worker] = time.time()  # noqa: TID251 - shown as it is

    def collect(self) -> Iterable[Metric]:
        """For the registry."""
        yield from self._of(
            "signer",
            CounterMetricFamily("custody_signer_messages", "Messages and incidents by name", labels=["name"]),
            GaugeMetricFamily("custody_signer_heard_timestamp_seconds", "When the signer last answered"),
        )
        yield from self._of(
            "identity",
            CounterMetricFamily("custody_identity_messages", "Messages and incidents by name", labels=["name"]),
            GaugeMetricFamily("custody_identity_heard_timestamp_seconds", "When identity last answered"),
        )
        full = GaugeMetricFamily("custody_database_full", "1 while its database has no room", labels=["worker"])
        for worker, said in self._said.items():
            full.add_metric([worker], not said.room)
        yield full
        yield from self._of_prices()

    def _of_prices(self) -> Iterable[Metric]:
        """Nothing where no endpoint issues prices."""
        signer = self._said.get("signer")
        if signer is None or signer.prices is None:
            return
        issued, old = signer.prices.issued_at or 0, signer.prices.old
        yield GaugeMetricFamily("custody_prices_issued_timestamp_seconds", "When prices were issued", value=issued)
        yield GaugeMetricFamily("custody_prices_old", "1 while no price counts, for all are too old", value=float(old))

    def _of(self, worker: WorkerName, messages: CounterMetricFamily, heard: GaugeMetricFamily) -> Iterable[Metric]:
        if said := self._said.get(worker):
            for name, count in (dict.fromkeys(_INCIDENTS[worker], 0) | said.counters).items():
                messages.add_metric([name], count)
        heard.add_metric([], self._heard_at.get(worker, 0.0))
        return messages, heard


class DiskFigures(Collector):
    """The free space on a folder's disk: a full one stops signing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        """For the registry."""
        try:
            usage = shutil.disk_usage(self._folder)
        except OSError:
            return
        yield GaugeMetricFamily("custody_disk_free_bytes", "Free on the disk of the state folder", value=usage.free)
        yield GaugeMetricFamily("custody_disk_size_bytes", "Size of the disk of the state folder", value=usage.total)


def serve(host: str, port: int, *figures: Collector) -> bool:
    """Serve them, and what was counted here; False if nothing can listen there."""
    for one in figures:
        REGISTRY.register(one)
    return serve_metrics("api", host, port)
