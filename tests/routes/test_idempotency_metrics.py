"""Every counter of `GET /tenants/:id/idempotency-metrics` moves by what it is named after."""

import asyncio
import csv
import io
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.deployments import owner_of, partner_of
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.routes.tenants.makers import holding

NONE = dict.fromkeys(
    (
        "observed",
        "reserved",
        "completed",
        "replayed",
        "conflicts",
        "inFlightConflicts",
        "suppressedAuthResponses",
        "invalidKeys",
        "storeErrors",
        "skippedUnsafeContext",
        "releasedOnError",
    ),
    0,
)


def counters(person: Person) -> dict[str, int]:
    return dict(person.ok("GET", f"/tenants/{person.tenant}/idempotency-metrics")["counters"])


def fresh() -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex}


def agent() -> dict[str, str]:
    return {"id": f"a-{uuid.uuid4().hex[:12]}", "name": "An agent"}


def test_done_replayed_and_mismatched(tenant: Tenant, as_owner: Person) -> None:
    key, body = fresh(), agent()
    for given in (body, body, agent()):
        tenant.post("/agents", json=given, headers=key)
    tenant.post("/agents", json=agent())

    assert counters(as_owner) == NONE | {"observed": 3, "reserved": 1, "completed": 1, "replayed": 1, "conflicts": 1}


def test_an_answer_that_is_not_stored_and_its_repetition(tenant: Tenant, as_owner: Person) -> None:
    agent_id, key = tenant.agent().id, fresh()
    statuses = [tenant.post(f"/agents/{agent_id}/token", json={}, headers=key).status_code for _ in range(2)]

    assert statuses == [200, 409]
    assert counters(as_owner) == NONE | {"observed": 2, "reserved": 1, "completed": 1, "suppressedAuthResponses": 2}


def test_a_refusal_frees_the_key_and_a_bad_key_is_none(tenant: Tenant, as_owner: Person) -> None:
    assert tenant.put("/agents/absent/policies", json=[], headers=fresh()).status_code == 404
    assert tenant.post("/agents", json=agent(), headers={"Idempotency-Key": "short"}).status_code == 400

    assert counters(as_owner) == NONE | {"observed": 2, "reserved": 1, "releasedOnError": 1, "invalidKeys": 1}


def test_a_policys_refusal_is_kept_with_its_order(tenant: Tenant, as_owner: Person) -> None:
    limit = {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": "1"}}
    spender, key = tenant.agent(limit), uuid.uuid4().hex
    assert [spender.sign(value=2, key=key).status_code for _ in range(2)] == [403, 403]

    assert counters(as_owner) == NONE | {"observed": 2, "reserved": 1, "completed": 1, "replayed": 1}


def test_a_key_on_a_sign_in_route_is_passed_over(as_owner: Person) -> None:
    tenant = as_owner.tenant
    as_owner.take(as_owner.ok("POST", "/auth/session/tenant", {"tenantId": tenant}, **fresh()))

    assert counters(as_owner) == NONE | {"observed": 1, "skippedUnsafeContext": 1}


async def test_a_twin_in_flight_is_told_to_come_back(service: Service, tenant: Tenant, as_owner: Person) -> None:
    key, body = fresh(), {"name": "a secret", "value": "of the test"}

    def post() -> Any:
        with Client(base_url=service.url, headers={"X-Service-Key": tenant.key}, timeout=20) as client:
            return client.post("/secrets", json=body, headers=key)

    with ThreadPoolExecutor(2) as pool:
        async with _hold_row(service, tenant.id) as let_go:
            done, waiting = wait([pool.submit(post) for _ in range(2)], timeout=60, return_when=FIRST_COMPLETED)
            await let_go()
        (second,), (first,) = ([one.result(timeout=60) for one in some] for some in (done, waiting))

    assert (second.status_code, second.json()["data"]["code"]) == (409, "idempotency_in_flight")
    assert second.headers["Retry-After"] == "1"
    assert first.status_code == 201
    assert counters(as_owner) == NONE | {"observed": 2, "reserved": 1, "completed": 1, "inFlightConflicts": 1}


async def test_reading_figures_waits_for_a_write_under_way(
    tenant: Tenant, as_owner: Person, database: Database, owner: asyncpg.Connection
) -> None:
    async with holding(database, "LOCK TABLE idempotency_counts IN SHARE MODE"):
        answer = await asyncio.to_thread(tenant.post, "/agents", json=agent(), headers=fresh())
        assert answer.status_code == 201
        # They are on their way, by the task of every second.
        await waits_for_lock(owner, "add_idempotency_counts")
        asking = asyncio.create_task(asyncio.to_thread(counters, as_owner))
        # Long enough for an answer that does not wait.
        await asyncio.wait([asking], timeout=0.5)

    assert await asking == NONE | {"observed": 1, "reserved": 1, "completed": 1}


async def waits_for_lock(owner: asyncpg.Connection, function: str) -> None:
    """Come back once a statement that calls it waits for a lock."""
    waits = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
        "AND wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid())"
    )
    await soon(lambda: owner.fetchval(waits, function))


@pytest.mark.long
def test_a_signer_that_is_away_counts_as_a_store_error(service: Service, tenant: Tenant, as_owner: Person) -> None:
    with partner_of(service) as other:
        with Client(base_url=other.url, headers={"X-Service-Key": tenant.key}, timeout=20) as client:
            # The signer vouched for the key while it was there.
            assert client.get("/agents").status_code == 200
            other.kill("signer")
            assert client.post("/agents", json=agent(), headers=fresh()).status_code == 503
            # Its own last figures are written when it stops.
        other.start("signer")

    assert counters(as_owner) == NONE | {"observed": 1, "reserved": 1, "storeErrors": 1}


def test_the_export_says_the_same_in_one_row(tenant: Tenant, as_owner: Person) -> None:
    tenant.post("/agents", json=agent(), headers=fresh())
    answer = as_owner.get(f"/tenants/{tenant.id}/idempotency-metrics/export")

    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert (row["observed"], row["completed"], row["store_errors"], row["ttl_ms"]) == ("1", "1", "0", "86400000")


@asynccontextmanager
async def _hold_row(service: Service, tenant: str) -> AsyncIterator[Any]:
    """The row that every change of the tenant's secrets begins with, held until it is let go."""
    async with owner_of(service.database) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("SELECT FROM tenants WHERE id = $1 FOR UPDATE", tenant)
        yield transaction.rollback
