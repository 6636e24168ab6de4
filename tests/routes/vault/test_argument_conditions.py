"""Conditions on arguments over the whole service: what is signed, refused, queued, tightened and simulated."""

from typing import Any

import eth_abi
from eth_utils import keccak

from tests.fixtures.callers import Agent, Tenant, rule
from tests.routes.orders import TOKEN_CONTRACT, permit

DESK = "0x" + "c0" * 20
SELECTOR = "0x" + keccak(text="fill((address,uint256),address[])")[:4].hex()
ABI = "fill(Order order, address[] path)Order(address to,uint256 least)"
PERMIT = "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"


def desk(agent: Agent, *where: dict[str, Any], unread: str = "allow") -> dict[str, Any]:
    """A list of one call, which must pay the wallet and may do more."""
    own = {"arg": "order.to", "op": "eq", "value": agent.evm_address.lower()}
    constraints = {SELECTOR: {"abi": ABI, "where": [own, *where]}}
    entry = {"address": DESK, "selectors": [SELECTOR], "constraints": constraints, "unread": unread}
    return rule("contract-allowlist", contracts=[entry])


def fill(to: str, least: int = 5, more: str = "") -> dict[str, Any]:
    arguments = eth_abi.encode(["(address,uint256)", "address[]"], [(to, least), [DESK]])
    return {"to": DESK, "value": "0", "data": SELECTOR + arguments.hex() + more}


def rules_of(agent: Agent) -> str:
    return f"/agents/{agent.id}/policies"


def test_a_call_is_signed_where_its_arguments_keep_the_conditions(tenant: Tenant, agent: Agent) -> None:
    tenant.ok("PUT", rules_of(agent), [desk(agent, {"arg": "order.least", "op": "gte", "value": "5"})])

    own, stranger = fill(agent.evm_address), fill(DESK)
    refused = agent.sign(**stranger)

    assert agent.sign(**own).status_code == 200
    assert refused.status_code == 403
    assert f"its `order.to` is {DESK}, and must be" in refused.json()["data"]["results"][0]["reason"]
    assert agent.sign(**fill(agent.evm_address, 4)).status_code == 403
    # A byte behind the arguments, which most contracts ignore.
    assert agent.sign(**fill(agent.evm_address, more="00")).status_code == 403
    simulated = agent.ok(
        "POST", f"/vault/{agent.id}/simulate", {"kind": "evm", "request": {**stranger, "broadcast": False}}
    )
    assert simulated["decision"] == "refuse"


def test_a_person_decides_over_what_keeps_the_conditions_and_over_nothing_else(tenant: Tenant, agent: Agent) -> None:
    tenant.ok("PUT", rules_of(agent), [desk(agent, unread="ask")])

    assert agent.sign(**fill(DESK)).status_code == 403
    assert agent.sign(**fill(agent.evm_address)).status_code == 202
    (item,) = tenant.ok("GET", "/approvals")
    tenant.ok("PUT", rules_of(agent), [desk(agent, {"arg": "order.least", "op": "gt", "value": "5"}, unread="ask")])

    approved = tenant.post(f"/approvals/{item['id']}/approve", json={"digest": item["digest"]})
    assert approved.status_code == 403


def test_an_agent_narrows_its_conditions_and_never_widens_them(tenant: Tenant, agent: Agent) -> None:
    wide, narrow = desk(agent), desk(agent, {"arg": "path[*]", "op": "in", "values": [DESK]})
    tenant.ok("PUT", rules_of(agent), [wide])

    agent.ok("PUT", rules_of(agent), [narrow])
    loosened = agent.put(rules_of(agent), json=[wide])

    assert (loosened.status_code, loosened.json()["data"]["code"]) == (403, "policy_loosened")
    assert [one["config"] for one in agent.ok("GET", rules_of(agent))] == [narrow["config"]]


def test_typed_data_is_signed_where_its_fields_keep_the_conditions(tenant: Tenant, agent: Agent) -> None:
    small = {"type": PERMIT, "where": [{"arg": "value", "op": "lte", "value": "100"}]}
    entry = {"address": TOKEN_CONTRACT, "selectors": ["0x095ea7b3"], "typedData": [small]}
    tenant.ok("PUT", rules_of(agent), [rule("contract-allowlist", contracts=[entry])])

    said = {
        value: agent.post(f"/vault/{agent.id}/sign-typed-data", json=permit(agent.evm_address, value)).status_code
        for value in (100, 101, 2**256 - 1)
    }

    assert said == {100: 200, 101: 403, 2**256 - 1: 403}


def test_a_condition_that_cannot_be_meant_is_400_and_names_the_rule(tenant: Tenant, agent: Agent) -> None:
    bad = desk(agent, {"arg": "order.most", "op": "lte", "value": "5"})

    answer = tenant.put(rules_of(agent), json=[rule("rate-limit", maxTxPerHour=3), bad])

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "invalid_policy")
    assert "Rule 2 (contract-allowlist): `where` names 'order.most'" in answer.text.replace("\\u0027", "'")
