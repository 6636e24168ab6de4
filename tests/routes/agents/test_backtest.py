"""Other rules tried on past requests: what they would have decided, with spend and rate as they would have been."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Client, Tenant, rule
from tests.outside.evm_node import EvmNode
from tests.routes.orders import CHAIN, SELLER, TOKEN_CONTRACT, message, note, payment_demand, permit, solana_payment


def backtest(client: Client, agent: Agent, *policies: Any, days: int = 7) -> Any:
    return client.ok("POST", f"/agents/{agent.id}/policies/backtest", {"policies": list(policies), "days": days})


def changes(found: Any) -> dict[str, tuple[str, str]]:
    return {one["txId"]: (one["was"], one["now"]) for one in found["changed"]}


def ask(agent: Agent, *values: int, **fields: Any) -> list[str]:
    return [agent.sign(value=value, **fields).json()["data"]["txId"] for value in values]


def test_the_rules_in_force_change_nothing(tenant: Tenant) -> None:
    """The same windows, rates, slots and decoders: whatever was decided is decided again."""
    rules = (
        rule("spending-limit", maxPerTransaction="500", maxPerDay="1050"),
        rule("rate-limit", maxTxPerHour=12),
        rule("auto-approve-threshold", threshold="300"),
    )
    agent = tenant.agent(*rules)
    ask(agent, 300, 501, 200, 301, 300, 100, 100, 100)
    ask(agent, 7, data="0xdeadbeef")
    for route, order in (
        ("sign-typed-data", note()),
        ("sign-typed-data", permit(agent.evm_address, 5)),
        ("sign-solana", solana_payment(agent, 7)),
        ("sign-message", message()),
        ("sign-message", message("hello", "solana")),
    ):
        agent.post(f"/vault/{agent.id}/{route}", json=order)
    late = ask(agent, *[1] * 6)
    statuses = {one["status"] for one in agent.ok("GET", f"/vault/{agent.id}/history")}
    assert statuses == {"signed", "rejected", "pending_approval"}

    assert backtest(tenant, agent, *rules) == {"examined": 20, "changed": [], "truncated": False}
    # A control: without the limit on the rate the last ones are signed.
    assert changes(backtest(tenant, agent, *rules[:1], rules[2]))[late[-1]] == ("refuse", "sign")


def test_changed_decisions_are_listed_newest_first(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTransaction="100"))
    small, large, elsewhere = ask(agent, 10, 101) + ask(agent, 10, to=OTHER_ADDRESS)

    found = backtest(tenant, agent, rule("approved-addresses", addresses=[ADDRESS]))

    assert [(one["txId"], one["was"], one["now"]) for one in found["changed"]] == [
        (elsewhere, "sign", "refuse"),
        (large, "refuse", "sign"),
    ]
    assert (found["examined"], small in changes(found)) == (3, False)
    result = found["changed"][0]["results"][0]
    assert (result["type"], result["passed"]) == ("approved-addresses", False)


def test_spend_is_rebuilt_as_it_would_have_been(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100"))
    first, second, third = ask(agent, 60, 60, 40)

    # What was refused for lack of budget fits the larger one, and what follows it no longer does.
    found = changes(backtest(tenant, agent, rule("spending-limit", maxPerDay="120")))
    assert found == {second: ("refuse", "sign"), third: ("sign", "refuse")}
    # Nothing of the first counts under rules that refuse it.
    found = changes(backtest(tenant, agent, rule("spending-limit", maxPerDay="59")))
    assert found == {first: ("sign", "refuse")}


def test_rate_is_rebuilt_as_it_would_have_been(tenant: Tenant) -> None:
    agent = tenant.agent()
    one, two, three = ask(agent, 1, 2, 3)

    assert changes(backtest(tenant, agent, rule("rate-limit", maxTxPerHour=1))) == dict.fromkeys(
        (two, three), ("sign", "refuse")
    )
    rules = (rule("rate-limit", maxTxPerHour=2), rule("spending-limit", maxPerTransaction="1"))
    # What is refused counts no rate: the third is refused for its value alone.
    assert set(changes(backtest(tenant, agent, *rules))) == {two, three}
    assert one not in changes(backtest(tenant, agent, *rules))


def test_a_backtest_assumes_the_same_decisions_by_people(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="10"))
    approved, denied = (agent.sign(value=value).json()["data"] for value in (60, 61))
    tenant.ok("POST", f"/approvals/{approved['approvalId']}/approve", {})
    tenant.ok("POST", f"/approvals/{denied['approvalId']}/deny", {})
    (later,) = ask(agent, 5)
    queueing = rule("auto-approve-threshold", threshold="10")

    # 60 approved and 5 make 65; the 61 that nobody approved count nothing.
    assert changes(backtest(tenant, agent, queueing, rule("spending-limit", maxPerDay="65"))) == {}
    assert changes(backtest(tenant, agent, queueing, rule("spending-limit", maxPerDay="64"))) == {
        later: ("sign", "refuse")
    }
    # What would have gone to a person and was signed is taken as approved.
    lower = rule("auto-approve-threshold", threshold="4")
    assert changes(backtest(tenant, agent, lower, rule("spending-limit", maxPerDay="65"))) == {later: ("sign", "queue")}


def test_a_slot_that_was_taken_over_counts_once(agent: Agent, tenant: Tenant, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    ask(agent, 60)
    assert agent.sign(value=70, broadcast=True).status_code == 200

    assert changes(backtest(tenant, agent, rule("spending-limit", maxPerDay="70"))) == {}
    assert len(changes(backtest(tenant, agent, rule("spending-limit", maxPerDay="69")))) == 1


async def test_only_the_days_asked_for_are_examined_but_what_was_signed_before_counts(
    tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent()
    old, new = ask(agent, 60, 50)
    moved = "UPDATE transactions SET created_at = created_at - $2::interval, signed_at = signed_at - $2::interval"
    ago = timedelta(hours=30)
    await owner.execute(f"{moved} WHERE id = $1", old, ago)
    # Its spend with it, as the ledger would have it.
    await owner.execute(
        "WITH less AS (UPDATE spend SET amount = amount - 60 WHERE agent_id = $1 AND tenant_id = $2 "
        "AND amount >= 60 RETURNING *) "
        "INSERT INTO spend (tenant_id, agent_id, incarnation, asset, hour, amount) "
        "SELECT tenant_id, agent_id, incarnation, asset, date_trunc('hour', service_now() - $3::interval), 60 "
        "FROM less",
        agent.id,
        tenant.id,
        ago,
    )

    weekly = rule("spending-limit", maxPerWeek="100")
    assert backtest(tenant, agent, weekly, days=1)["examined"] == 1
    assert changes(backtest(tenant, agent, weekly, days=1)) == {new: ("sign", "refuse")}
    assert changes(backtest(tenant, agent, rule("spending-limit", maxPerWeek="110"), days=1)) == {}
    # 30 hours ago is not within a day.
    assert changes(backtest(tenant, agent, rule("spending-limit", maxPerDay="100"), days=2)) == {}
    assert backtest(tenant, agent, weekly, days=2)["examined"] == 2


def test_payments_that_servers_demand_are_judged_as_what_they_move(tenant: Tenant) -> None:
    sellers = rule("approved-addresses", addresses=[SELLER])
    agent = tenant.agent(sellers)
    paid = agent.ok("POST", f"/vault/{agent.id}/x402", {"demand": payment_demand()})["txId"]
    limits = [rule("spending-limit", maxPerDay=most, asset=f"evm:{CHAIN}:{TOKEN_CONTRACT}") for most in ("59", "60")]

    assert changes(backtest(tenant, agent, sellers, limits[0])) == {paid: ("sign", "refuse")}
    assert backtest(tenant, agent, sellers, limits[1]) == {"examined": 1, "changed": [], "truncated": False}
    assert changes(backtest(tenant, agent, limits[1])) == {paid: ("sign", "queue")}


@pytest.mark.parametrize("days", [0, 91, -1, 1.5, "7", None], ids=repr)
def test_days_are_1_to_90(tenant: Tenant, agent: Agent, days: Any) -> None:
    answer = tenant.post(f"/agents/{agent.id}/policies/backtest", json={"policies": [], "days": days})

    assert answer.status_code == 400


def test_policies_are_checked_as_when_they_are_put(tenant: Tenant, agent: Agent) -> None:
    for policies in ([rule("no-such-type")], [rule("spending-limit")], [rule("rate-limit", maxTxPerHour=0)], [1]):
        put = tenant.put(f"/agents/{agent.id}/policies", json=policies)
        tried = tenant.post(f"/agents/{agent.id}/policies/backtest", json={"policies": policies, "days": 1})
        assert (put.status_code, tried.status_code) == (400, 400)
    assert tried.json()["data"].keys() == put.json()["data"].keys()
    assert tenant.ok("GET", f"/agents/{agent.id}/policies") == []


def test_agents_and_other_tenants_try_nothing(tenant: Tenant, other_tenant: Tenant, agent: Agent) -> None:
    body = {"policies": [], "days": 1}

    assert agent.post(f"/agents/{agent.id}/policies/backtest", json=body).status_code == 403
    assert other_tenant.post(f"/agents/{agent.id}/policies/backtest", json=body).status_code == 404


def test_a_whole_number_may_be_written_with_a_fraction_of_zero(tenant: Tenant) -> None:
    agent = tenant.agent()
    headers = {"Content-Type": "application/json"}

    def status_for(days: str) -> int:
        body = f'{{"policies": [], "days": {days}}}'
        return tenant.post(f"/agents/{agent.id}/policies/backtest", content=body, headers=headers).status_code

    # To JSON Schema, and so to generated clients, each of these is or is not an integer.
    assert [status_for(days) for days in ("1", "1.0", "1e0", "1.5", "1e300", '"1"')] == [200, 200, 200, 400, 400, 400]
