"""Spending of an agent by asset, tokens too, on its dashboard."""

from typing import Any

import asyncpg

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule

TOKEN = "0x" + "7a" * 20


def test_a_token_payment_is_spend_of_the_token(tenant: Tenant, agent: Agent) -> None:
    assert agent.sign(to=TOKEN, value=0, data=transfer(50)).status_code == 200
    assert agent.sign(to=TOKEN, value=0, data=transfer(30), chainId=137).status_code == 200
    assert agent.sign(to=TOKEN, value=0, data=transfer(20)).status_code == 200

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert page["spend"]["today"] == "0"
    assert page["spend"]["assets"] == [
        asset_spend(f"evm:137:{TOKEN}", 30, None, None),
        asset_spend(f"evm:31337:{TOKEN}", 70, None, None),
    ]
    newest = page["recentTransactions"][0]
    assert (newest["value"], newest["kind"]) == ("0", "evm")
    assert newest["moved"] == [{"asset": f"evm:31337:{TOKEN}", "symbol": None, "decimals": None, "amount": "20"}]


def test_coins_are_counted_by_chain_and_together(tenant: Tenant, agent: Agent) -> None:
    assert [agent.sign(value=5, chainId=chain).status_code for chain in (1, 137, 137)] == [200, 200, 200]

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert page["spend"]["today"] == "15"
    assert page["spend"]["assets"] == [
        asset_spend("evm:137:native", 10, "POL", 18),
        asset_spend("evm:1:native", 5, "ETH", 18),
    ]
    assert page["recentTransactions"][0]["moved"] == [
        {"asset": "evm:137:native", "symbol": "POL", "decimals": 18, "amount": "5"}
    ]


def test_an_order_that_was_not_signed_is_shown_and_not_counted(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"), rule("auto-approve-threshold", threshold="5"))
    assert [agent.sign(value=value).status_code for value in (11, 6)] == [403, 202]

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert page["spend"]["assets"] == []
    assert [one["moved"][0]["amount"] for one in page["recentTransactions"]] == ["6", "11"]


async def test_an_order_from_before_the_column_counts_its_native_value(
    tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    agent.sign(value=7)
    await owner.execute("UPDATE transactions SET moved = NULL WHERE tenant_id = $1", tenant.id)

    page = agent.ok("GET", f"/dashboard/{agent.id}")

    assert page["spend"]["assets"] == [asset_spend("evm:31337:native", 7, "ETH", 18)]
    assert page["recentTransactions"][0]["moved"][0]["amount"] == "7"


async def test_last_months_spend_is_not_listed(tenant: Tenant, agent: Agent, owner: asyncpg.Connection) -> None:
    agent.sign(value=7)
    await owner.execute(
        "UPDATE transactions SET created_at = created_at - interval '31 days 20 hours' WHERE tenant_id = $1", tenant.id
    )

    assert agent.ok("GET", f"/dashboard/{agent.id}")["spend"]["assets"] == []


def transfer(amount: int) -> str:
    """Calldata of an ERC-20 `transfer`."""
    return f"0xa9059cbb{ADDRESS[2:]:0>64}{amount:064x}"


def asset_spend(asset: str, amount: int, symbol: str | None, decimals: int | None) -> dict[str, Any]:
    """An asset of which everything was spent today."""
    unit = {"asset": asset, "symbol": symbol, "decimals": decimals}
    return unit | dict.fromkeys(("today", "thisWeek", "thisMonth"), str(amount))
