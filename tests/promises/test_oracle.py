"""The oracle itself: it finds each thing it is there to find, and nothing where nothing is wrong."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.server import Service
from tests.promises.oracle import Limit, Signature, largest_window, violations

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

# What somebody does behind the service's back, and a word of what the oracle says about it.
DAMAGE = {
    "DELETE FROM audit WHERE action = 'tx.signed'": "without its audit row",
    "DELETE FROM audit WHERE action = 'tx.approved'": "without its audit row",
    "UPDATE audit SET metadata = replace(metadata, 'policyVersion', 'other')": "without its audit row",
    "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata, "
    "created_at) SELECT tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata, "
    "created_at FROM audit": "released twice",
    "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata, "
    "created_at) SELECT tenant_id, written_by, actor_type, actor_id, action, resource_type, gen_random_uuid()::text, "
    "metadata, created_at FROM audit": "does not exist",
    "DELETE FROM outbox": "without its one event",
    "INSERT INTO events (tenant_id, id, event, data, created_at) "
    "SELECT tenant_id, event_id, event, data, created_at FROM outbox": "without its one event",
    "INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms, created_at) "
    "SELECT id, gen_random_uuid(), 'https://receiver.example/', 0, 1000, 'epoch' FROM tenants; "
    "INSERT INTO events (tenant_id, id, event, data, created_at) SELECT id, gen_random_uuid(), 'tx.denied', '{}', "
    "created_at FROM tenants": "without its delivery",
    "INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms) "
    "SELECT id, gen_random_uuid(), 'https://receiver.example/', 0, 1000 FROM tenants; "
    "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, max_attempts) "
    "SELECT tenant_id, id, 'tx.denied', url, 1 FROM webhook_endpoints": "nobody will end",
    "DELETE FROM spend": "bucket",
    "UPDATE spend SET amount = amount - 1": "bucket",
    "UPDATE spend SET hour = hour - interval '1 hour'": "bucket",
    "DELETE FROM rate": "a rate that does not count",
    "UPDATE transactions SET nonce = 0 WHERE nonce = 1": "takes slot",
    "DELETE FROM nonces": "the nonces table",
    "UPDATE transactions SET broadcast = true": "is not the payment",
    "UPDATE transactions SET status = 'confirmed' WHERE nonce = 1": "two of its transactions were mined",
    "UPDATE transactions SET status = 'failed', status_detail = 'replaced' WHERE nonce = 0": "may still be taken",
    "UPDATE transactions SET status = 'confirmed' WHERE nonce = 0": "was not told once",
    "UPDATE transactions SET signature = 'same' WHERE signature IS NOT NULL": "one signature in two",
    "UPDATE transactions SET policy_version = 99": "a policy version",
    'UPDATE transactions SET effects = replace(effects, \'"amount":"7"\', \'"amount":"6"\')': "the bytes of",
    "UPDATE idempotency SET tx_id = gen_random_uuid() WHERE tx_id IS NOT NULL": "names no transaction",
    "UPDATE approvals SET status = 'pending', resolved_at = NULL": "disagree",
    "UPDATE transactions SET signed_at = signed_at - interval '1 day' WHERE nonce = 0": "bucket",
}


@pytest.fixture(scope="module")
def apart(postgres_home: object, worker_id: str) -> Iterator[Service]:
    """A deployment of this file's own."""
    with deploy(database_apart(postgres_home, f"{worker_id}_oracle")) as service:
        yield service


@pytest.fixture(scope="module")
def busy(apart: Service) -> Iterator[tuple[Tenant, Agent]]:
    """A tenant whose agent was signed for, was approved, was denied, and waits."""
    with new_tenant(apart) as tenant:
        limits = rule("spending-limit", maxPerDay="100"), rule("auto-approve-threshold", threshold="10")
        agent = tenant.agent(*limits)
        assert agent.sign(value=7, key="a key of mine").status_code == 200
        assert agent.sign(value=7).status_code == 200
        # Takes over the nonce of the second, which nobody sent.
        assert agent.sign(value=5, nonce=1).status_code == 200
        items = [agent.sign(value=11).json()["data"]["approvalId"] for _ in range(3)]
        tenant.ok("POST", f"/approvals/{items[0]}/approve", {})
        tenant.ok("POST", f"/approvals/{items[1]}/deny", {})
        yield tenant, agent


@pytest.fixture
async def owner(apart: Service) -> AsyncIterator[asyncpg.Connection]:
    """A transaction as the owner, undone at the end."""
    async with owner_of(apart.database) as connection:
        change = connection.transaction()
        await change.start()
        yield connection
        await change.rollback()


async def test_nothing_is_found_where_nothing_is_wrong(owner: asyncpg.Connection, busy: tuple[Tenant, Agent]) -> None:
    tenant, agent = busy

    assert await violations(owner, [tenant.id], [Limit(agent.id, 25)]) == []


async def test_more_than_the_limit_is_found(owner: asyncpg.Connection, busy: tuple[Tenant, Agent]) -> None:
    tenant, agent = busy

    assert "signed 25 evm:native of 24" in (await violations(owner, [tenant.id], [Limit(agent.id, 24)]))[0]


@pytest.mark.parametrize("statement", DAMAGE)
async def test_damage_is_found(owner: asyncpg.Connection, busy: tuple[Tenant, Agent], statement: str) -> None:
    tenant, _ = busy
    await owner.execute(statement)

    found = await violations(owner, [tenant.id])

    assert [text for text in found if DAMAGE[statement] in text], found


@pytest.mark.parametrize(
    ("events", "most"),
    [
        ([(0, 0, 5), (23, 1, 5)], 10),
        ([(0, 0, 5), (24, 1, 5)], 5),
        ([(0, 0, 5), (1, 0, 3)], 5),
        ([(0, 0, 3), (1, 0, 5)], 5),
        ([(0, 0, 5), (1, 0, 3), (24, 1, 4)], 7),
        ([(0, 0, 2), (12, 1, 2), (23, 2, 2), (30, 3, 2)], 6),
    ],
)
def test_a_window_counts_each_slot_once_at_its_largest(events: list[tuple[int, int, int]], most: int) -> None:
    signed = [_signature(hour, nonce, amount) for hour, nonce, amount in events]

    assert largest_window(signed, "evm:native", 24) == most


def _signature(hour: int, nonce: int, amount: int) -> Signature:
    return Signature(
        tenant="t",
        id=f"{hour}",
        agent="a",
        incarnation="i",
        address="0x",
        kind="evm",
        chain=1,
        nonce=nonce,
        at=NOON + timedelta(hours=hour),
        moved={"evm:native": amount},
        signature="s",
        raw=None,
        replaces=None,
    )
