"""`GET /transactions`: what all agents of a tenant asked for, as JSON and as a file."""

import csv
import io
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.routes.orders import mail, solana_payment


class Busy:
    """A tenant of two agents, of which one was refused once."""

    def __init__(self, service: Service) -> None:
        self.tenant = new_tenant(service)
        self.owner = member(service, self.tenant, "owner", mfa=True)
        self.first = self.tenant.agent(rule("spending-limit", maxPerTransaction="100"))
        self.second = self.tenant.agent()
        self.first.sign(value=1, referenceId="shared")
        self.second.sign(OTHER_ADDRESS, 2, referenceId="shared")
        self.first.sign(value=101)
        self.second.post(f"/vault/{self.second.id}/sign-typed-data", json=mail())

    def close(self) -> None:
        self.owner.close()
        self.tenant.close()


@pytest.fixture(scope="module")
def busy(service: Service) -> Iterator[Busy]:
    made = Busy(service)
    yield made
    made.close()


def find(tenant: Tenant, query: str = "") -> dict[str, Any]:
    return tenant.ok("GET", f"/transactions?{query}")


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_orders_of_all_agents_are_listed_newest_first(busy: Busy) -> None:
    page = find(busy.tenant)

    assert [(row["agentId"], row["status"]) for row in page["transactions"]] == [
        (busy.second.id, "signed"),
        (busy.first.id, "rejected"),
        (busy.second.id, "signed"),
        (busy.first.id, "signed"),
    ]
    assert (page["total"], page["limit"], page["offset"], page["nextCursor"]) == (4, 50, 0, None)
    own = busy.first.ok("GET", f"/vault/{busy.first.id}/transactions")["transactions"]
    assert find(busy.tenant, f"agentId={busy.first.id}")["transactions"] == own


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("referenceId=shared", 2),
        ("status=signed", 3),
        ("status=rejected&kind=evm", 1),
        ("kind=typed_data", 1),
        (f"toAddress={OTHER_ADDRESS}", 1),
        (f"toAddress={ADDRESS}", 2),
        ("from=2000-01-01", 4),
        ("to=2000-01-01", 0),
        ("agentId=nobody", 0),
        ("limit=1", 4),
    ],
)
def test_the_filters_are_those_of_an_agents_list(busy: Busy, query: str, total: int) -> None:
    assert find(busy.tenant, query)["total"] == total


def test_one_is_found_by_hash_and_id_wherever_it_is(busy: Busy) -> None:
    order = find(busy.tenant, f"agentId={busy.first.id}&status=signed")["transactions"][0]

    for query in (f"txHash={order['txHash']}", f"txId={order['id']}"):
        assert find(busy.tenant, query)["transactions"] == [order]


def test_no_other_tenant_sees_them(busy: Busy, other_tenant: Tenant) -> None:
    assert find(other_tenant, f"agentId={busy.first.id}")["total"] == 0
    assert len(table(other_tenant.get("/transactions?format=csv").text)) == 0


def test_an_agent_asks_at_its_own_list_and_others_as_they_may_read(service: Service, busy: Busy) -> None:
    refused = busy.first.get("/transactions")
    with closing(app_client_of(busy.owner)) as integration, closing(member(service, busy.tenant, "viewer")) as viewer:
        answers = [client.get("/transactions") for client in (busy.tenant, busy.owner, integration, viewer)]
    with closing(member(service, busy.tenant, "member")) as end_user:
        outside = end_user.get("/transactions")

    assert [answer.status_code for answer in answers] == [200] * 4
    assert (refused.status_code, outside.status_code) == (403, 403)


def test_a_file_has_a_name_the_fields_of_the_list_and_every_row(busy: Busy) -> None:
    answer = busy.tenant.get("/transactions?format=csv")

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert re.fullmatch(
        r'attachment; filename="transactions-\d{4}-\d\d-\d\d\.csv"', answer.headers["content-disposition"]
    )
    assert (answer.headers["x-total-count"], answer.headers.get("x-next-cursor")) == ("4", None)
    rows, shown = table(answer.text), find(busy.tenant)["transactions"]
    assert [row["id"] for row in rows] == [row["id"] for row in shown]
    assert set(rows[0]) == set(shown[0])
    assert {name: rows[2][name] for name in ("value", "status", "agentId", "referenceId", "broadcast")} == {
        "value": "2",
        "status": "signed",
        "agentId": busy.second.id,
        "referenceId": "shared",
        "broadcast": "false",
    }
    assert '"kind":"transfer"' in rows[2]["effects"]


@pytest.mark.parametrize(
    ("accept", "query", "media"),
    [
        ("text/csv", "", "text/csv"),
        ("text/csv, application/json;q=0.5", "", "text/csv"),
        ("Text/CSV; q=0.9, */*;q=0.1", "", "text/csv"),
        ("text/*", "", "text/csv"),
        ("*/*", "", "application/json"),
        ("application/json, text/csv", "", "application/json"),
        ("text/csv;q=0", "", "application/json"),
        ("text/html", "", "application/json"),
        ("text/csv", "format=json", "application/json"),
        ("application/json", "format=csv", "text/csv"),
        (";;q=x,,", "", "application/json"),
    ],
)
def test_the_form_is_what_the_caller_prefers(busy: Busy, accept: str, query: str, media: str) -> None:
    answer = busy.tenant.get(f"/transactions?{query}", headers={"Accept": accept})

    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, media)


def test_a_file_goes_on_at_its_cursor_and_takes_the_same_filters(busy: Busy) -> None:
    path = "/transactions?format=csv&status=signed"
    first = busy.tenant.get(f"{path}&limit=2")
    rest = busy.tenant.get(f"{path}&cursor={first.headers['x-next-cursor']}")

    ids = [row["id"] for text in (first.text, rest.text) for row in table(text)]
    assert ids == [row["id"] for row in find(busy.tenant, "status=signed")["transactions"]]
    assert "x-next-cursor" not in rest.headers
    assert rest.headers["x-total-count"] == "3"


@pytest.mark.parametrize(
    ("query", "field"),
    [("limit=201", "limit"), ("format=csv&include=data", "include"), ("format=xml", "format"), ("format=", "format")],
)
def test_a_part_that_a_form_cannot_have_is_400(busy: Busy, query: str, field: str) -> None:
    answer = busy.tenant.get(f"/transactions?{query}")

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [field])


def test_a_cell_that_a_spreadsheet_would_run_is_text(tenant: Tenant, agent: Agent) -> None:
    agent.sign(referenceId="=1+1")
    agent.sign(referenceId="@SUM(A1)")

    rows = table(tenant.get("/transactions?format=csv").text)

    assert [row["referenceId"] for row in rows] == ["'@SUM(A1)", "'=1+1"]


def test_a_hash_that_is_a_signature_is_in_nobodys_file_who_may_not_send_it(service: Service) -> None:
    with new_tenant(service) as tenant, closing(member(service, tenant, "owner", mfa=True)) as owner:
        agent = tenant.agent()
        assert agent.post(f"/vault/{agent.id}/sign-solana", json=solana_payment(agent, 1)).status_code == 200
        with closing(app_client_of(owner)) as integration, closing(member(service, tenant, "viewer")) as viewer:
            shown = {
                client: [
                    table(client.get("/transactions?format=csv").text)[0]["txHash"] or None,
                    client.get("/transactions?include=data").json()["data"]["transactions"][0]["signature"],
                ]
                for client in (tenant, owner, integration, viewer)
            }
            assert all(all(shown[client]) for client in (tenant, owner))
            assert shown[integration] == shown[viewer] == [None, None]


async def test_a_long_file_ends_and_goes_on_where_it_ended(tenant: Tenant, owner: asyncpg.Connection) -> None:
    """Ten thousand rows, or as many as eight megabytes hold."""
    agent = tenant.agent()
    assert agent.sign().status_code == 200
    await owner.execute(COPIES, tenant.id, 2_999, "[]")
    one = tenant.get("/transactions?format=csv")
    assert (len(table(one.text)), one.headers.get("x-next-cursor")) == (3_000, None)
    # A policy of many rules: 8 KiB of results for each of 1,500 rows.
    await owner.execute(COPIES, tenant.id, 1_500, LONG)

    ids: list[str] = []
    query: dict[str, str] = {"format": "csv"}
    sizes = []
    while True:
        answer = tenant.get("/transactions", params=query)
        assert answer.status_code == 200, answer.text
        ids += [row["id"] for row in table(answer.text)]
        sizes.append(len(answer.content))
        if "x-next-cursor" not in answer.headers:
            break
        query["cursor"] = answer.headers["x-next-cursor"]

    assert len(ids) == len(set(ids)) == 4_500
    assert len(sizes) > 1
    assert max(sizes) <= 8 * 1024 * 1024 + 1024


LONG = f'[{{"policyId":null,"type":"{"x" * 8_000}","passed":true,"reason":""}}]'
# The tenant's one order again and again, each a moment earlier.
COPIES = """
INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status, to_address, value, chain_id,
    broadcast, order_text, digest, effects, policy_results, policy_version, answer, signature, created_at)
SELECT tenant_id, gen_random_uuid(), agent_id, incarnation, kind, family, status, to_address, value, chain_id,
       broadcast, '', digest, effects, $3, policy_version, answer, signature, created_at - n * interval '1 ms'
  FROM (SELECT * FROM transactions WHERE tenant_id = $1 ORDER BY created_at DESC LIMIT 1) t, generate_series(1, $2) n
"""
