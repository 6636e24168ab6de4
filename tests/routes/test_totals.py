"""Totals of lists: the number of rows, or that there are at least so many. docs/api.md."""

from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from tests.fixtures.callers import Client, Tenant, rule
from tests.fixtures.people import Person

LIMIT, BEYOND = 5, 1_000
# Copies of the tenant's newest row, each a moment earlier.
_COPIES = """
INSERT INTO {table} SELECT p.*
  FROM (SELECT r FROM {table} r WHERE tenant_id = $1 ORDER BY created_at DESC LIMIT 1) q,
       generate_series(1, $2::integer) n,
       jsonb_populate_record(q.r, jsonb_build_object('id', {id}, 'created_at',
                                                     (q.r).created_at - n * interval '1 ms')) p
"""
# An approval of each transaction that has none.
_APPROVALS = """
INSERT INTO approvals SELECT p.*
  FROM (SELECT r FROM approvals r WHERE tenant_id = $1 LIMIT 1) q, transactions t,
       jsonb_populate_record(q.r, jsonb_build_object('id', gen_random_uuid(), 'tx_id', t.id, 'requested_at',
                                                     t.created_at)) p
 WHERE t.tenant_id = $1 AND NOT EXISTS (SELECT FROM approvals a WHERE a.tenant_id = $1 AND a.tx_id = t.id)
"""
_DELIVERY = """
INSERT INTO deliveries (tenant_id, endpoint_id, event, url, status, attempts, max_attempts, delivered_at)
VALUES ($1, $2, 'tx.signed', 'https://example.com/', 'delivered', 1, 6, now())
"""


class List(msgspec.Struct):
    """A list that has one row: who reads it, and how it gets more."""

    client: Client
    path: str
    table: str
    id: str = "gen_random_uuid()"

    def page(self, **query: Any) -> httpx.Response:
        """One page of it."""
        answer = self.client.get(self.path, params={"limit": LIMIT, **query})
        assert answer.status_code == 200, answer.text
        return answer

    async def grow(self, owner: asyncpg.Connection, tenant: Tenant, rows: int) -> None:
        """Give it so many more."""
        await owner.execute(_COPIES.format(table=self.table, id=self.id), tenant.id, rows)
        if "pending" in self.path or "approvals" in self.path:
            await owner.execute(_APPROVALS, tenant.id)


@pytest.fixture(params=["agents", "transactions", "all transactions", "history", "pending", "approvals", "deliveries"])
async def a_list(request: pytest.FixtureRequest, tenant: Tenant, owner: asyncpg.Connection) -> List:
    """Each list that grows without a bound."""
    if request.param == "agents":
        tenant.agent()
        return List(tenant, "/agents", "agents", id="(q.r).id || '-' || (SELECT count(*) FROM agents) || '-' || n")
    if request.param in ("transactions", "all transactions", "history"):
        agent = tenant.agent()
        assert agent.sign().status_code == 200
        paths = {"all transactions": "/transactions"}
        return List(tenant, paths.get(request.param, f"/vault/{agent.id}/{request.param}"), "transactions")
    if request.param in ("pending", "approvals"):
        agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
        assert agent.sign().status_code == 202
        path = f"/vault/{agent.id}/pending" if request.param == "pending" else "/approvals"
        return List(tenant, path, "transactions")
    person: Person = request.getfixturevalue("as_owner")
    fields = {"url": "https://hooks.example.com/", "events": ["policy.violation"]}
    webhook = person.ok("POST", "/webhooks", fields)["id"]
    await owner.execute(_DELIVERY, tenant.id, webhook)
    return List(person, f"/webhooks/{webhook}/deliveries", "deliveries")


def total_of(answer: httpx.Response) -> tuple[int, bool]:
    """The total of a page, and whether it is an estimate, which all places say alike."""
    body, headers = answer.json(), answer.headers
    if isinstance(body["data"], dict):
        return body["data"]["total"], body["data"]["totalIsEstimate"]
    assert headers.get("X-Total-Is-Estimate") == ("true" if "totalIsEstimate" in body else None)
    assert body.get("totalIsEstimate", True) is True
    return int(headers["X-Total-Count"]), "totalIsEstimate" in body


async def test_a_total_is_exact_up_to_a_thousand_rows_beyond_the_page(
    a_list: List, owner: asyncpg.Connection, tenant: Tenant
) -> None:
    before, _ = total_of(a_list.page())
    await a_list.grow(owner, tenant, LIMIT + BEYOND - before)

    assert total_of(a_list.page()) == (LIMIT + BEYOND, False)

    await a_list.grow(owner, tenant, 1)
    assert total_of(a_list.page()) == (LIMIT + BEYOND, True)
    # The bound moves with the page.
    assert total_of(a_list.page(offset=1)) == (LIMIT + BEYOND + 1, False)


@pytest.mark.parametrize("a_list", ["transactions", "history", "approvals", "deliveries"], indirect=True)
async def test_an_estimate_grows_with_a_walk_and_ends_with_it(
    a_list: List, owner: asyncpg.Connection, tenant: Tenant
) -> None:
    await a_list.grow(owner, tenant, 3 * BEYOND - 1)
    answer = a_list.page(limit=200)
    totals = [total_of(answer)]

    while cursor := answer.headers.get("X-Next-Cursor"):
        answer = a_list.page(limit=200, cursor=cursor)
        totals.append(total_of(answer))

    estimates = [(max(200 + BEYOND, 200 * page + 1), True) for page in range(1, 15)]
    assert totals == [*estimates, (3 * BEYOND, False)]


@pytest.mark.parametrize("a_list", ["all transactions"], indirect=True)
async def test_a_file_says_it_in_its_headers(a_list: List, owner: asyncpg.Connection, tenant: Tenant) -> None:
    await a_list.grow(owner, tenant, 3 * BEYOND - 1)

    first = a_list.page(format="csv", limit=500)
    rest = a_list.page(format="csv", limit=10_000, cursor=first.headers["X-Next-Cursor"])

    assert (first.headers["X-Total-Count"], first.headers["X-Total-Is-Estimate"]) == ("1500", "true")
    assert (rest.headers["X-Total-Count"], rest.headers.get("X-Total-Is-Estimate")) == ("3000", None)
