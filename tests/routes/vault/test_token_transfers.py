"""Transfers of ERC-20 tokens: what is signed for them, and which lists let them through."""

from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.outside.evm_node import EvmNode
from tests.routes.orders import CHAIN, TOKEN_CONTRACT
from tests.routes.vault.transfers import APPROVE, TRANSFER, fields, list_entry, reference, transfer, with_signer


def quote(owner: Person, agent: Agent, **changed: Any) -> dict[str, Any]:
    body = fields(token=TOKEN_CONTRACT, **changed)
    return owner.ok("POST", f"/vault/{agent.id}/actions/transfer/quote", body)


def refusals(quote: dict[str, Any]) -> list[str]:
    return [result["type"] for result in quote["results"] if not result["passed"]]


# Each with what is wrong about it, when one token goes to ADDRESS.
TOO_LITTLE: dict[str, list[dict[str, Any]]] = {
    "no rule": [],
    "disabled": [rule("contract-allowlist", enabled=False, contracts=[list_entry()])],
    "another chain": [rule("contract-allowlist", contracts=[{**list_entry(), "chainId": 1}])],
    "another contract": [rule("contract-allowlist", contracts=[{**list_entry(), "address": OTHER_ADDRESS}])],
    "another selector": [
        rule("contract-allowlist", contracts=[{**list_entry(), "selectors": [APPROVE], "constraints": {}}])
    ],
    "no constraints": [rule("contract-allowlist", contracts=[{**list_entry(), "constraints": {}}])],
    "no maxAmount": [rule("contract-allowlist", contracts=[list_entry(maxAmount=...)])],
    "no recipients": [rule("contract-allowlist", contracts=[list_entry(recipientAllowlist=...)])],
    "a blocklist of nobody": [
        rule("contract-allowlist", contracts=[list_entry(recipientAllowlist=..., recipientBlocklist=[])])
    ],
    "above by one": [rule("contract-allowlist", contracts=[list_entry(maxAmount="0")])],
    "an allowlist of others": [rule("contract-allowlist", contracts=[list_entry(recipientAllowlist=[OTHER_ADDRESS])])],
    "a blocklist with the recipient": [
        rule("contract-allowlist", contracts=[list_entry(recipientAllowlist=..., recipientBlocklist=[ADDRESS])])
    ],
    "two halves": [
        rule("contract-allowlist", contracts=[list_entry(maxAmount=...)]),
        rule("contract-allowlist", contracts=[list_entry(recipientAllowlist=...)]),
    ],
}


@pytest.mark.parametrize("name", TOO_LITTLE)
def test_a_token_without_its_bounds_is_refused(as_owner: Person, tenant: Tenant, name: str) -> None:
    agent = tenant.agent(*TOO_LITTLE[name])

    said = quote(as_owner, agent)

    assert (said["decision"], set(refusals(said))) == ("refuse", {"contract-allowlist"})


@pytest.mark.parametrize(
    "entry",
    [list_entry(), list_entry(recipientAllowlist=..., recipientBlocklist=[OTHER_ADDRESS]), list_entry(maxAmount="1")],
)
def test_a_token_within_its_bounds_is_signed(as_owner: Person, tenant: Tenant, entry: dict[str, Any]) -> None:
    agent = tenant.agent(rule("contract-allowlist", contracts=[entry]))

    said = quote(as_owner, agent)

    assert (said["decision"], refusals(said)) == ("sign", [])


def test_an_order_of_the_same_bytes_needs_no_bounds(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("contract-allowlist", contracts=[{**list_entry(), "constraints": {}}]))

    assert agent.sign(TOKEN_CONTRACT, 0, data=f"{TRANSFER}{'00' * 12}{ADDRESS[2:]}{1:064x}").status_code == 200


def test_a_token_is_signed_against_its_contract_with_no_coins(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("contract-allowlist", contracts=[list_entry()])))

    answer = transfer(agent, token=TOKEN_CONTRACT, value="100")

    action = answer.json()["data"]
    row = agent.ok("GET", f"/vault/{agent.id}/transactions/{action['txId']}")
    assert (action["to"], action["value"], action["token"]) == (ADDRESS, "100", TOKEN_CONTRACT), answer.text
    assert (row["toAddress"], row["value"]) == (TOKEN_CONTRACT, "0")
    assert row["data"] == f"{TRANSFER}{'00' * 12}{ADDRESS[2:]}{100:064x}"
    assert row["effects"][0]["asset"] == f"evm:{CHAIN}:{TOKEN_CONTRACT}"
    receipt = agent.ok("GET", f"/vault/{agent.id}/transactions/{action['txId']}/receipt")["receipt"]
    assert receipt["effects"] == row["effects"]


def test_a_refused_token_is_a_rejected_action(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("contract-allowlist", contracts=[list_entry()])))

    answer = transfer(agent, token=TOKEN_CONTRACT, value="101")

    data = answer.json()["data"]
    assert (answer.status_code, data["status"], data["code"]) == (403, "rejected", "policy_refused")
    assert data["results"] == data["policyResults"] != []
    assert "100" in answer.json()["error"]
    assert agent.ok("GET", f"/vault/{agent.id}/transactions/{data['txId']}")["status"] == "rejected"


def test_tokens_move_on_chain_once_a_person_approves(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = with_signer(as_owner, tenant.agent())
    token = evm_node.deploy_erc20(agent.evm_address)
    rules = [
        rule("contract-allowlist", contracts=[{**list_entry(), "address": token}]),
        rule("spending-limit", asset=f"evm:{CHAIN}:{token}", maxPerDay="100"),
        rule("allowed-chains", chains=[CHAIN]),
        rule("auto-approve-threshold", threshold="9", asset=f"evm:{CHAIN}:{token}"),
    ]
    tenant.ok("PUT", f"/agents/{agent.id}/policies", rules)
    evm_node.fund(agent.evm_address)

    queued = transfer(agent, token=token, value="10", broadcast=True, referenceId=reference())
    approved = tenant.ok("POST", f"/vault/{agent.id}/approve/{queued.json()['data']['txId']}")

    assert queued.status_code == 202, queued.text
    assert evm_node.receipt(approved["txHash"])["status"] == "0x1"
    held = agent.ok("GET", f"/agents/{agent.id}/tokens?tokens={token}")["tokens"][0]
    assert held["balance"] == str(10**12 - 10)


def test_a_contract_that_is_no_token_is_judged_by_its_bytes(
    as_owner: Person, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent()
    # Takes every call and does nothing.
    liar = evm_node.deploy(b"\x00")
    entry = {**list_entry(), "address": liar}
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("contract-allowlist", contracts=[entry])])

    said = as_owner.ok("POST", f"/vault/{agent.id}/actions/transfer/quote", fields(token=liar, value="100"))
    beyond = as_owner.ok("POST", f"/vault/{agent.id}/actions/transfer/quote", fields(token=liar, value="101"))

    assert (said["decision"], said["effects"][0]["amount"]) == ("sign", "100")
    assert beyond["decision"] == "refuse"


def test_a_backtest_refuses_tokens_without_their_bounds(as_owner: Person, tenant: Tenant) -> None:
    bounded = rule("contract-allowlist", contracts=[list_entry()])
    agent = with_signer(as_owner, tenant.agent(bounded))
    made = transfer(agent, token=TOKEN_CONTRACT).json()["data"]["txId"]
    loose = rule("contract-allowlist", contracts=[{**list_entry(), "constraints": {}}])

    found = tenant.ok("POST", f"/agents/{agent.id}/policies/backtest", {"policies": [loose], "days": 1})

    assert [(one["txId"], one["was"], one["now"]) for one in found["changed"]] == [(made, "sign", "refuse")]
