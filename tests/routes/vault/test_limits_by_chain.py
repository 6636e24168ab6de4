"""Limits on the coin of one EVM chain beside one on all, wherever a limit is kept or shown."""

from typing import Any

import pytest

from tests.fixtures.callers import Agent, Tenant, rule

POL = "evm:137:native"
ONE = rule("spending-limit", maxPerDay="100", asset=POL)
ALL = rule("spending-limit", maxPerDay="1000", asset="evm:native")


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """An agent with both."""
    return tenant.agent(ONE, ALL)


def statuses(agent: Agent, *orders: tuple[int, int]) -> list[int]:
    return [agent.sign(value=value, chainId=chain).status_code for value, chain in orders]


def by_asset(budgets: list[dict[str, Any]], name: str) -> dict[str, str]:
    return {one["asset"]: one[name] for one in budgets}


def test_each_chain_has_its_own_limit_and_all_have_one(agent: Agent) -> None:
    assert statuses(agent, (60, 137), (41, 137), (40, 137), (1, 137)) == [200, 403, 200, 403]
    assert statuses(agent, (901, 1), (500, 1), (400, 8453), (1, 10)) == [403, 200, 200, 403]


def test_dashboard_simulation_and_receipt_show_both_limits(agent: Agent) -> None:
    assert statuses(agent, (30, 137), (500, 1)) == [200, 200]

    page = agent.ok("GET", f"/dashboard/{agent.id}")
    request = {"to": "0x" + "11" * 20, "value": "20", "chainId": 137, "broadcast": False}
    simulated = agent.ok("POST", f"/vault/{agent.id}/simulate", {"kind": "evm", "request": request})
    tx = agent.ok("POST", f"/vault/{agent.id}/sign", request)["txId"]
    receipt = agent.ok("GET", f"/vault/{agent.id}/transactions/{tx}/receipt")["receipt"]

    assert by_asset(page["budgets"], "spent") == {POL: "30", "evm:native": "530"}
    assert by_asset(simulated["budgets"], "spent") == {POL: "30", "evm:native": "530"}
    assert by_asset(receipt["budgets"], "before") == {POL: "30", "evm:native": "530"}
    assert by_asset(receipt["budgets"], "after") == {POL: "50", "evm:native": "550"}


def test_an_order_that_takes_over_a_slot_counts_once_in_both(agent: Agent) -> None:
    first = agent.sign(value=90, chainId=137, nonce=0)
    again = agent.sign(value=95, chainId=137, nonce=0)

    assert (first.status_code, again.status_code) == (200, 200)
    assert by_asset(agent.ok("GET", f"/dashboard/{agent.id}")["budgets"], "spent") == {POL: "95", "evm:native": "95"}
    assert statuses(agent, (6, 137), (5, 137)) == [403, 200]


def test_a_backtest_knows_the_chains(tenant: Tenant) -> None:
    agent = tenant.agent(ALL)
    assert statuses(agent, (60, 137), (60, 1), (60, 137)) == [200, 200, 200]
    path = f"/agents/{agent.id}/policies/backtest"

    same = tenant.ok("POST", path, {"policies": [ALL], "days": 1})
    found = tenant.ok("POST", path, {"policies": [ONE, ALL], "days": 1})

    assert same["changed"] == []
    assert [(one["was"], one["now"]) for one in found["changed"]] == [("sign", "refuse")]


def test_an_agent_may_limit_one_chain_more_and_no_chain_less(tenant: Tenant) -> None:
    agent = tenant.agent(ALL)
    path = f"/agents/{agent.id}/policies"
    more = {**rule("spending-limit", maxPerDay="50", asset=POL), "id": "pol"}

    assert agent.put(path, json=[ALL, more]).status_code == 200
    for less in ([ALL], [more], [ALL, {**rule("spending-limit", maxPerDay="51", asset=POL), "id": "pol"}]):
        assert agent.put(path, json=less).json()["data"]["code"] == "policy_loosened"
