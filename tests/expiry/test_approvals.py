"""An undecided approval expires by itself, once, even when somebody decides at that moment."""

from typing import Any

import asyncpg
import msgspec
import pytest

from tests.expiry.race import judge, race
from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

DUE = "UPDATE approvals SET expires_at = service_now() - interval '1 ms' WHERE id = $1"
EVENTS = (
    "SELECT event, data FROM (SELECT tenant_id, event, data FROM outbox UNION ALL "
    "SELECT tenant_id, event, data FROM events) e WHERE tenant_id = $1 AND event = 'tx.denied'"
)


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"))


def queue_order(agent: Agent) -> dict[str, Any]:
    answer = agent.sign(value=5)
    assert answer.status_code == 202, answer.text
    return answer.json()["data"]


def item(tenant: Tenant, approval: str) -> dict[str, Any]:
    return next(one for one in tenant.ok("GET", "/approvals?status=all") if one["id"] == approval)


async def test_an_undecided_approval_is_rejected_and_announced(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    late, young = queue_order(cautious), queue_order(cautious)

    await owner.execute(DUE, late["approvalId"])
    shown = eventually(lambda: item(tenant, late["approvalId"]), lambda one: one["txStatus"] == "rejected")

    assert (shown["status"], shown["resolvedBy"], shown["resolvedByUserId"]) == ("expired", "system", None)
    assert shown["resolvedAt"] >= shown["expiresAt"] > shown["requestedAt"][:10]
    found = cautious.ok("GET", f"/vault/{cautious.id}/transactions/{late['txId']}")
    assert (found["status"], found["statusDetail"], found["signature"]) == ("rejected", "approval_expired", None)
    [event] = await owner.fetch(EVENTS, tenant.id)
    assert msgspec.json.decode(event["data"]) == {
        "txId": late["txId"],
        "kind": "evm",
        "to": ADDRESS,
        "value": "5",
        "chainId": 31337,
        "referenceId": None,
        "effects": shown["effects"],
        "moreEffects": 0,
        "approvalId": late["approvalId"],
        "reason": "expired",
        "resolvedBy": "system",
    }
    row = await owner.fetchrow("SELECT * FROM audit WHERE tenant_id = $1 AND action = 'tx.expired'", tenant.id)
    assert (row["actor_type"], row["actor_id"], row["resource_id"]) == ("system", "expiry", late["txId"])
    assert row["written_by"] == "custody_signer"
    # The control: time is not up for the other one.
    assert item(tenant, young["approvalId"])["status"] == "pending"
    assert [one["id"] for one in tenant.ok("GET", "/approvals?status=expired")] == [late["approvalId"]]
    stats = tenant.ok("GET", "/approvals/stats")
    assert (stats["pending"], stats["expired"], stats["rejected"], stats["total"]) == (1, 1, 0, 2)
    for way in ("approve", "deny"):
        answer = tenant.post(f"/approvals/{late['approvalId']}/{way}", json={})
        assert (answer.status_code, answer.json()["data"]["code"]) == (409, "approval_expired")


def test_zero_seconds_mean_that_an_item_waits_for_ever(tenant: Tenant, cautious: Agent) -> None:
    with_end = item(tenant, queue_order(cautious)["approvalId"])
    config = tenant.ok("GET", f"/tenants/{tenant.id}/config")
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", config | {"approvalConfig": {"autoExpireSeconds": 0}})

    without = item(tenant, queue_order(cautious)["approvalId"])

    assert (with_end["expiresAt"] is None, without["expiresAt"]) == (False, None)


async def test_the_signer_takes_nobodys_word_for_the_time(
    service: Service, tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    young, stranger = queue_order(cautious)["approvalId"], "00000000-0000-4000-8000-000000000000"

    with greet(service, "scheduler") as wire:
        told = [
            wire.ask("Expire", {"tenant": tenant_id, "approval": approval})["data"]["result"]
            for tenant_id, approval in ((tenant.id, young), (tenant.id, stranger), ("nobody", young))
        ]
        await owner.execute(DUE, young)
        told += [wire.ask("Expire", {"tenant": tenant.id, "approval": young})["data"]["result"] for _ in range(2)]
    with greet(service) as wire:
        refused = wire.ask("Expire", {"tenant": tenant.id, "approval": young})

    assert told[:3] == ["unchanged"] * 3
    # The deployment's own scheduler may have been faster.
    assert told[3:] in (["expired", "unchanged"], ["unchanged", "unchanged"])
    assert item(tenant, young)["status"] == "expired"
    assert refused["code"] == "message_not_allowed"


async def test_of_approve_deny_and_expire_at_once_exactly_one_happens(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    came_to = await race(service, tenant, owner, 100, seed=7)

    print(came_to)
    assert came_to.problems == []
    assert sum(came_to.outcomes.values()) == 100
    assert set(came_to.outcomes) == {"approved", "rejected", "expired"}
    assert came_to.successes == came_to.outcomes["approved"] + came_to.outcomes["rejected"]


async def test_two_outcomes_of_one_item_would_be_noticed(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    approval = queue_order(cautious)["approvalId"]
    tenant.ok("POST", f"/approvals/{approval}/deny", {})
    # As if the end of time did not look whether somebody had decided.
    await owner.execute(
        "UPDATE transactions SET status = 'pending_approval' WHERE id = (SELECT tx_id FROM approvals WHERE id = $1)",
        approval,
    )
    await owner.execute(
        "UPDATE approvals SET status = 'pending', resolved_at = NULL, expires_at = service_now() WHERE id = $1",
        approval,
    )
    eventually(lambda: item(tenant, approval)["txStatus"], "rejected")

    _, _, problems = await judge(owner, tenant, [approval], {approval: 1})

    assert len(problems) == 2, problems
