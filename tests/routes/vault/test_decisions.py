"""Approve and reject by the agent's transaction."""

from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.outside.evm_node import EvmNode


@pytest.fixture
def cautious(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent whose every payment waits."""
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    evm_node.fund(agent.evm_address)
    return agent


def queue_order(agent: Agent, **fields: Any) -> dict[str, Any]:
    answer = agent.sign(value=5, **fields)
    assert answer.status_code == 202
    return answer.json()["data"]


def test_approving_signs_and_broadcasts_when_the_agent_asked(
    cautious: Agent, tenant: Tenant, evm_node: EvmNode
) -> None:
    order = queue_order(cautious, broadcast=True)

    approved = tenant.ok("POST", f"/vault/{cautious.id}/approve/{order['txId']}")

    assert set(approved) == {"txId", "txHash"}
    assert evm_node.receipt(approved["txHash"])["status"] == "0x1"
    assert cautious.ok("GET", f"/vault/{cautious.id}/transactions/{order['txId']}")["status"] == "broadcast"


def test_approving_without_broadcast_leaves_the_bytes_with_the_agent(cautious: Agent, tenant: Tenant) -> None:
    order = queue_order(cautious)

    tenant.ok("POST", f"/vault/{cautious.id}/approve/{order['txId']}", {})

    found = cautious.ok("GET", f"/vault/{cautious.id}/transactions/{order['txId']}")
    assert (found["status"], found["signedTransaction"][:4], found["toAddress"]) == ("signed", "0x02", ADDRESS)


def test_rejecting_is_final(cautious: Agent, tenant: Tenant) -> None:
    order = queue_order(cautious)

    rejected = tenant.ok("POST", f"/vault/{cautious.id}/reject/{order['txId']}", {"reason": "not now"})

    assert {name: rejected[name] for name in rejected if name != "resolvedAt"} == {
        "txId": order["txId"],
        "approvalId": order["approvalId"],
        "status": "rejected",
        "resolvedBy": "manual",
    }
    found = cautious.ok("GET", f"/vault/{cautious.id}/transactions/{order['txId']}")
    assert (found["status"], found["statusDetail"], found["txHash"]) == ("rejected", "denied", None)
    for way in ("approve", "reject"):
        answer = tenant.post(f"/vault/{cautious.id}/{way}/{order['txId']}", json={})
        assert (answer.status_code, answer.json()["data"]["code"]) == (409, "approval_resolved")


def test_an_order_is_decided_only_under_its_own_agent(cautious: Agent, tenant: Tenant) -> None:
    order, other = queue_order(cautious), tenant.agent()

    for way in ("approve", "reject"):
        answer = tenant.post(f"/vault/{other.id}/{way}/{order['txId']}", json={})
        assert (answer.status_code, answer.json()["data"]["code"]) == (404, "approval_absent")


def test_a_transaction_that_was_never_queued_is_404(tenant: Tenant, agent: Agent) -> None:
    tx_id = agent.sign().json()["data"]["txId"]

    assert tenant.post(f"/vault/{agent.id}/approve/{tx_id}", json={}).status_code == 404


def test_an_agent_decides_nothing(cautious: Agent) -> None:
    order = queue_order(cautious)

    for path in (
        f"/vault/{cautious.id}/approve/{order['txId']}",
        f"/vault/{cautious.id}/reject/{order['txId']}",
        f"/approvals/{order['approvalId']}/approve",
    ):
        assert cautious.post(path, json={}).status_code == 403
