"""Orders are judged by the database's clock alone, whatever the signer's host believes the time to be."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service

CLOCK = (
    "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
    "$$SELECT clock_timestamp() + interval '{}'$$"
)
STOPPED = (
    "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$SELECT '{}'::timestamptz$$"
)
# Queued inside the first minute that the hour's window holds: counted there for half a minute more at least.
EDGE = "date_trunc('minute', service_now() - interval '1 hour') + interval '30 s'"


@pytest.fixture(scope="module")
def ahead(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A service whose database has a clock of its own."""
    database = database_apart(postgres_home, f"{worker_id}_clock")
    with deploy(database) as service:
        yield service


@pytest.fixture
def apart(ahead: Service) -> Iterator[Tenant]:
    with new_tenant(ahead) as client:
        yield client


async def later(database: Database, interval: str) -> None:
    async with owner_of(database) as owner:
        await owner.execute(CLOCK.format(interval))


async def stop_clock(database: Database, at: datetime) -> None:
    async with owner_of(database) as owner:
        await owner.execute(STOPPED.format(at.isoformat()))


def queue_order(agent: Agent) -> str:
    answer = agent.sign(value=5)
    assert answer.status_code == 202, answer.text
    approval: str = answer.json()["data"]["approvalId"]
    return approval


def approve(tenant: Tenant, approval: str) -> int:
    return tenant.post(f"/approvals/{approval}/approve", json={}).status_code


@pytest.fixture
def slow(apart: Tenant) -> Agent:
    """One order an hour, and every one waits."""
    return apart.agent(rule("auto-approve-threshold", threshold="0"), rule("rate-limit", maxTxPerHour=1))


async def test_an_order_that_left_the_window_is_not_taken_off_it(ahead: Service, apart: Tenant, slow: Agent) -> None:
    await later(ahead.database, "0 s")
    old = queue_order(slow)
    await later(ahead.database, "2 hours")
    queue_order(slow)

    assert approve(apart, old) == 403


async def test_an_order_at_the_edge_of_the_window_does_not_count_against_itself(
    ahead: Service, apart: Tenant, slow: Agent
) -> None:
    await later(ahead.database, "0 s")
    approval = queue_order(slow)
    async with owner_of(ahead.database) as owner:
        await owner.execute(f"UPDATE approvals SET requested_at = {EDGE} WHERE id = $1", approval)
        await owner.execute(
            f"UPDATE rate SET bucket = date_trunc('minute', {EDGE}) WHERE grain = 'minute' AND tenant_id = $1", apart.id
        )

    assert approve(apart, approval) == 200


async def test_a_denial_bears_the_time_of_the_database(ahead: Service, apart: Tenant, slow: Agent) -> None:
    await later(ahead.database, "3 days")
    approval = queue_order(slow)

    denied = apart.ok("POST", f"/approvals/{approval}/deny", {})

    item = apart.ok("GET", "/approvals?status=rejected")[0]
    assert denied["resolvedAt"] == item["resolvedAt"] >= item["requestedAt"]


# Sixteen minutes, and two hours, after the first order of a window.
@pytest.mark.parametrize(
    ("config", "gap", "wait"),
    [
        ({"maxTxPerHour": 2}, timedelta(minutes=16), timedelta(minutes=44, seconds=35)),
        ({"maxTxPerDay": 2}, timedelta(hours=2), timedelta(hours=22, minutes=50, seconds=35)),
    ],
    ids=["of an hour", "of a day"],
)
async def test_a_full_rate_says_when_a_place_is_free_and_an_obedient_retry_passes(
    ahead: Service, apart: Tenant, config: dict[str, int], gap: timedelta, wait: timedelta
) -> None:
    agent = apart.agent(rule("rate-limit", **config))
    first = datetime.now(UTC).replace(minute=9, second=25, microsecond=0) + timedelta(hours=1)
    await stop_clock(ahead.database, first)
    assert agent.sign().status_code == 200
    await stop_clock(ahead.database, first + gap)
    assert agent.sign().status_code == 200

    refused = agent.sign(key="the same key")
    await stop_clock(ahead.database, first + gap + wait - timedelta(seconds=1))
    early = agent.sign(key="the same key")
    await stop_clock(ahead.database, first + gap + wait)
    late = agent.sign(key="the same key")

    assert (refused.status_code, refused.json()["data"]["code"]) == (429, "policy_rate_limited")
    seconds = str(int(wait.total_seconds()))
    for prefix in ("", "X-"):
        named = [refused.headers[f"{prefix}RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")]
        assert named == ["2", "0", seconds]
    assert refused.headers["Retry-After"] == seconds
    assert (early.status_code, early.headers["Retry-After"], late.status_code) == (429, "1", 200)
