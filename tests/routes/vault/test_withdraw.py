"""An agent takes back what it asked for: its own orders, while they wait, and nothing else."""

import asyncio
import uuid
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.authorised import status_and_code
from tests.fixtures.callers import Agent, AsyncClient, Tenant, rule
from tests.fixtures.people import Person
from tests.routes.vault.transfers import transfer, with_signer

RACES = 24
_TOLD = """
SELECT p.status, t.status AS tx_status, t.status_detail, t.signature IS NOT NULL AS signed,
       ARRAY(SELECT u.action FROM audit u WHERE u.tenant_id = $1 AND u.resource_id = t.id::text
                AND u.action IN ('tx.approved', 'tx.withdrawn')) AS actions,
       ARRAY(SELECT e.event FROM (SELECT tenant_id, event, data FROM outbox UNION ALL
                                  SELECT tenant_id, event, data FROM events) e
              WHERE e.tenant_id = $1 AND e.event IN ('tx.approved', 'tx.denied')
                AND e.data::json->>'approvalId' = p.id::text) AS events
  FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id
 WHERE p.tenant_id = $1 AND p.tx_id = ANY ($2::uuid[])"""
_MUST_BE = {
    "approved": ("signed", None, True, ["tx.approved"], ["tx.approved"]),
    "rejected": ("rejected", "withdrawn", False, ["tx.withdrawn"], ["tx.denied"]),
}


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"))


def queue_order(agent: Agent, **fields: Any) -> dict[str, Any]:
    answer = agent.sign(value=5, **fields)
    assert answer.status_code == 202, answer.text
    waiting: dict[str, Any] = answer.json()["data"]
    return waiting


def withdraw(agent: Agent, tx_id: str, **headers: str) -> httpx.Response:
    return agent.post(f"/vault/{agent.id}/transactions/{tx_id}/withdraw", headers=headers)


def facts_of(row: Any) -> tuple[Any, ...]:
    return row["tx_status"], row["status_detail"], row["signed"], row["actions"], row["events"]


async def test_a_withdrawn_order_is_never_signed(tenant: Tenant, cautious: Agent, owner: asyncpg.Connection) -> None:
    order, other = queue_order(cautious, key="an-order-of-mine"), queue_order(cautious)

    answers = [withdraw(cautious, order["txId"]) for _ in range(2)]

    data = answers[0].json()["data"]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].json()["data"] == data
    assert (data["txId"], data["approvalId"], data["status"], data["statusDetail"]) == (
        order["txId"], order["approvalId"], "rejected", "withdrawn",
    )  # fmt: skip
    found = cautious.ok("GET", f"/vault/{cautious.id}/transactions/{order['txId']}")
    assert (found["status"], found["statusDetail"], found["signature"]) == ("rejected", "withdrawn", None)
    for way in ("approve", "reject"):
        assert status_and_code(tenant.post(f"/vault/{cautious.id}/{way}/{order['txId']}", json={})) == (
            409,
            "approval_resolved",
        )
    shown = tenant.ok("GET", f"/approvals/{order['approvalId']}")
    assert (shown["status"], shown["resolvedBy"], shown["resolvedAt"]) == ("rejected", "agent", data["resolvedAt"])
    row = await owner.fetchrow("SELECT * FROM audit WHERE tenant_id = $1 AND action = 'tx.withdrawn'", tenant.id)
    assert row is not None
    assert (row["actor_type"], row["actor_id"], row["resource_id"]) == ("agent", cautious.id, order["txId"])
    [rows] = [await owner.fetch(_TOLD, tenant.id, [order["txId"]])]
    assert facts_of(rows[0]) == _MUST_BE["rejected"]
    again = cautious.sign(value=5, key="an-order-of-mine")
    assert (status_and_code(again), again.json()["error"]) == ((403, "withdrawn"), "The agent withdrew this order.")
    # The control: the other one waits still, and is signed.
    tenant.ok("POST", f"/vault/{cautious.id}/approve/{other['txId']}")


def test_a_withdrawal_is_repeated_under_its_key(cautious: Agent) -> None:
    order, key = queue_order(cautious), {"Idempotency-Key": "a-withdrawal-of-mine"}

    first, again = (withdraw(cautious, order["txId"], **key) for _ in range(2))

    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"


def test_a_withdrawn_transfer_says_so_under_its_reference(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("auto-approve-threshold", threshold="0")))
    withdraw(agent, transfer(agent, referenceId="taken-back").json()["data"]["txId"])

    again = transfer(agent, referenceId="taken-back")

    assert (status_and_code(again), again.json()["error"]) == ((403, "withdrawn"), "The agent withdrew this transfer.")


@pytest.mark.parametrize(
    ("way", "code"), [("approve", "approval_resolved"), ("reject", "approval_resolved"), ("end", "approval_expired")]
)
async def test_a_decided_order_cannot_be_withdrawn(
    way: str, code: str, tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    order = queue_order(cautious)
    if way == "end":
        ends = "UPDATE approvals SET expires_at = service_now() - interval '1 ms' WHERE id = $1"
        await owner.execute(ends, order["approvalId"])
    else:
        tenant.ok("POST", f"/vault/{cautious.id}/{way}/{order['txId']}", {})

    answer = withdraw(cautious, order["txId"])

    assert status_and_code(answer) == (409, code)
    assert ("is signed" in answer.json()["error"]) == (way == "approve")


def test_an_order_that_never_waited_cannot_be_withdrawn(agent: Agent) -> None:
    assert status_and_code(withdraw(agent, agent.sign().json()["data"]["txId"])) == (409, "approval_resolved")


def test_an_agent_withdraws_nothing_of_others(tenant: Tenant, cautious: Agent, agent: Agent) -> None:
    order = queue_order(cautious)

    answers = [withdraw(agent, one) for one in (order["txId"], order["approvalId"], str(uuid.uuid4()))]

    assert [status_and_code(answer) for answer in answers] == [(404, "transaction_absent")] * 3
    foreign = agent.post(f"/vault/{cautious.id}/transactions/{order['txId']}/withdraw")
    assert (foreign.status_code, withdraw(agent, "../agents").status_code) == (403, 404)
    assert status_and_code(tenant.post(f"/vault/{cautious.id}/transactions/{order['txId']}/withdraw")) == (
        403,
        "wrong_kind",
    )
    assert tenant.ok("GET", f"/approvals/{order['approvalId']}")["status"] == "pending"


def test_a_frozen_agent_may_withdraw_and_a_revoked_token_may_not(tenant: Tenant, cautious: Agent) -> None:
    first, second = queue_order(cautious), queue_order(cautious)
    tenant.ok("POST", f"/agents/{cautious.id}/freeze", {})

    assert withdraw(cautious, first["txId"]).status_code == 200
    tenant.ok("DELETE", f"/agents/{cautious.id}/tokens")
    assert [withdraw(cautious, one["txId"]).status_code for one in (first, second)] == [401, 401]
    assert tenant.ok("GET", f"/approvals/{second['approvalId']}")["status"] == "pending"


async def test_of_approve_and_withdraw_at_once_exactly_one_happens(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    orders = [queue_order(cautious)["txId"] for _ in range(RACES)]
    async with (
        AsyncClient(base_url=tenant.base_url, headers=tenant.headers, timeout=60) as people,
        AsyncClient(base_url=cautious.base_url, headers=cautious.headers, timeout=60) as program,
    ):
        signed = asyncio.Event()

        async def approve(tx_id: str) -> int:
            answer = await people.post(f"/vault/{cautious.id}/approve/{tx_id}", json={})
            if answer.status_code == 200:
                signed.set()
            return answer.status_code

        async def take_back(tx_id: str, *, late: bool) -> int:
            if late:
                # Approving takes longer, so who is asked at once always wins: these come when the first one is signed.
                await signed.wait()
            return (await program.post(f"/vault/{cautious.id}/transactions/{tx_id}/withdraw")).status_code

        pairs = [
            asyncio.gather(approve(tx_id), take_back(tx_id, late=place % 4 != 0)) for place, tx_id in enumerate(orders)
        ]
        answers = {tuple(pair) for pair in await asyncio.gather(*pairs)}

    assert answers == {(200, 409), (409, 200)}
    rows = await owner.fetch(_TOLD, tenant.id, orders)
    assert len(rows) == RACES
    assert [facts_of(row) for row in rows] == [_MUST_BE[row["status"]] for row in rows]
