"""The main job from end to end: signed, queued, approved, mined, refused."""

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Tenant, rule
from tests.outside.evm_node import EvmNode

ETHER = 10**18


def test_a_small_payment_is_signed_and_mined(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay=str(ETHER)))
    evm_node.fund(agent.evm_address, ETHER)
    before = int(evm_node.rpc("eth_getBalance", OTHER_ADDRESS, "latest"), 16)

    answer = agent.sign(OTHER_ADDRESS, 1000, broadcast=True)

    assert answer.status_code == 200, answer.text
    assert evm_node.receipt(answer.json()["data"]["txHash"])["status"] == "0x1"
    assert int(evm_node.rpc("eth_getBalance", OTHER_ADDRESS, "latest"), 16) == before + 1000
    assert agent.ok("GET", f"/vault/{agent.id}/history")[0]["status"] == "broadcast"


def test_a_large_payment_waits_for_a_person_and_is_mined_once_approved(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="100"))
    evm_node.fund(agent.evm_address, ETHER)

    queued = agent.sign(ADDRESS, 101, broadcast=True)
    assert queued.status_code == 202
    item = tenant.ok("GET", "/approvals")[0]
    approved = tenant.ok("POST", f"/approvals/{item['id']}/approve", {"digest": item["digest"]})

    assert queued.json()["data"]["status"] == "pending_approval"
    assert evm_node.receipt(approved["txHash"])["status"] == "0x1"


def test_an_agent_without_funds_is_told_which_address_to_fund(tenant: Tenant) -> None:
    agent = tenant.agent()

    answer = agent.sign(ADDRESS, 5, broadcast=True)

    assert answer.status_code == 502
    assert answer.json()["data"]["code"] == "insufficient_funds"
    assert agent.evm_address in answer.json()["error"]
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []
