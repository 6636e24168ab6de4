"""A frozen agent or tenant: nothing is signed, nothing is lost."""

import asyncpg
import pytest

from tests.fixtures.callers import Tenant, rule
from tests.routes.orders import note, solana_payment

FREEZE = {
    "agent": "UPDATE agents SET frozen_at = {at}, frozen_reason = 'lost laptop' WHERE tenant_id = $1",
    "tenant": "UPDATE tenants SET frozen_at = {at}, frozen_reason = 'lost laptop' WHERE id = $1",
}


@pytest.mark.parametrize("what", FREEZE)
async def test_a_frozen_agent_signs_nothing_until_it_is_unfrozen(
    tenant: Tenant, owner: asyncpg.Connection, what: str
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="5"))
    approval = agent.sign(value=6).json()["data"]["approvalId"]
    await owner.execute(FREEZE[what].format(at="now()"), tenant.id)

    answers = [
        agent.sign(),
        agent.sign(value=6),
        agent.post(f"/vault/{agent.id}/sign-typed-data", json=note()),
        agent.post(f"/vault/{agent.id}/sign-solana", json=solana_payment(agent, 1)),
        tenant.post(f"/approvals/{approval}/approve", json={}),
    ]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [(423, "frozen")] * 5
    assert [one["status"] for one in tenant.ok("GET", "/approvals")] == ["pending"]
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1
    await owner.execute(FREEZE[what].format(at="NULL"), tenant.id)
    assert agent.sign().status_code == 200
    assert tenant.ok("POST", f"/approvals/{approval}/approve", {})["status"] == "approved"


async def test_a_frozen_agent_says_since_when_and_why(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent()
    assert tenant.ok("GET", f"/agents/{agent.id}").get("frozenAt") is None
    await owner.execute(FREEZE["agent"].format(at="now()"), tenant.id)

    found = agent.ok("GET", f"/agents/{agent.id}")

    assert (found["frozenReason"], found["frozenAt"][-1]) == ("lost laptop", "Z")


async def test_a_frozen_item_may_still_be_denied(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    approval = agent.sign().json()["data"]["approvalId"]
    await owner.execute(FREEZE["agent"].format(at="now()"), tenant.id)

    assert tenant.ok("POST", f"/approvals/{approval}/deny", {})["status"] == "rejected"


async def test_a_frozen_agent_changes_no_policy_but_its_tenant_does(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent()
    await owner.execute(FREEZE["agent"].format(at="now()"), tenant.id)

    assert agent.put(f"/agents/{agent.id}/policies", json=[]).status_code == 423
    assert tenant.put(f"/agents/{agent.id}/policies", json=[]).status_code == 200
