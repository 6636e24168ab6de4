"""What an agent asked for: pending, history, search, one. Spec 1/2.6, 4.6, decisions 4."""

from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.outside.evm_node import EvmNode
from tests.routes.orders import note


@pytest.fixture
def busy(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with one order of each outcome: signed, refused, queued, typed data, broadcast; newest last."""
    agent = tenant.agent(
        rule("spending-limit", maxPerTransaction="100"), rule("auto-approve-threshold", threshold="10")
    )
    evm_node.fund(agent.evm_address)
    agent.sign(value=1, referenceId="first")
    agent.sign(value=101)
    agent.sign(value=50)
    agent.post(f"/vault/{agent.id}/sign-typed-data", json=note())
    agent.sign(OTHER_ADDRESS, 2, broadcast=True)
    return agent


def found(agent: Agent, query: str) -> dict[str, Any]:
    return agent.ok("GET", f"/vault/{agent.id}/transactions?{query}")


def test_history_is_newest_first_and_counted(busy: Agent, tenant: Tenant) -> None:
    answer = busy.get(f"/vault/{busy.id}/history")

    rows = answer.json()["data"]
    assert [(row["kind"], row["status"]) for row in rows] == [
        ("evm", "broadcast"), ("typed_data", "signed"), ("evm", "pending_approval"), ("evm", "rejected"),
        ("evm", "signed"),
    ]  # fmt: skip
    assert answer.headers["X-Total-Count"] == "5"
    assert tenant.ok("GET", f"/vault/{busy.id}/history?limit=2&offset=1") == rows[1:3]


def test_pending_has_the_orders_that_wait(busy: Agent, tenant: Tenant) -> None:
    answer = tenant.get(f"/vault/{busy.id}/pending")

    item = answer.json()["data"][0]
    assert answer.headers["X-Total-Count"] == "1"
    assert set(item) == {"queueId", "status", "requestedAt", "transaction"}
    assert item["queueId"] == tenant.ok("GET", "/approvals")[0]["id"]
    order = item["transaction"]
    assert set(order) == {"id", "toAddress", "value", "chainId", "policyResults"}
    assert (item["status"], order["toAddress"], order["value"], order["chainId"]) == ("pending", ADDRESS, "50", 31337)


def test_pending_is_empty_once_decided(busy: Agent, tenant: Tenant) -> None:
    tenant.ok("POST", f"/approvals/{tenant.ok('GET', '/approvals')[0]['id']}/deny", {})

    assert busy.ok("GET", f"/vault/{busy.id}/pending") == []


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("", 5), ("status=signed", 2), ("status=rejected", 1), ("status=failed", 0), ("kind=typed_data", 1),
        ("kind=bitcoin", 0),
        ("chainId=31337", 5), ("chainId=1", 0), ("referenceId=first", 1), ("referenceId=FIRST", 0),
        (f"toAddress={ADDRESS}", 3),
        (f"toAddress={OTHER_ADDRESS.upper().replace('X', 'x')}", 1), ("from=2000-01-01T00:00:00Z", 5),
        ("to=2000-01-01T00:00:00Z", 0),
        ("from=2000-01-01&to=2999-12-31T23:59:59.999%2B02:00", 5), ("status=signed&kind=evm", 1), ("limit=1", 5),
        ("offset=5", 5),
    ],
)  # fmt: skip
def test_every_filter_narrows(busy: Agent, query: str, total: int) -> None:
    assert found(busy, query)["total"] == total


def test_an_order_is_found_by_its_hash_and_its_id(busy: Agent) -> None:
    newest = found(busy, "limit=1")["transactions"][0]

    by_hash, by_id = found(busy, f"txHash={newest['txHash']}"), found(busy, f"txId={newest['id']}")

    assert by_hash["transactions"] == by_id["transactions"] == [newest]


def test_a_page_says_which_it_is(busy: Agent) -> None:
    page = found(busy, "limit=2&offset=3")

    assert (page["limit"], page["offset"], page["total"], len(page["transactions"])) == (2, 3, 5, 2)
    assert (found(busy, "")["limit"], found(busy, "")["offset"]) == (50, 0)


@pytest.mark.parametrize(
    "query",
    [
        "limit=201", "limit=0", "offset=-1", "status=unknown", "kind=x", "chainId=x", "txId=x", "from=yesterday",
        "to=2000-13-01", "from=2000-01-01T00:00:00Z&from=2001-01-01T00:00:00Z",
    ],
)  # fmt: skip
def test_a_malformed_filter_is_400(busy: Agent, query: str) -> None:
    assert busy.get(f"/vault/{busy.id}/transactions?{query}").status_code == 400


def test_an_absent_transaction_is_404_and_so_is_another_agents(busy: Agent, tenant: Tenant) -> None:
    other = tenant.agent()
    absent = "00000000-0000-4000-8000-000000000000"
    theirs = found(busy, "limit=1")["transactions"][0]["id"]

    answers = [tenant.get(f"/vault/{other.id}/transactions/{tx_id}") for tx_id in (absent, theirs)]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [
        (404, "transaction_absent")
    ] * 2


@pytest.mark.parametrize("part", ["pending", "history", "transactions"])
def test_an_absent_agent_is_404(tenant: Tenant, part: str) -> None:
    answer = tenant.get(f"/vault/absent/{part}")

    assert (answer.status_code, answer.json()["data"]["code"]) == (404, "agent_absent")
