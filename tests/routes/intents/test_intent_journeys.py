"""From a proposal to the chain: a batch that a person lets go out, and what of it the chain took."""

from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.fixtures.server import EVM_CHAIN
from tests.outside.evm_node import EvmNode
from tests.routes.intents.makers import act, propose_authorised, transfer
from tests.routes.intents.test_send_calls import OTHER, call, execute, may_send, pay, send
from tests.routes.vault.transfers import APPROVE, TRANSFER

SWAP = "0x12aa3caf"
# Code that takes any call and does nothing.
TAKES_ALL = bytes.fromhex("00")


def contracts(*entries: tuple[str, str]) -> dict[str, Any]:
    listed = [{"address": address, "chainId": EVM_CHAIN, "selectors": [selector]} for address, selector in entries]
    return rule("contract-allowlist", contracts=listed)


def chain_says(evm_node: EvmNode, one: dict[str, Any]) -> int:
    return int(evm_node.rpc("eth_getTransactionReceipt", one["txHash"])["status"], 16)


def test_an_approval_and_a_swap_go_out_in_order(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address, 10**18)
    token, router = evm_node.deploy_erc20(agent.evm_address), evm_node.deploy(TAKES_ALL)
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [contracts((token, APPROVE), (router, SWAP))])
    may_send(as_owner, agent)
    calls = [call(APPROVE, router, 500, to=token), call(SWAP, 1, 2, to=router)]

    done = execute(as_owner, send(agent, *calls, broadcast=True, referenceId="swap-1"))

    sent = done["executionResult"]["transactions"]
    assert [one["status"] for one in sent] == ["broadcast"] * 2
    assert [chain_says(evm_node, one) for one in sent] == [1, 1]
    asked = "0xdd62ed3e" + f"{int(agent.evm_address, 16):064x}{int(router, 16):064x}"
    allowance = evm_node.rpc("eth_call", {"to": token, "data": asked}, "latest")
    assert int(allowance, 16) == 500


@pytest.mark.long
def test_a_call_that_the_chain_reverts_takes_no_other_along_and_is_told(
    as_owner: Person, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address, 10**18)
    token = evm_node.deploy_erc20(agent.evm_address, supply=100)
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [contracts((token, TRANSFER))])
    may_send(as_owner, agent)
    # Each by itself could be; the second finds nothing left.
    calls = [call(TRANSFER, OTHER, 100, to=token), call(TRANSFER, ADDRESS, 100, to=token), pay(7)]

    done = execute(as_owner, send(agent, *calls, broadcast=True, referenceId="both-of-them"))

    sent = done["executionResult"]["transactions"]
    assert [chain_says(evm_node, one) for one in sent] == [1, 0, 1]
    evm_node.mine(20)

    def statuses() -> list[str]:
        shown = tenant.ok("GET", f"/intents/{done['id']}")["executionResult"]["transactions"]
        return [one["status"] for one in shown]

    eventually(statuses, lambda found: found == ["confirmed", "failed", "confirmed"], seconds=60)


def test_a_payment_that_was_authorised_is_paid(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    evm_node.fund(agent.evm_address, 10**18)
    to = "0x" + "77" * 20
    before = int(evm_node.rpc("eth_getBalance", to, "latest"), 16)
    body = transfer(agent, 12_345, to=to, broadcast=True, referenceId="invoice-17")

    done = act(as_owner, propose_authorised(tenant, as_owner, body), "execute").json()["data"]

    assert done["executionResult"]["status"] == "broadcast"
    assert int(evm_node.rpc("eth_getBalance", to, "latest"), 16) - before == 12_345


def test_a_payment_that_the_wallet_cannot_make_waits(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent()
    intent = propose_authorised(tenant, as_owner, transfer(agent, 10**20, broadcast=True, referenceId="too-much"))

    short = act(as_owner, intent, "execute")

    assert short.status_code == 502
    assert tenant.ok("GET", f"/intents/{intent['id']}")["status"] == "authorized"
    evm_node.fund(agent.evm_address, 2 * 10**20)
    assert act(as_owner, intent, "execute").json()["data"]["status"] == "executed"
