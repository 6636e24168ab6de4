"""A tenant's key is replaced while programs use it, and a revoked one is refused by every process."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Agent, Client, Tenant
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.fixtures.server import Service

# What docs/limits.md promises for reading, and the time that the requests of this test take themselves.
PROMISED_SECONDS, SLACK_SECONDS = 1.0, 1.0


def with_key(service: Service, key: str) -> Client:
    return Client(base_url=service.url, headers={"X-Service-Key": key}, timeout=30)


class Programs:
    """Programs of a tenant that read and write in a loop with the key that they are given, and count the answers."""

    def __init__(self, service: Service, key: str, agent: str) -> None:
        self.key = key
        self.answered: Counter[tuple[str, int]] = Counter()
        self._service, self._agent = service, agent
        self._stopped = threading.Event()

    def run(self, number: int) -> None:
        for turn in itertools.count():
            if self._stopped.is_set():
                return
            key = self.key
            with with_key(self._service, key) as client:
                name = f"made-{number}-{turn}"
                for answer in (
                    client.get(f"/agents/{self._agent}"),
                    client.post("/agents", json={"id": name, "name": name}),
                    client.delete(f"/agents/{name}"),
                ):
                    self.answered[key, answer.status_code] += 1

    def stop(self) -> None:
        self._stopped.set()

    def with_(self, key: str) -> int:
        return sum(count for (one, _), count in self.answered.copy().items() if one == key)


def test_no_request_fails_while_a_key_is_replaced(service: Service, as_owner: Person, tenant: Tenant) -> None:
    programs = Programs(service, tenant.key, tenant.agent().id)
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(programs.run, number) for number in range(3)]
        try:
            eventually(lambda: programs.with_(tenant.key) > 30)
            new = as_owner.ok("POST", f"/tenants/{tenant.id}/api-keys", {"overlapSeconds": 60})["apiKey"]
            # The old key is still in use, by programs that know of no other yet.
            before = programs.with_(tenant.key)
            eventually(lambda: programs.with_(tenant.key) > before + 30)
            programs.key = new
            eventually(lambda: programs.with_(new) > 30)
        finally:
            programs.stop()
        for one in running:
            one.result()

    assert {status for _, status in programs.answered} == {200, 201}, programs.answered


@pytest.fixture(scope="module")
def partner(service: Service) -> Iterator[Service]:
    """Another api, signer and identity on the same database, as on another host."""
    with partner_of(service) as second:
        yield second


def test_a_revoked_key_is_refused_by_every_process_in_time(
    service: Service, partner: Service, as_owner: Person, tenant: Tenant, agent: Agent
) -> None:
    path = f"/tenants/{tenant.id}/api-keys"
    tx = agent.sign().json()["data"]["txId"]
    new = as_owner.ok("POST", path, {})["apiKey"]
    order = {"kind": "evm", "request": {"to": ADDRESS, "value": "1", "broadcast": False}}
    uses: dict[str, Callable[[Client], httpx.Response]] = {
        "api reads": lambda client: client.get(f"/agents/{agent.id}"),
        "api says who": lambda client: client.get("/me"),
        "signer acts": lambda client: client.post(f"/agents/{agent.id}/token", json={}),
        "signer simulates": lambda client: client.post(f"/vault/{agent.id}/simulate", json=order),
        "signer issues a receipt": lambda client: client.get(f"/vault/{agent.id}/transactions/{tx}/receipt"),
        "identity acts": lambda client: client.put(f"/tenants/{tenant.id}/config", json={"displayName": "Shown"}),
    }
    old = {where: with_key(where, tenant.key) for where in (service, partner)}
    control = {where: with_key(where, new) for where in (service, partner)}
    with closing(old[service]), closing(old[partner]), closing(control[service]), closing(control[partner]):
        # Every cache has the key.
        assert {use(client).status_code for use in uses.values() for client in old.values()} == {200}
        replaced = next(one["id"] for one in as_owner.ok("GET", path) if one["status"] == "retiring")

        as_owner.ok("DELETE", f"{path}/{replaced}", {})

        revoked_at = time.monotonic()
        # What acts is refused at once.
        acts = [uses[name](client).status_code for name in ("signer acts", "identity acts") for client in old.values()]
        late = {
            (name, where.port): eventually(
                lambda use=use, client=client: use(client).status_code, lambda status: status == 401
            )
            for name, use in uses.items()
            for where, client in old.items()
        }
        took = time.monotonic() - revoked_at
        good = {use(client).status_code for use in uses.values() for client in control.values()}

    assert acts == [401] * 4
    assert set(late.values()) == {401}
    assert took < PROMISED_SECONDS + SLACK_SECONDS
    assert good == {200}
