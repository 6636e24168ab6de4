"""A real Prometheus beside the real processes, with the shipped example: what is killed rings, and nothing else."""

from collections.abc import Iterator

import pytest

from ops import places
from tests.fixtures import metrics
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service, free_ports
from tests.outside.prometheus_server import PrometheusServer, running_prometheus

pytestmark = pytest.mark.long

# The longest silence that a rule waits for is half a minute.
RINGS_WITHIN = 120
# The disk of the machine that runs the tests is its own affair.
DISK = {"CustodyDiskLow", "CustodyDiskFills"}


@pytest.fixture
def deployment_and_watcher(postgres_home: places.Home, worker_id: str) -> Iterator[tuple[Service, PrometheusServer]]:
    """A deployment with all its processes, and what watches it."""
    [port] = free_ports(1)
    database = database_apart(postgres_home, f"{worker_id}_watched")
    with deploy(database, "signer", "identity", "api", "scheduler", "proxy") as service:
        targets = {
            "custody-api": service.metrics_port,
            "custody-proxy": service.proxy_metrics_port,
            "custody-scheduler": service.scheduler_metrics_port,
        }
        with running_prometheus(port, targets) as prometheus:
            yield service, prometheus


def ringing(prometheus: PrometheusServer) -> set[tuple[str, str]]:
    return {(name, job) for name, job in prometheus.ringing() if name not in DISK}


def test_killed_processes_ring_and_nothing_rings_before(
    deployment_and_watcher: tuple[Service, PrometheusServer],
) -> None:
    service, prometheus = deployment_and_watcher
    names = {rule["alert"] for rule in metrics.rules()}

    eventually(prometheus.targets, dict.fromkeys(("custody-api", "custody-proxy", "custody-scheduler"), "up"), 60)
    eventually(prometheus.rules, dict.fromkeys(names, "ok"), 60)
    assert ringing(prometheus) == set()

    service.kill("identity")
    service.kill("scheduler")
    service.kill("proxy")

    expected = {
        ("CustodyIdentitySilent", "custody-api"),
        ("CustodyProcessGone", "custody-scheduler"),
        ("CustodyProcessGone", "custody-proxy"),
    }
    eventually(lambda: ringing(prometheus), expected, RINGS_WITHIN)

    service.kill("signer")
    eventually(lambda: ringing(prometheus), expected | {("CustodySignerSilent", "custody-api")}, RINGS_WITHIN)

    service.kill("api")
    gone = {("CustodyProcessGone", f"custody-{name}") for name in ("api", "proxy", "scheduler")}
    eventually(lambda: ringing(prometheus), gone, RINGS_WITHIN)
