"""The limit of several processes together, in a real Redis or Valkey."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.fixtures.callers import Client, new_tenant
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service
from tests.outside.redis_server import RedisServer, running_redis

pytestmark = pytest.mark.long

MOST = 10


@pytest.fixture(scope="module")
def store() -> Iterator[RedisServer]:
    with running_redis() as running:
        yield running


@contextmanager
def two_hosts(service: Service, store: str) -> Iterator[list[Service]]:
    """Two deployments on one database, that count in one place."""
    settings = {"SERVICE_RATE_LIMIT_MAX": str(MOST), "SERVICE_RATE_LIMIT_STORE": store}
    with ExitStack() as stack:
        yield [stack.enter_context(partner_of(service, **settings)) for _ in range(2)]


@pytest.mark.parametrize("scheme", ["redis", "valkey"])
def test_two_processes_count_together(service: Service, store: RedisServer, scheme: str) -> None:
    with two_hosts(service, store.url.replace("redis", scheme)) as hosts:

        def statuses() -> list[int]:
            with new_tenant(service) as tenant:
                return [_status(hosts[turn % 2], tenant.key) for turn in range(MOST + 2)]

        # Beside busy loops the store may take longer than it is given, and be away for two seconds.
        assert eventually(statuses, [200] * MOST + [429] * 2)


def test_without_a_shared_store_each_counts_for_itself(service: Service) -> None:
    with two_hosts(service, "memory") as hosts, new_tenant(service) as tenant:
        statuses = [_status(hosts[turn % 2], tenant.key) for turn in range(2 * MOST + 2)]

    assert statuses == [200] * 2 * MOST + [429] * 2


def test_a_store_that_is_away_or_hangs_stops_nobody_and_lifts_no_limit(service: Service, store: RedisServer) -> None:
    settings = {"SERVICE_RATE_LIMIT_MAX": str(MOST), "SERVICE_RATE_LIMIT_STORE": store.url}
    with partner_of(service, **settings) as host, new_tenant(service) as first, new_tenant(service) as second:
        assert _status(host, first.key) == 200
        store.stop()
        away = [_status(host, first.key) for _ in range(MOST + 1)]
        store.start()
        store.hold()
        held = [_status(host, second.key) for _ in range(MOST + 1)]
        store.let_go()
        back = _until_counted(host, service, store)
        said = host.logs()

    assert away == held == [200] * MOST + [429]
    assert back
    assert "the store of rate limits is away" in said


def _status(host: Service, key: str) -> int:
    with Client(base_url=host.url, headers={"X-Service-Key": key}, timeout=10) as client:
        return client.get("/agents").status_code


def _until_counted(host: Service, service: Service, store: RedisServer) -> bool:
    """Ask until the store counts again; the api tries it again two seconds after a failure.

    Each time by somebody new: of a credential that is spent the store is not asked.
    """

    def counts() -> bool:
        with new_tenant(service) as tenant:
            _status(host, tenant.key)
        return bool(store.keys())

    return eventually(counts)
