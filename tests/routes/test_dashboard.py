"""One agent at a glance."""

import asyncpg

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.outside.evm_node import EvmNode


def test_a_new_agent_has_an_empty_page(tenant: Tenant, agent: Agent) -> None:
    page = tenant.ok("GET", f"/dashboard/{agent.id}")

    made = tenant.ok("GET", f"/agents/{agent.id}")
    assert page == {
        "agent": {
            "id": agent.id,
            "tenantId": tenant.id,
            "name": made["name"],
            "walletAddress": agent.evm_address,
            "createdAt": made["createdAt"],
        },
        "balances": {"evm": {"native": "0", "nativeFormatted": "0.000000", "chainId": 31337, "symbol": "ETH"}},
        "spend": {
            "today": "0",
            "thisWeek": "0",
            "thisMonth": "0",
            "todayFormatted": "0.000000",
            "thisWeekFormatted": "0.000000",
            "thisMonthFormatted": "0.000000",
            "assets": [],
        },
        "budgets": [],
        "policies": [],
        "pendingApprovals": 0,
        "recentTransactions": [],
    }


def test_the_page_shows_spend_budgets_queue_and_the_last_five(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(
        rule("spending-limit", maxPerDay="1000", maxPerWeek="2000"), rule("auto-approve-threshold", threshold="500")
    )
    evm_node.fund(agent.evm_address, 3 * 10**18)
    statuses = [agent.sign(value=value).status_code for value in (100, 200, 600, 3000, 1, 2, 3)]
    assert statuses == [200, 200, 202, 403, 200, 200, 200]

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert page["balances"]["evm"]["nativeFormatted"] == "3.000000"
    assert (page["spend"]["today"], page["spend"]["thisWeek"], page["spend"]["thisMonth"]) == ("306", "306", "306")
    assert page["pendingApprovals"] == 1
    assert [one["value"] for one in page["recentTransactions"]] == ["3", "2", "1", "3000", "600"]
    assert set(page["recentTransactions"][0]) == {
        "id",
        "agentId",
        "kind",
        "toAddress",
        "value",
        "moved",
        "status",
        "chainId",
        "txHash",
        "createdAt",
    }
    assert page["recentTransactions"][0]["toAddress"] == ADDRESS
    policy = page["policies"][0]["id"]
    assert page["budgets"] == [
        {
            "policyId": policy,
            "window": "day",
            "asset": "evm:native",
            "limit": "1000",
            "spent": "306",
            "remaining": "694",
        },
        {
            "policyId": policy,
            "window": "week",
            "asset": "evm:native",
            "limit": "2000",
            "spent": "306",
            "remaining": "1694",
        },
    ]


async def test_spend_is_by_the_calendar_and_budgets_by_the_rolling_window(
    tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="1000", maxPerWeek="2000"))
    agent.sign(value=7)
    await owner.execute(
        "UPDATE transactions SET created_at = created_at - interval '40 days' WHERE tenant_id = $1", tenant.id
    )
    await owner.execute("UPDATE spend SET hour = hour - interval '3 days' WHERE tenant_id = $1", tenant.id)

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert page["spend"]["thisMonth"] == "0"
    assert [(one["window"], one["spent"]) for one in page["budgets"]] == [("day", "0"), ("week", "7")]


def test_a_disabled_limit_has_no_budget(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", enabled=False, maxPerDay="1"))

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert (page["budgets"], len(page["policies"])) == ([], 1)


def test_huge_amounts_are_exact(tenant: Tenant, agent: Agent) -> None:
    assert [agent.sign(value=2**256 - 1).status_code for _ in range(12)] == [200] * 12

    assert agent.ok("GET", f"/dashboard/{agent.id}")["spend"]["today"] == str(12 * (2**256 - 1))


def test_an_absent_agent_is_404(tenant: Tenant) -> None:
    assert tenant.get("/dashboard/absent").json()["data"]["code"] == "agent_absent"


def test_a_limit_on_one_order_has_both_of_its_names_and_can_be_put_back(tenant: Tenant) -> None:
    given = [rule("spending-limit", maxPerTransaction="7"), rule("spending-limit", maxPerTx="8", maxPerDay="9")]
    agent = tenant.agent(*given)

    shown = tenant.ok("GET", f"/dashboard/{agent.id}")["policies"]

    assert [one["config"] for one in shown] == [
        {"maxPerTransaction": "7", "maxPerTx": "7"},
        {"maxPerTx": "8", "maxPerDay": "9"},
    ]
    kept = tenant.ok("PUT", f"/agents/{agent.id}/policies", shown)
    assert [one["config"] for one in kept] == [one["config"] for one in shown]
